//go:build race

package outlier_test

const raceEnabled = true
