// Package interop tests Evenkeel beside software that its own module does not require.
// It is a module of its own, so that nobody who imports Evenkeel gets those
// dependencies, and holds tests alone.
package interop
