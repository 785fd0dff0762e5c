package picker_test

import (
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

func TestOutcomeOfHTTPIsTheDocumentedTable(t *testing.T) {
	want := func(status int, retryAfter bool) picker.Outcome {
		switch {
		case status < 100 || status > 599:
			return picker.Unknown
		case status == 429, status == 503 && retryAfter:
			return picker.Overload
		case status == 501 || status < 500:
			return picker.Success
		}
		return picker.Failure
	}
	for status := -1; status < 1000; status++ {
		for _, hint := range []bool{false, true} {
			if got := picker.OutcomeOfHTTP(status, hint); got != want(status, hint) {
				t.Errorf("status %d, Retry-After %v: %v, want %v", status, hint, got, want(status, hint))
			}
		}
	}
}

func TestOutcomeOfGRPCIsTheDocumentedTable(t *testing.T) {
	answered := picker.GRPCFacts{BytesSent: true, BytesReceived: true}
	sent := picker.GRPCFacts{BytesSent: true}
	none := picker.GRPCFacts{}
	for _, tc := range []struct {
		name  string
		codes []uint32
		facts picker.GRPCFacts
		want  picker.Outcome
	}{
		{"the caller's own fault", []uint32{0, 3, 5, 6, 7, 9, 10, 11, 12, 16}, answered, picker.Success},
		{"the endpoint's fault", []uint32{2, 13, 14, 15}, answered, picker.Failure},
		{"codes that gRPC does not define", []uint32{17, 99, 1 << 31}, answered, picker.Failure},
		{"a pick that became no call", []uint32{0}, none, picker.Unknown},
		{"connection lost", []uint32{14}, sent, picker.Failure},
		{"never connected", []uint32{14}, none, picker.Unreached},
		{"deadline after sending", []uint32{4}, sent, picker.Timeout},
		{"the server's deadline", []uint32{4}, answered, picker.Timeout},
		{"deadline in this client's queue", []uint32{4}, none, picker.Unknown},
		{"the server's quota", []uint32{8}, answered, picker.Overload},
		{"pushback", []uint32{8}, picker.GRPCFacts{BytesSent: true, Pushback: true}, picker.Overload},
		{"this client's limit", []uint32{8}, none, picker.Unknown},
		{"the caller left", []uint32{1, 2, 4, 13, 14}, picker.GRPCFacts{BytesSent: true, CallerLeft: true}, picker.Canceled},
		{"the server says cancelled", []uint32{1}, answered, picker.Unknown},
	} {
		for _, code := range tc.codes {
			if got := picker.OutcomeOfGRPC(code, tc.facts); got != tc.want {
				t.Errorf("%s: code %d gives %v, want %v", tc.name, code, got, tc.want)
			}
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	names := map[picker.Outcome]string{
		picker.Unknown: "unknown", picker.Success: "success", picker.Failure: "failure",
		picker.Unreached: "unreached", picker.Timeout: "timeout", picker.Overload: "overload",
		picker.Canceled: "canceled", picker.Canceled + 1: "invalid",
	}
	for o, want := range names {
		if o.String() != want {
			t.Errorf("outcome %d is %q, want %q", uint8(o), o.String(), want)
		}
	}
}
