module github.com/evenkeel/evenkeel/examples/custompolicy

go 1.26

require github.com/evenkeel/evenkeel v0.0.0

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

replace github.com/evenkeel/evenkeel => ../../
