package limit

import (
	"sync/atomic"
	"testing"
)

// plain is what a limit costs at least: one shared counter and a comparison.
type plain struct {
	n    atomic.Int64
	most int64
}

func (p *plain) acquire() bool {
	if p.n.Add(1) > p.most {
		p.n.Add(-1)
		return false
	}
	return true
}

func BenchmarkRequest(b *testing.B) {
	p := &plain{most: 1 << 30}
	off := newLimiter(b, Config{})
	on, _ := distressed(b, Config{Floor: 1 << 20}, 1)
	budget := newBudget(b, BudgetConfig{})
	var c Cap
	for _, one := range []struct {
		name string
		run  func()
	}{
		{"plain", func() {
			if p.acquire() {
				p.n.Add(-1)
			}
		}},
		{"limit=off", func() {
			if off.Acquire() {
				off.Release()
			}
		}},
		{"limit=off+observe", func() {
			if off.Acquire() {
				off.Observe(Answered, ms, sec)
				off.Release()
			}
		}},
		{"limit=on", func() {
			if on.Acquire() {
				on.Release()
			}
		}},
		{"cap", func() {
			if c.Acquire(1 << 20) {
				c.Release()
			}
		}},
		{"budget", func() {
			budget.Begin(sec)
			budget.End()
		}},
	} {
		b.Run(one.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.run()
			}
		})
		b.Run(one.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one.run()
				}
			})
		})
	}
}

func BenchmarkRefuse(b *testing.B) {
	l, _ := distressed(b, Config{}, 1)
	b.ReportAllocs()
	for b.Loop() {
		if l.Acquire() {
			b.Fatal("not refused")
		}
	}
}

func BenchmarkTry(b *testing.B) {
	for _, c := range []struct {
		name   string
		config BudgetConfig
	}{
		{"within=reserve", BudgetConfig{PerSecond: MaxPerSecond}},
		{"within=requests", BudgetConfig{PerSecond: None, Percent: MaxPercent}},
		{"denied", BudgetConfig{PerSecond: None}},
	} {
		b.Run(c.name, func(b *testing.B) {
			budget := newBudget(b, c.config)
			b.ReportAllocs()
			for b.Loop() {
				budget.Begin(0)
				g, _ := budget.Try(0)
				g.End()
				budget.End()
			}
		})
	}
}
