module github.com/evenkeel/evenkeel/interop

go 1.26

require (
	github.com/evenkeel/evenkeel v0.0.0
	golang.org/x/net v0.53.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	golang.org/x/text v0.36.0 // indirect
)

replace github.com/evenkeel/evenkeel => ../
