package picker

// Outcome says how a request ended, as far as balancing is concerned.
type Outcome uint8

// The outcomes, with what each does to the endpoint's record. All of them release
// the request from the in-flight count.
const (
	// Unknown teaches nothing: a pick that became no request, a limit of the client's
	// own, a result that cannot be told.
	Unknown Outcome = iota
	// Success is an answer, the caller's own mistakes (most 4xx, INVALID_ARGUMENT …)
	// included: a latency sample, and a success.
	Success
	// Failure is an answer that blames the endpoint, or a connection that broke after
	// the request was sent: a failure and no latency sample, so that failing fast
	// never looks fast.
	Failure
	// Unreached is a failure before anything was sent (refused, TLS): as Failure;
	// the request may always be sent again.
	Unreached
	// Timeout is a time limit that ran out after sending: a failure, and the elapsed
	// time is a lower bound of the latency.
	Timeout
	// Overload is an endpoint that asks for less (429, RESOURCE_EXHAUSTED …): it is
	// avoided until its hint; no latency sample, success unchanged.
	Overload
	// Canceled is a caller that left: the elapsed time is a lower bound of the
	// latency; success unchanged.
	Canceled
)

// Status is what an answer said in its own protocol, for rules that draw their lines where an
// [Outcome] no longer shows them. The zero Status says nothing.
type Status uint16

// grpcStatus is above all HTTP statuses.
const grpcStatus = 1000

// HTTPStatus returns the Status of an HTTP answer, the zero one for a number that is no status.
func HTTPStatus(code int) Status {
	if code < 100 || code > 599 {
		return 0
	}
	return Status(code)
}

// GRPCStatus returns the Status of a gRPC status code. Codes that gRPC does not define are UNKNOWN.
func GRPCStatus(code uint32) Status {
	if code > grpcMaxCode {
		code = grpcUnknown
	}
	return Status(grpcStatus + code)
}

// HTTP returns the HTTP status; ok is false if it is none.
func (s Status) HTTP() (code int, ok bool) { return int(s), s >= 100 && s < 600 }

// GRPC returns the gRPC status code; ok is false if it is none.
func (s Status) GRPC() (code uint32, ok bool) {
	return uint32(s) - grpcStatus, s >= grpcStatus && s <= grpcStatus+grpcMaxCode
}

var outcomeNames = [...]string{"unknown", "success", "failure", "unreached", "timeout", "overload", "canceled"}

// String returns the outcome's name in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// OutcomeOfHTTP maps the status code of an HTTP answer. retryAfter says whether the
// answer has a valid Retry-After header, which makes a 503 an Overload. 1xx to 3xx
// and 4xx are Success (the caller's own fault) except 429; 501 is the caller's
// fault too; other 5xx are Failure; numbers that are no status are Unknown.
func OutcomeOfHTTP(status int, retryAfter bool) Outcome {
	switch {
	case status == 429, status == 503 && retryAfter:
		return Overload
	case status >= 100 && status < 500, status == 501:
		return Success
	case status >= 500 && status < 600:
		return Failure
	default:
		return Unknown
	}
}

// GRPCFacts is what an adapter knows of a gRPC attempt beside its status code.
type GRPCFacts struct {
	// BytesSent says that something of the request was written to the connection.
	BytesSent bool
	// BytesReceived says that something came back from the server.
	BytesReceived bool
	// Pushback says that the answer carried a valid grpc-retry-pushback-ms.
	Pushback bool
	// CallerLeft says that the caller cancelled: its context's own word, never the
	// error's, since a server may answer CANCELLED too.
	CallerLeft bool
}

// gRPC status codes (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
const (
	grpcOK                = 0
	grpcCanceled          = 1
	grpcUnknown           = 2
	grpcDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcDataLoss          = 15
	grpcMaxCode           = 16
)

// OutcomeOfGRPC maps the status code of a gRPC attempt. UNKNOWN is a failure, since
// that is what a server's plain error becomes. Codes that gRPC does not define
// count as UNKNOWN, as its own libraries do.
func OutcomeOfGRPC(code uint32, f GRPCFacts) Outcome {
	if code == grpcOK {
		if !f.BytesSent && !f.BytesReceived {
			return Unknown // picked, but never became a request
		}
		return Success
	}
	if f.CallerLeft {
		return Canceled
	}
	switch code {
	case grpcCanceled:
		return Unknown // the server's word or a proxy's; the caller is still there
	case grpcDeadlineExceeded:
		if f.BytesSent {
			return Timeout
		}
		return Unknown // spent waiting in this client
	case grpcResourceExhausted:
		if f.Pushback || f.BytesReceived {
			return Overload
		}
		return Unknown // a limit of this client
	case grpcUnavailable:
		if !f.BytesSent && !f.BytesReceived {
			return Unreached
		}
		return Failure
	case grpcUnknown, grpcInternal, grpcDataLoss:
		return Failure
	}
	if code > grpcMaxCode {
		return Failure
	}
	return Success
}
