package deployment

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// names is a DNS server that knows addresses of names, and nothing else: what a resolver needs to find the
// replicas, on UDP.
type names struct {
	conn   net.PacketConn
	served chan struct{}

	mu    sync.Mutex
	known map[string][]netip.Addr // IPv4
}

func serveNames(addr string) (*names, error) {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	n := &names{conn: conn, served: make(chan struct{}), known: map[string][]netip.Addr{}}
	go n.serve()
	return n, nil
}

func (n *names) addr() string { return n.conn.LocalAddr().String() }

func (n *names) set(name string, addrs []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[name] = addrs
}

func (n *names) close() error {
	err := n.conn.Close()
	<-n.served
	return err
}

func (n *names) serve() {
	defer close(n.served)
	buffer := make([]byte, 512)
	for {
		size, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer := n.answer(buffer[:size]); answer != nil {
			_, _ = n.conn.WriteTo(answer, from) // a client that got nothing asks again
		}
	}
}

// Of RFC 1035.
const (
	headerSize   = 12
	typeA        = 1
	classIN      = 1
	flagsAnswer  = 0x8480 // a response, authoritative, recursion available
	codeNoName   = 3
	pointerToAsk = 0xc000 | headerSize // the name in the question
	seconds      = 1                   // that an answer may be kept
)

// answer answers a query for one name, nil if it is no such thing.
func (n *names) answer(query []byte) []byte {
	if len(query) < headerSize || binary.BigEndian.Uint16(query[4:]) != 1 {
		return nil
	}
	name, end := nameIn(query)
	if end == 0 || end+4 > len(query) {
		return nil
	}
	n.mu.Lock()
	addrs, known := n.known[name]
	n.mu.Unlock()
	flags := uint16(flagsAnswer)
	if !known {
		flags |= codeNoName
	}
	if binary.BigEndian.Uint16(query[end:]) != typeA || binary.BigEndian.Uint16(query[end+2:]) != classIN {
		addrs = nil // the name is there, and has nothing of that kind
	}
	b := append([]byte(nil), query[:2]...) // its number
	b = binary.BigEndian.AppendUint16(b, flags)
	for _, count := range []int{1, len(addrs), 0, 0} {
		b = binary.BigEndian.AppendUint16(b, uint16(count))
	}
	b = append(b, query[headerSize:end+4]...)
	for _, a := range addrs {
		b = binary.BigEndian.AppendUint16(b, pointerToAsk)
		b = binary.BigEndian.AppendUint16(b, typeA)
		b = binary.BigEndian.AppendUint16(b, classIN)
		b = binary.BigEndian.AppendUint32(b, seconds)
		b = binary.BigEndian.AppendUint16(b, 4)
		four := a.As4()
		b = append(b, four[:]...)
	}
	return b
}

// nameIn reads the name that is asked for, and where it ends; 0 if it does not.
func nameIn(query []byte) (name string, end int) {
	var labels []string
	for at := headerSize; at < len(query); {
		size := int(query[at])
		at++
		if size == 0 {
			return strings.ToLower(strings.Join(labels, ".")), at
		}
		if size > 63 || at+size > len(query) {
			return "", 0
		}
		labels = append(labels, string(query[at:at+size]))
		at += size
	}
	return "", 0
}
