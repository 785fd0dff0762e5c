package interop

import (
	"net"
	"regexp"
	"strings"
	"testing"
)

// examples are those of gRPC's whose client can be told where its server is. Its service config comes with its
// addresses, as that of a name in the DNS may: unlike a default one, the program need not know of it.
var examples = []struct {
	client, server string
	ips            []string
	config         string
	says           []string // regular expressions
}{
	{"helloworld/greeter_client", "helloworld/greeter_server", []string{"127.0.42.1", "127.0.42.2", "127.0.42.3"},
		`{"loadBalancingConfig": [{"evenkeel": {}}]}`, []string{`Greeting: Hello world\n`}},
	{"route_guide/client", "route_guide/server", []string{"127.0.0.1"},
		`{"loadBalancingConfig": [{"evenkeel": {"policy": "round_robin"}}]}`,
		[]string{`Berkshire Valley Management Area Trail`, `Route summary: point_count:\s*[1-9]`, `Got message First message`}},
	// Three of four calls fail there, and the client makes one, with four attempts.
	{"features/retry/client", "features/retry/server", []string{"127.0.42.1", "127.0.42.2", "127.0.42.3"},
		`{"loadBalancingConfig": [{"evenkeel": {"outlier": {"mode": "soft"}}}], "methodConfig": [{
			"name": [{"service": "grpc.examples.echo.Echo"}],
			"retryPolicy": {"maxAttempts": 4, "initialBackoff": ".01s", "maxBackoff": ".01s",
				"backoffMultiplier": 1.0, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`,
		[]string{`UnaryEcho reply: message:\s*"Try and Success"`}},
	{"features/deadline/client", "features/deadline/server", []string{"127.0.42.1", "127.0.42.2"},
		`{"loadBalancingConfig": [{"evenkeel": {"policy": {"p2c": {"signal": "in_flight"}}}}]}`,
		[]string{`\[1\] wanted = OK, got = OK\n`, `\[2\] wanted = DeadlineExceeded, got = DeadlineExceeded\n`,
			`\[3\] wanted = OK, got = OK\n`, `\[4\] wanted = DeadlineExceeded, got = DeadlineExceeded\n`,
			`\[5\] wanted = OK, got = OK\n`, `\[6\] wanted = DeadlineExceeded, got = DeadlineExceeded\n`}},
}

const exampleModule = "google.golang.org/grpc/examples/"

func TestOfficialExampleClientsRunUnchanged(t *testing.T) {
	names := startNameServer(t)
	for _, e := range examples {
		t.Run(e.client, func(t *testing.T) {
			client := buildWithImport(t, exampleModule+e.client, nil)
			port := startPublished(t, buildPublished(t, exampleModule+e.server), "port")
			names.set("svc.test", answer{a: e.ips})
			names.set("_grpc_config.svc.test", answer{txt: `grpc_config=[{"serviceConfig": ` + e.config + `}]`})
			saying(t, e.says, func() (string, error) {
				return run(t, client, "-addr=dns://"+names.addr+"/svc.test:"+port)
			})
		})
	}
}

// saying checks what a client says, and that the policy balanced it. It has three tries: these programs give a call
// a second, and a machine that has much else to do takes longer now and then.
func saying(t *testing.T, wants []string, try func() (said string, err error)) {
	t.Helper()
	for left := 3; ; {
		left--
		said, err := try()
		ok := err == nil
		for _, want := range wants {
			ok = ok && regexp.MustCompile(want).MatchString(said)
		}
		if ok {
			balancedBy(t, "evenkeel", said)
			return
		}
		if left == 0 || !strings.Contains(said, "DeadlineExceeded") {
			t.Fatalf("%v: %s\nwant %q", err, last(said), wants)
		}
	}
}

// The client of the example for load balancing has its service config in its source: the name in there is replaced, and
// nothing else. It has its addresses there, too.
func TestOfficialLoadBalancingExampleIsBalancedByName(t *testing.T) {
	const example = exampleModule + "features/load_balancing/"
	client := buildWithImport(t, example+"client", func(text string) string {
		const theirs, ours = `{"round_robin":{}}`, `{"evenkeel":{"policy":"round_robin"}}`
		if strings.Count(text, theirs) != 1 {
			t.Fatalf("not once in the client: %s", theirs)
		}
		return strings.Replace(text, theirs, ours, 1)
	})
	server := buildPublished(t, example+"server")
	for _, port := range []string{"50051", "50052"} {
		lis, err := net.Listen("tcp", ":"+port)
		if err != nil {
			t.Skipf("the example's port is somebody's: %v", err)
		}
		_ = lis.Close()
	}
	ended := startProgram(t, server)
	if !listens(t, ended, "50051") || !listens(t, ended, "50052") {
		t.Skip("the example's ports are somebody's")
	}
	said, err := run(t, client)
	if err != nil {
		t.Fatalf("%v: %s", err, last(said))
	}
	if got := strings.Join(policies(said), " "); got != "pick_first evenkeel" {
		t.Errorf("the client's channels had the policies %s", got)
	}
	_, second, _ := strings.Cut(said, "with round_robin")
	for _, port := range []string{"50051", "50052"} {
		// Of ten; the first ones go to whoever is connected first.
		if n := strings.Count(second, "this is examples/load_balancing (from :"+port+")"); n < 2 {
			t.Errorf("%d of 10 calls went to the server at port %s: %s", n, port, last(second))
		}
	}
}
