package interop

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	xdstype "github.com/cncf/xds/go/xds/type/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wrrlocality "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	xdsService = "orders"
	xdsNode    = "interop"
)

// controlPlane is an ADS server of go-control-plane's. Its fields are set by the test, and published
// with publish.
type controlPlane struct {
	policies   []proto.Message // the Cluster's load_balancing_policy
	localities []locality
	outlier    *cluster.OutlierDetection // nil for none

	addr    string
	cache   cache.SnapshotCache
	version int
	refused atomic.Pointer[string] // what the client last said of a Cluster that it refused
}

type locality struct {
	zone      string
	weight    uint32
	priority  uint32
	endpoints []xdsEndpoint
}

type xdsEndpoint struct {
	*backend
	weight uint32
	health core.HealthStatus
}

// startControlPlane starts one, with the policies, that has published nothing.
func startControlPlane(t *testing.T, policies ...proto.Message) *controlPlane {
	t.Helper()
	p := &controlPlane{policies: policies, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil)}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = lis.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(ctx, p.cache, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			if r.GetTypeUrl() == resource.ClusterType && r.GetErrorDetail() != nil {
				said := r.GetErrorDetail().GetMessage()
				p.refused.Store(&said)
			}
			return nil
		},
	}))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(lis)
	}()
	t.Cleanup(func() {
		cancel()
		s.Stop()
		<-served
	})
	return p
}

// publish makes the fields what clients get from now on.
func (p *controlPlane) publish(t *testing.T) {
	t.Helper()
	p.version++
	snapshot, err := cache.NewSnapshot(strconv.Itoa(p.version), map[resource.Type][]types.Resource{
		resource.ListenerType: {listenerResource(t)},
		resource.ClusterType:  {p.clusterResource(t)},
		resource.EndpointType: {p.endpointResource(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(t.Context(), xdsNode, snapshot); err != nil {
		t.Fatal(err)
	}
}

// set publishes these localities.
func (p *controlPlane) set(t *testing.T, localities ...locality) {
	t.Helper()
	p.localities = localities
	p.publish(t)
}

// dial returns a client of the service, which asks this control plane about it.
func (p *controlPlane) dial(t *testing.T) testgrpc.TestServiceClient {
	t.Helper()
	bootstrap := fmt.Sprintf(`{"node": {"id": %q}, "xds_servers": [{"server_uri": %q,
		"channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}]}`, xdsNode, p.addr)
	builder, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient("xds:///"+xdsService, grpc.WithResolvers(builder),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return testgrpc.NewTestServiceClient(cc)
}

func listenerResource(t *testing.T) *listener.Listener {
	t.Helper()
	toCluster := &route.Route{
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: ""}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: xdsService},
		}},
	}
	manager := &hcm.HttpConnectionManager{
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &route.RouteConfiguration{
			Name:         xdsService,
			VirtualHosts: []*route.VirtualHost{{Name: xdsService, Domains: []string{"*"}, Routes: []*route.Route{toCluster}}},
		}},
		HttpFilters: []*hcm.HttpFilter{{
			Name:       "router",
			ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: packed(t, &router.Router{})},
		}},
	}
	return &listener.Listener{Name: xdsService, ApiListener: &listener.ApiListener{ApiListener: packed(t, manager)}}
}

func (p *controlPlane) clusterResource(t *testing.T) *cluster.Cluster {
	t.Helper()
	return &cluster.Cluster{
		Name:                 xdsService,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{EdsConfig: &core.ConfigSource{
			ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		}},
		LoadBalancingPolicy: policyList(t, p.policies...),
		OutlierDetection:    p.outlier,
	}
}

func (p *controlPlane) endpointResource(t *testing.T) *endpoint.ClusterLoadAssignment {
	t.Helper()
	assignment := &endpoint.ClusterLoadAssignment{ClusterName: xdsService}
	for _, l := range p.localities {
		list := &endpoint.LocalityLbEndpoints{
			Locality:            &core.Locality{Region: "r", Zone: l.zone},
			LoadBalancingWeight: wrapperspb.UInt32(l.weight),
			Priority:            l.priority,
		}
		for _, e := range l.endpoints {
			list.LbEndpoints = append(list.LbEndpoints, lbEndpoint(t, e))
		}
		assignment.Endpoints = append(assignment.Endpoints, list)
	}
	return assignment
}

func lbEndpoint(t *testing.T, e xdsEndpoint) *endpoint.LbEndpoint {
	t.Helper()
	host, port, err := net.SplitHostPort(e.addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint.LbEndpoint{
		HealthStatus:        e.health,
		LoadBalancingWeight: wrapperspb.UInt32(e.weight),
		HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{
			Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(number)},
			}}},
		}},
	}
}

// policyList is a load_balancing_policy with these, the first that the client has to be used.
func policyList(t *testing.T, policies ...proto.Message) *cluster.LoadBalancingPolicy {
	t.Helper()
	list := &cluster.LoadBalancingPolicy{}
	for _, m := range policies {
		list.Policies = append(list.Policies, &cluster.LoadBalancingPolicy_Policy{
			TypedExtensionConfig: &core.TypedExtensionConfig{Name: "policy", TypedConfig: packed(t, m)},
		})
	}
	return list
}

// custom is a policy that gRPC knows by name alone. Without a config it has no Struct.
func custom(t *testing.T, name, config string) *xdstype.TypedStruct {
	t.Helper()
	m := &xdstype.TypedStruct{TypeUrl: "type.googleapis.com/" + name}
	if config != "" {
		m.Value = &structpb.Struct{}
		if err := protojson.Unmarshal([]byte(config), m.Value); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// perLocality has the policy choose within the locality that gRPC has drawn by its weight.
func perLocality(t *testing.T, policy proto.Message) *wrrlocality.WrrLocality {
	t.Helper()
	return &wrrlocality.WrrLocality{EndpointPickingPolicy: policyList(t, policy)}
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
