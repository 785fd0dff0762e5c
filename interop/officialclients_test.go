package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// interopCases are those of gRPC's interoperability tests that its own script runs. The two of ORCA's are left
// out: they look for what a test policy of gRPC's puts into a call's context. See orca_test.go.
var interopCases = []string{
	"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
	"timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response", "status_code_and_message",
	"special_status_message", "custom_metadata", "unimplemented_method", "unimplemented_service",
	"rpc_soak", "channel_soak",
}

// everyGuard has all parts of a config.
const everyGuard = `{"strict": true, "policy": {"p2c": {"choices": 3, "signal": "latency"}}, "subset": {"size": 2},
	"outlier": {"mode": "soft"}, "limit": {"floor": 4, "per_endpoint": 50}, "slow_start": {"window": "1s"},
	"health": {"protocol": "grpc"}, "reports": {"weights": "reported", "out_of_band": "1s"}}`

// theInterop is gRPC's interop client, with the import, and its interop server, which listens at all addresses.
type theInterop struct{ client, server, port string }

func TestOfficialInteropClientRunsUnchanged(t *testing.T) {
	i := &theInterop{
		client: buildWithImport(t, "google.golang.org/grpc/interop/client", nil),
		server: buildPublished(t, "google.golang.org/grpc/interop/server"),
	}
	i.port = startPublished(t, i.server, "port")
	t.Run("passes its cases", i.passesItsCases)
	t.Run("is balanced", i.isBalanced)
	t.Run("without the import it refuses the config", refusesWithoutTheImport)
}

// run runs the client against the server at a target, with flags.
func (i *theInterop) run(t *testing.T, target, config string, flags ...string) string {
	t.Helper()
	// Its times are for machines that have nothing else to do.
	flags = append([]string{"-server_host=" + target, "-server_port=0",
		`-service_config_json={"loadBalancingConfig": [{"evenkeel": ` + config + `}]}`,
		"-soak_per_iteration_max_acceptable_latency_ms=20000", "-soak_overall_timeout_seconds=25"}, flags...)
	said, err := run(t, i.client, flags...)
	if err != nil {
		t.Fatalf("%v: %s", err, last(said))
	}
	return said
}

func (i *theInterop) passesItsCases(t *testing.T) {
	names := startNameServer(t)
	names.set("svc.test", answer{a: []string{"127.0.40.1", "127.0.40.2", "127.0.40.3"}})
	secure := startPublished(t, i.server, "port", "-use_tls")
	for name, c := range map[string]struct {
		target, config string
		flags          []string
	}{
		"default":     {"127.0.0.1:" + i.port, `{}`, nil},
		"every guard": {"dns://" + names.addr + "/svc.test:" + i.port, everyGuard, nil},
		"TLS": {"127.0.0.1:" + secure, `null`,
			[]string{"-use_tls", "-use_test_ca", "-server_host_override=foo.test.google.fr"}},
	} {
		for _, testCase := range interopCases {
			t.Run(name+"/"+testCase, func(t *testing.T) {
				said := i.run(t, c.target, c.config, append(c.flags, "-test_case="+testCase)...)
				// One is about a call of a millisecond, which may end before there is an address.
				if testCase != "timeout_on_sleeping_server" || len(policies(said)) > 0 {
					balancedBy(t, "evenkeel", said)
				}
			})
		}
	}
}

// The service config is what gRPC makes of it: the policy has the client's calls, and its own config is in force.
func (i *theInterop) isBalanced(t *testing.T) {
	names := startNameServer(t)
	var ips []string
	for n := range 8 {
		ips = append(ips, fmt.Sprintf("127.0.41.%d", n+1))
	}
	names.set("svc.test", answer{a: ips})
	for _, c := range []struct {
		config      string
		called      int // how many addresses get calls; 0 for any number
		often, many int // how many get so many
	}{
		{`{}`, 8, 1, 20}, // most go to whoever is quickest
		{`{"policy": "round_robin"}`, 8, 8, 10},
		{`{"policy": "round_robin", "subset": {"size": 3, "min_available": -1}}`, 3, 3, 40},
		{`{"policy": {"maglev": {"fallback": "round_robin"}}, "keys": [{"header": "x-user"}]}`, 0, 1, 150},
	} {
		said := i.run(t, "dns://"+names.addr+"/svc.test:"+i.port, c.config, "-test_case=rpc_soak",
			"-soak_iterations=200", "-soak_min_time_ms_between_rpcs=5",
			"-soak_request_size=10", "-soak_response_size=10", "-additional_metadata=x-user:7")
		balancedBy(t, "evenkeel", said)
		calls := peers(said)
		total, often := 0, 0
		for _, n := range calls {
			total += n
			if n >= c.many { // of those that are as good; the first calls go to whoever is connected first
				often++
			}
		}
		if total != 200 || c.called > 0 && len(calls) != c.called || often < c.often {
			t.Errorf("%s: the addresses had %v calls, want 200 in all, and %d with %d at least", c.config, calls, c.often, c.many)
		}
	}
}

// peers returns how many calls of a soak test each address got.
func peers(said string) map[string]int {
	calls := map[string]int{}
	for _, m := range regexp.MustCompile(`peer: (\S+):\d+ .*succeeded`).FindAllStringSubmatch(said, -1) {
		calls[m[1]]++
	}
	return calls
}

// The import is what it takes, and all that it takes.
func refusesWithoutTheImport(t *testing.T) {
	client := buildPublished(t, "google.golang.org/grpc/interop/client")
	said, err := run(t, client, "-test_case=empty_unary", `-service_config_json={"loadBalancingConfig": [{"evenkeel": {}}]}`)
	if err == nil || !strings.Contains(said, "no supported policies found in config") {
		t.Errorf("%v: %s", err, last(said))
	}
}
