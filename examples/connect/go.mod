module github.com/evenkeel/evenkeel/examples/connect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/evenkeel/evenkeel v0.0.0
	go.uber.org/goleak v1.3.0
	google.golang.org/protobuf v1.36.11
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect

replace github.com/evenkeel/evenkeel => ../../
