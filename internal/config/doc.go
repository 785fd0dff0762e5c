// Package config is the JSON form of [evenkeel.Config], one for gRPC service configs, xDS and files:
//
//	{"policy": {"p2c": {"signal": "latency"}}}
//	{"policy": "round_robin"}
//
// Names are those of the Go fields in lower case with underscores. What is left out, or null, has
// the zero value of its field and with it the documented default; nothing at all, null and {} are
// the default config. A policy is an object whose one member names it and holds its parameters; the
// name alone stands for all defaults.
//
// Keys are a list of objects, [{"header": "x-user"}, {"context": true}]; "requestHashHeader", the
// name that gRFC A76 has for one header, is read as such a list.
//
// A subset is an object, {"subset": {"size": 20, "client_index_env": "POD_INDEX"}}; {} switches it on with
// all defaults. The index is one of "client_index": 3, "client_index_env" and "client_index_host": true.
//
// Ejection and the limit are objects, {"outlier": {"mode": "envoy"}, "limit": {"ceiling": 200}}; {"outlier":
// {}} is soft ejection for any policy, {"outlier": {"mode": "off"}} none for any, and
// {"limit": {"disabled": true}} no limit. Percentages may be 0; another 0 that Go would take for a default is
// refused.
//
// Health checks are an object, {"health": {"protocol": "http", "path": "/healthz", "interval": "2s"}}; {} switches
// them on with all defaults.
//
// Slow start is an object, {"slow_start": {"window": "30s", "floor": 5}}, and {} switches it on with all
// defaults; "drain_timeout" is a duration.
//
// An unknown field is ignored and reported, because a newer control plane must not break an older
// client; "strict": true at the top refuses it. A known field with a wrong value, a policy that does
// not exist among them, is always refused. All problems are found at once.
//
// Numbers may come as JSON doubles (2.0 for 2), since proto3's Struct knows no others. Of a key that
// appears twice the last one counts, as in encoding/json; unlike there, names have to match exactly.
// Input is bounded in size and depth.
//
// Adding a policy is one line in its table (policy.go), adding a field one line in a list; a test
// fails until each exported field has one.
//
// Functions are pure and may be called concurrently.
package config
