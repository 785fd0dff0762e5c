package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// servingStatus is the status field of grpc.health.v1.HealthCheckResponse.
type servingStatus int32

const (
	unknown servingStatus = iota
	serving
	notServing
	serviceUnknown
)

var servingNames = [...]string{unknown: "UNKNOWN", serving: "SERVING", notServing: "NOT_SERVING", serviceUnknown: "SERVICE_UNKNOWN"}

// String returns the status's name.
func (s servingStatus) String() string {
	if s >= 0 && int(s) < len(servingNames) {
		return servingNames[s]
	}
	return fmt.Sprintf("serving status %d", int32(s))
}

// prefix is what gRPC puts before each message: whether it is compressed, and its length.
const prefix = 5

// healthRequest returns a HealthCheckRequest, whose one field is the service, with gRPC's prefix.
func healthRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = append(message, 1<<3|2)
		message = binary.AppendUvarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(framed, message...)
}

var (
	errFraming  = errors.New("the answer is not one gRPC message")
	errProtobuf = errors.New("the answer is no HealthCheckResponse")
)

// parseHealth reads one HealthCheckResponse with gRPC's prefix. Fields that are not known are skipped, and
// of one that comes twice the last counts, as protobuf has it.
func parseHealth(framed []byte) (servingStatus, error) {
	if len(framed) < prefix || framed[0] != 0 || uint64(binary.BigEndian.Uint32(framed[1:])) != uint64(len(framed)-prefix) {
		return 0, errFraming
	}
	var status servingStatus
	for rest := framed[prefix:]; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return 0, errProtobuf
		}
		rest = rest[n:]
		size, value := fieldSize(rest, tag&7)
		if size < 0 {
			return 0, errProtobuf
		}
		if tag == 1<<3 { // field 1, a varint
			status = servingStatus(value)
		}
		rest = rest[size:]
	}
	return status, nil
}

// fieldSize returns how many bytes at the beginning of b are a field of that wire type, and the
// value of a varint; -1 if there is none. Groups, which no version of the message has, are none.
func fieldSize(b []byte, wire uint64) (size int, value uint64) {
	switch wire {
	case 0:
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return -1, 0
		}
		return n, v
	case 1:
		size = 8
	case 2:
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return -1, 0
		}
		return n + int(length), 0
	case 5:
		size = 4
	default:
		return -1, 0
	}
	if len(b) < size {
		return -1, 0
	}
	return size, 0
}
