module github.com/evenkeel/evenkeel/examples/custompolicy

go 1.26

require github.com/evenkeel/evenkeel v0.0.0

replace github.com/evenkeel/evenkeel => ../../
