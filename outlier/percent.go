package outlier

import "fmt"

// Percent is a share in percent. The zero Percent is absent, which means the default
// named at the field; an explicit 0 is [PercentOf](0). Two are equal with == if they
// say the same.
type Percent struct {
	value float64
	set   bool
}

// PercentOf returns an explicit percentage. Validate refuses what is not 0 to 100.
func PercentOf(v float64) Percent { return Percent{v, true} }

// Value returns the percentage; ok is false if it is absent.
func (p Percent) Value() (v float64, ok bool) { return p.value, p.set }

// String returns the percentage for people, "default" if it is absent.
func (p Percent) String() string {
	if !p.set {
		return "default"
	}
	return fmt.Sprintf("%g%%", p.value)
}

func (p Percent) or(absent float64) float64 {
	if p.set {
		return p.value
	}
	return absent
}
