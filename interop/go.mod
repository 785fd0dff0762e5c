module github.com/evenkeel/evenkeel/interop

go 1.26

require (
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2
	github.com/envoyproxy/go-control-plane v0.14.0
	github.com/envoyproxy/go-control-plane/envoy v1.37.0
	github.com/evenkeel/evenkeel v0.0.0
	github.com/miekg/dns v1.1.72
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.53.0
	google.golang.org/grpc v1.82.0
	google.golang.org/protobuf v1.36.11
)

require (
	cel.dev/expr v0.25.1 // indirect
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/envoyproxy/go-control-plane/ratelimit v0.1.0 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/spiffe/go-spiffe/v2 v2.6.0 // indirect
	golang.org/x/mod v0.34.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.36.0 // indirect
	golang.org/x/tools v0.43.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/grpc/examples v0.0.0-20250407062114-b368379ef8f6 // indirect
)

replace github.com/evenkeel/evenkeel => ../

// Programs that tests build. As tools they, and what they import, are part of this module's versions.
tool (
	google.golang.org/grpc/examples/features/deadline/client
	google.golang.org/grpc/examples/features/deadline/server
	google.golang.org/grpc/examples/features/load_balancing/client
	google.golang.org/grpc/examples/features/load_balancing/server
	google.golang.org/grpc/examples/features/retry/client
	google.golang.org/grpc/examples/features/retry/server
	google.golang.org/grpc/examples/helloworld/greeter_client
	google.golang.org/grpc/examples/helloworld/greeter_server
	google.golang.org/grpc/examples/route_guide/client
	google.golang.org/grpc/examples/route_guide/server
	google.golang.org/grpc/interop/client
	google.golang.org/grpc/interop/server
)
