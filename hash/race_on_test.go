//go:build race

package hash

// raceEnabled tells that processor times say nothing.
const raceEnabled = true
