//go:build !race

package subset

// slowdown is how much longer the race detector lets everything take.
const slowdown = 1
