package deployment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// Name is the service's in DNS.
	Name = "orders.example"
	// Method is the one that there is: a google.protobuf.Empty for another.
	Method = "/example.Orders/Place"
)

// Config says how a deployment is run.
type Config struct {
	// Port is that of the replicas, on 127.0.0.1, 127.0.0.2 and so on. 0 takes a free one.
	Port int
	// DNS is where the DNS server listens, "127.0.0.1:5353"; port 0 takes a free one.
	DNS string
	// MaxAge is how long a replica lets a connection live before it asks the client, by GOAWAY, to make
	// another one; calls on it have as long again to end. A client resolves the name again then, and that is
	// when it learns of new replicas: without MaxAge it may never. 0 is for ever.
	MaxAge time.Duration
	// Work is how long the first replica takes over a call. Each further one takes half as long again.
	Work time.Duration
}

// Deployment is some replicas and their DNS server. Its methods are safe for concurrent use.
type Deployment struct {
	config Config
	port   int
	dns    *names

	mu       sync.Mutex
	replicas []*replica
}

type replica struct {
	server *grpc.Server
	served chan error
}

// Start starts the DNS server, and no replicas.
func Start(c Config) (*Deployment, error) {
	dns, err := serveNames(c.DNS)
	if err != nil {
		return nil, fmt.Errorf("deployment: DNS: %w", err)
	}
	return &Deployment{config: c, port: c.Port, dns: dns}, nil
}

// Target is what a client dials.
func (d *Deployment) Target() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("dns://%s/%s:%d", d.dns.addr(), Name, d.port)
}

// Add starts one more replica and has the name say so. It returns its address.
func (d *Deployment) Add() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.replicas)
	ip := netip.AddrFrom4([4]byte{127, 0, 0, byte(n + 1)})
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(d.port)))
	if err != nil {
		return "", fmt.Errorf("deployment: replica %d: %w", n, err)
	}
	d.port = l.Addr().(*net.TCPAddr).Port
	work := d.config.Work + d.config.Work*time.Duration(n)/2
	r := &replica{
		server: grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: d.config.MaxAge, MaxConnectionAgeGrace: d.config.MaxAge,
		})),
		served: make(chan error, 1),
	}
	r.server.RegisterService(&orders, work)
	go func() { r.served <- r.server.Serve(l) }()
	d.replicas = append(d.replicas, r)
	d.dns.set(Name, d.addrs())
	return l.Addr().String(), nil
}

// addrs are those of the replicas. Called under mu.
func (d *Deployment) addrs() (list []netip.Addr) {
	for i := range d.replicas {
		list = append(list, netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)}))
	}
	return list
}

// Stop ends everything: calls that are under way fail.
func (d *Deployment) Stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var problems []error
	for _, r := range d.replicas {
		r.server.Stop()
		if err := <-r.served; !errors.Is(err, grpc.ErrServerStopped) {
			problems = append(problems, err)
		}
	}
	d.replicas = nil
	return errors.Join(append(problems, d.dns.close())...)
}

// orders is the service by hand, as protoc would write it.
var orders = grpc.ServiceDesc{
	ServiceName: "example.Orders",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Place", Handler: place}},
}

func place(work any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(new(emptypb.Empty)); err != nil {
		return nil, err
	}
	t := time.NewTimer(work.(time.Duration))
	defer t.Stop()
	select {
	case <-t.C:
		return new(emptypb.Empty), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
