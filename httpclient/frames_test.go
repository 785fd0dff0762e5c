package httpclient

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// frame is one of HTTP/2 (RFC 9113, 4.1).
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	endStream, endHeaders, ack = 1, 4, 1
)

// status200 is HPACK for ":status: 200".
var status200 = []byte{0x88}

// frames is the server's end of an HTTP/2 connection that may do what servers seldom do.
type frames struct {
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex // held to write
}

func (f *frames) write(kind, flags byte, stream uint32, payload ...byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = append(binary.BigEndian.AppendUint32(b, stream), payload...)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.conn.Write(b)
}

func (f *frames) read() (fr frame, err error) {
	var head [9]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return fr, err
	}
	fr = frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	fr.payload = make([]byte, binary.BigEndian.Uint32(head[:])>>8)
	_, err = io.ReadFull(f.r, fr.payload)
	return fr, err
}

// reset ends a stream with an error's code, goAway the connection, after the last stream that was looked at.
func (f *frames) reset(stream, code uint32) {
	f.write(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code)...)
}

func (f *frames) goAway(last uint32) {
	f.write(frameGoAway, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(last)<<32)...)
}

// framePeer returns the address of a server that speaks HTTP/2 without TLS and hands requests' frames to on, one
// after the other, until that returns false.
func framePeer(t *testing.T, on func(*frames, frame) bool) string {
	return peer(t, func(conn net.Conn) {
		f := &frames{conn: conn, r: bufio.NewReader(conn)}
		if _, err := io.CopyN(io.Discard, f.r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		f.write(frameSettings, 0, 0)
		for {
			fr, err := f.read()
			if err != nil {
				return
			}
			switch fr.kind {
			case frameSettings:
				if fr.flags&ack == 0 {
					f.write(frameSettings, ack, 0)
				}
			case framePing:
				if fr.flags&ack == 0 {
					f.write(framePing, ack, 0, fr.payload...)
				}
			case frameData, frameHeaders, frameReset:
				if !on(f, fr) {
					return
				}
			}
		}
	})
}

// serveFrames answers each request once it is there.
func serveFrames(f *frames, fr frame) bool {
	if fr.kind != frameReset && fr.flags&endStream != 0 {
		f.write(frameHeaders, endHeaders|endStream, fr.stream, status200...)
	}
	return true
}
