package grpcbalancer

import (
	"sync"

	"google.golang.org/grpc/connectivity"
)

// meter counts for gRPC's own metrics. Numbers of endpoints are recorded by their changes, so that those of
// several channels to one target add up. What records is somebody else's code: it is called without locks, by a
// goroutine that ends when there is nothing to record.
type meter struct {
	record *recorder

	mu sync.Mutex

	// Guarded by mu.
	over      bool // the policy is closed
	recording bool // run runs
	wanted    [meteredStates]int64
	recorded  [meteredStates]int64
	refused   int64 // not recorded yet
}

// What endpoints are counted by: the connection's state, and whether they are ejected, which is another
// matter.
const (
	meteredEjected = int(connectivity.Shutdown)
	meteredStates  = meteredEjected + 1
)

var meteredNames = [meteredStates]string{
	connectivity.Idle:             "idle",
	connectivity.Connecting:       "connecting",
	connectivity.Ready:            "ready",
	connectivity.TransientFailure: "transient_failure",
	meteredEjected:                "ejected",
}

// connections records how many connections are in each state.
func (m *meter) connections(counts [connectivity.Shutdown]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	for state, n := range counts {
		m.wanted[state] = int64(n)
	}
	m.start()
}

// look records what a look at the pool found.
func (m *meter) look(ejected int, refused uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	m.wanted[meteredEjected] = int64(ejected)
	m.refused += int64(refused)
	m.start()
}

// close takes all endpoints back.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	m.wanted = [meteredStates]int64{}
	m.start()
}

// start has run run. Called under mu.
func (m *meter) start() {
	if !m.recording && (m.wanted != m.recorded || m.refused > 0) {
		m.recording = true
		go m.run()
	}
}

func (m *meter) run() {
	for {
		m.mu.Lock()
		wanted, recorded, refused := m.wanted, m.recorded, m.refused
		m.recorded, m.refused = wanted, 0
		m.recording = wanted != recorded || refused > 0
		more := m.recording
		m.mu.Unlock()
		if !more {
			return
		}
		for state := range wanted {
			if d := wanted[state] - recorded[state]; d != 0 {
				m.record.endpoints(d, meteredNames[state])
			}
		}
		if refused > 0 {
			m.record.refused(refused)
		}
	}
}
