package interop

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	grpcdns "google.golang.org/grpc/resolver/dns"
	"google.golang.org/grpc/status"
)

// A headless service: gRPC's own resolver looks up again when a connection ends, which servers see to by
// limiting their age. Instances that come and go cost no call, and neither does a name server that fails.
// A name that does not exist is, to that resolver, one without addresses, until it exists again.
func TestGRPCDNSOfAHeadlessServiceLosesNoCall(t *testing.T) {
	grpcdns.SetMinResolutionInterval(50 * time.Millisecond)
	defer grpcdns.SetMinResolutionInterval(30 * time.Second)
	ips := []string{"127.0.30.1", "127.0.30.2", "127.0.30.3"}
	var backends []*backend
	for _, lis := range onePort(t, ips...) {
		backends = append(backends, startBackendAt(t, lis, nil, grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: 300 * time.Millisecond, MaxConnectionAgeGrace: patience,
		})))
	}
	_, port, err := net.SplitHostPort(backends[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	ns := startNameServer(t)
	ns.set("svc.test", answer{a: ips[:2]})
	cc, err := grpc.NewClient("dns://"+ns.addr+"/svc.test:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"evenkeel": {"policy": "round_robin"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cc.Close() }()
	client := testgrpc.NewTestServiceClient(cc)
	load := keepCalling(t, calling(client))
	settle(t, "two", 200, 0.05, []float64{0.5, 0.5, 0}, backends...)
	ns.set("svc.test", answer{a: ips})
	settle(t, "one joins", 200, 0.05, []float64{1. / 3, 1. / 3, 1. / 3}, backends...)
	ns.set("svc.test", answer{code: dns.RcodeServerFailure})
	began := backends[0].conns.Load()
	eventually(t, "connections end and begin while the name server fails", func() bool { return backends[0].conns.Load() > began+2 })
	ns.set("svc.test", answer{a: ips[1:]})
	settle(t, "one leaves", 200, 0.05, []float64{0, 0.5, 0.5}, backends...)
	backends[0].stop()
	ns.set("svc.test", answer{a: ips[1:2], truncated: true})
	settle(t, "another leaves", 200, 0.05, []float64{0, 1, 0}, backends...)
	load.stop()
	load.check(t)

	call := calling(client)
	ns.set("svc.test", answer{code: dns.RcodeNameError})
	eventually(t, "calls fail without a name", func() bool { return status.Code(call(t.Context())) == codes.Unavailable })
	waiting := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := client.EmptyCall(ctx, &testgrpc.Empty{}, grpc.WaitForReady(true))
		waiting <- err
	}()
	ns.set("svc.test", answer{a: ips[1:]})
	if err := <-waiting; err != nil {
		t.Errorf("a call that waits for ready: %v", err)
	}
}
