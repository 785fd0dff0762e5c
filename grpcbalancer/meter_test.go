package grpcbalancer

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/stats"
)

// metrics is a stats handler that takes the metrics of gRPC's registry.
type metrics struct {
	estats.UnimplementedMetricsRecorder

	mu     sync.Mutex
	counts map[string]int64
}

func (m *metrics) RecordInt64UpDownCount(h *estats.Int64UpDownCountHandle, n int64, labels ...string) {
	m.add(h.Descriptor(), n, labels)
}

func (m *metrics) RecordInt64Count(h *estats.Int64CountHandle, n int64, labels ...string) {
	m.add(h.Descriptor(), n, labels)
}

func (m *metrics) add(d *estats.MetricDescriptor, n int64, labels []string) {
	if d != (*estats.MetricDescriptor)(endpointsMetric) && d != (*estats.MetricDescriptor)(refusedMetric) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int64{}
	}
	what := strings.Join(append([]string{d.Name}, labels[1:]...), " ")
	if m.counts[what] += n; m.counts[what] == 0 {
		delete(m.counts, what)
	}
}

func (m *metrics) are(want map[string]int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Equal(m.counts, want)
}

func (*metrics) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*metrics) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*metrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*metrics) HandleConn(context.Context, stats.ConnStats)                       {}

// gRPC's metrics add up over the channels of a target, and end with them.
func TestMetricsCountEndpointsOverAllChannelsOfATarget(t *testing.T) {
	servers := fleet(t, 3)
	var m metrics
	first := connect(t, lbConfigOf(`{}`), servers, grpc.WithStatsHandler(&m))
	eventually(t, "three", func() bool { return m.are(map[string]int64{"evenkeel.endpoints ready": 3}) })
	second := connect(t, lbConfigOf(`{}`), servers[:2], grpc.WithStatsHandler(&m))
	eventually(t, "five", func() bool { return m.are(map[string]int64{"evenkeel.endpoints ready": 5}) })
	first.resolver.UpdateState(endpointsOf(servers[0]))
	eventually(t, "three again", func() bool { return m.are(map[string]int64{"evenkeel.endpoints ready": 3}) })
	_ = first.cc.Close()
	eventually(t, "two", func() bool { return m.are(map[string]int64{"evenkeel.endpoints ready": 2}) })
	_ = second.cc.Close()
	eventually(t, "none", func() bool { return m.are(nil) })
}

func TestMetricsOfThePool(t *testing.T) {
	var m metrics
	own := meter{record: &recorder{to: &m, target: "x"}}
	own.look(2, 7)
	own.look(1, 1)
	eventually(t, "both", func() bool {
		return m.are(map[string]int64{"evenkeel.endpoints ejected": 1, "evenkeel.refused_calls": 8})
	})
	own.close()
	own.look(5, 5)
	eventually(t, "what was refused stays", func() bool { return m.are(map[string]int64{"evenkeel.refused_calls": 8}) })
}
