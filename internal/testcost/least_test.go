package testcost

import (
	"slices"
	"testing"
	"time"
)

// spin uses processor time.
func spin(t *testing.T, least time.Duration) {
	t.Helper()
	start, ok := CPUTime()
	for ok {
		if now, _ := CPUTime(); now-start >= least {
			return
		}
	}
	t.Skip("this system does not tell the processor time of a process")
}

func TestLeastIsTheCheapestOfTheRoundsOfEach(t *testing.T) {
	const rounds = 3
	var order []int
	act := func(i int, costs [rounds]time.Duration) func() {
		n := 0
		return func() {
			spin(t, costs[n])
			order = append(order, i)
			n++
		}
	}
	const short, long = 2 * time.Millisecond, 40 * time.Millisecond
	least := Least(t, rounds, act(0, [rounds]time.Duration{long, short, long}), act(1, [rounds]time.Duration{long, long, long}))
	if least[0] < short || least[0] >= long || least[1] < long {
		t.Errorf("%v, want %v and a little, and %v or more", least, short, long)
	}
	if want := []int{0, 1, 0, 1, 0, 1}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// Waiting costs no processor time, or the time that passes was measured.
func TestWaitingIsNoProcessorTime(t *testing.T) {
	wait := func() {
		timer := time.NewTimer(20 * time.Millisecond)
		<-timer.C
	}
	if least := Least(t, 5, wait); least[0] > 10*time.Millisecond {
		t.Errorf("%v for a wait of 20 ms", least[0])
	}
}

func TestReadingTheTimeAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _, _ = CPUTime() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
