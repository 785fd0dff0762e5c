package httpclient

import (
	"errors"
	"strings"
	"unicode"
)

var (
	errZone    = errors.New("want a zone without ':', '%', brackets, spaces and control characters")
	errEscaped = errors.New("want a zone as in %eth0: %25eth0 is the form of URLs")
)

// checkZone refuses what netip takes for the zone of an IPv6 address though it is a mistyped
// port or bracket. Zones of digits alone are numbers of interfaces.
func checkZone(zone string) error {
	if strings.ContainsFunc(zone, func(r rune) bool {
		return strings.ContainsRune(":%[]", r) || unicode.IsSpace(r) || unicode.IsControl(r)
	}) {
		return errZone
	}
	if strings.HasPrefix(zone, "25") && strings.Trim(zone, "0123456789") != "" {
		return errEscaped
	}
	return nil
}
