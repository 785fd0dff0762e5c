// Package orcahttp carries load reports (ORCA) over HTTP: it reads them from responses, writes
// them, and has a middleware for Go backends that counts requests and reports on each response.
//
// A report is in one of two header fields, or in a trailer of the same name:
//
//	endpoint-load-metrics: TEXT cpu_utilization=0.3, rps_fractional=120, named_metrics.rif=4
//	endpoint-load-metrics: JSON {"cpu_utilization": 0.3, "rps_fractional": 120}
//	endpoint-load-metrics: BIN CQAAAAAAAOA/MQAAAAAAAFlA
//	endpoint-load-metrics-bin: CQAAAAAAAOA/MQAAAAAAAFlA
//
// The last is what gRPC sends. It wins where both are.
//
// # What is read
//
// Where implementations differ, both forms are taken: "=" and ":" between key and number, any
// blanks and empty elements in the list, JSON in either spelling of names and with numbers in
// quotes, base64 with and without padding, and unknown fields of JSON and of the message. Nothing
// else is guessed: a value without one of the prefixes, an unknown key of TEXT, a key twice, a
// second header line, a number that is not decimal and finite, a negative one where none can be,
// more than [orca.MaxBytes] or [orca.MaxEntries]. Such a report is dropped whole, with an
// [orca.Error] that says why, and the response is not touched.
//
// # Cost
//
// A response without a report costs two lookups in its header, no allocation. One with a handful
// of numbers in TEXT or BIN costs about a microsecond and up to two allocations, none of them for
// TEXT if the [orca.Report] is used again. JSON costs ten times that.
//
// # Concurrency
//
// All functions are safe for concurrent use; a Handler serves any number of requests at once.
package orcahttp
