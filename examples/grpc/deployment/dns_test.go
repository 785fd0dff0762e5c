package deployment

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamesAreResolvedByGo(t *testing.T) {
	n, err := serveNames("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	want := []string{"127.0.0.1", "127.0.0.2"}
	n.set(Name, []netip.Addr{netip.MustParseAddr(want[0]), netip.MustParseAddr(want[1])})
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", n.addr())
	}}
	got, err := r.LookupHost(t.Context(), Name+".")
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := r.LookupHost(t.Context(), "nobody.example."); err == nil {
		t.Errorf("a name that nobody knows is %v", got)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06orders\x07example\x00\x00\x01\x00\x01"))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Add([]byte{})
	n := &names{known: map[string][]netip.Addr{Name: {netip.MustParseAddr("127.0.0.1")}}}
	f.Fuzz(func(t *testing.T, query []byte) {
		if answer := n.answer(query); answer != nil && len(answer) > len(query)+16 {
			t.Errorf("%d bytes for %d", len(answer), len(query))
		}
	})
}
