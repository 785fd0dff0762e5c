//go:build !unix

package main

import "time"

var begun = time.Now()

// cpu is the time since the process began, where nothing better is known.
func cpu() time.Duration { return time.Since(begun) }
