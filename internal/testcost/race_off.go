//go:build !race

package testcost

// Race tells whether this is a build with the race detector.
const Race = false
