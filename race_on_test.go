//go:build race

package evenkeel_test

const raceDetector = true
