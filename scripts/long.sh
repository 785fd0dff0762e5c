#!/usr/bin/env bash
# The long part: what proves a claim and takes minutes. Run it from anywhere: bash scripts/long.sh
# CI runs it after the gate. With the gate it has to stay below 45 minutes on two cores.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export GOWORK=off

step() {
	local started=$SECONDS
	echo "== $1"
	shift
	"$@"
	echo "   $((SECONDS - started)) s"
}

step 'simulation sweeps' env EVENKEEL_LONG=1 go test -count=1 -run Long -timeout 60m ./internal/sim/...
step 'subsets with all seeds' env EVENKEEL_LONG=1 go test -count=1 -timeout 20m ./subset
step 'servers in trouble' env EVENKEEL_LONG=1 go test -count=1 -run Long -timeout 15m ./internal/chaos/...
step 'everything at once for a minute' env EVENKEEL_LONG=1 go test -race -count=1 -run EverythingAtOnceHolds -timeout 10m .
step 'newer releases of gRPC' bash scripts/grpcversions.sh
