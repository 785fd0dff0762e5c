#!/usr/bin/env bash
# Builds and tests what uses gRPC with newer releases of it than go.mod requires: the newest patch of
# each minor version. Run it from anywhere: bash scripts/grpcversions.sh
#
# A user's build takes the newest version that anybody in it asks for, not ours, and gRPC changes its
# experimental API two or three times a year. go.mod and go.sum stay as they are: each version has copies
# of its own. Nested modules are not part of it.
#
# Where no list of versions can be had, as without a network, it says so and passes. A version that is
# listed, and cannot be had, built or tested, fails it.
set -euo pipefail
shopt -s inherit_errexit
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export GOWORK=off

grpc=google.golang.org/grpc
current='none yet'
work=$(mktemp -d)
finish() {
	local status=$?
	rm -rf -- "$work"
	if ((status != 0)); then
		echo "grpc versions: FAILED with $grpc $current after $SECONDS s" >&2
	fi
}
trap finish EXIT

# newest_patches VERSION reads versions and prints the newest release of each minor version, as far as it is
# newer than VERSION, a release itself, oldest first. -dev and -rc are no releases.
newest_patches() {
	{ cat; echo "$1"; } | { grep -E '^v[0-9]+\.[0-9]+\.[0-9]+$' || (($? == 1)); } | sort -Vu |
		awk -v have="$1" '
			newer { split($0, part, "."); minor = part[1] "." part[2]
				if (!(minor in last)) order[++n] = minor
				last[minor] = $0 }
			$0 == have { newer = 1 }
			END { for (i = 1; i <= n; i++) print last[order[i]] }'
}

# users prints the packages with tests that have gRPC in them.
users() {
	go list -mod=mod "$1" -test -f '{{.ImportPath}}{{range .Deps}} {{.}}{{end}}' ./... |
		sed -nE "s|^([^ ]+)\.test .* $grpc( .*)?\$|\1|p"
}

# try VERSION builds and tests with that version.
try() {
	local mod=$work/$1.mod packages got started=$SECONDS
	current=$1
	cp go.mod "$mod"
	cp go.sum "$work/$1.sum"
	go get -modfile="$mod" "$grpc@$1" 2>"$work/get" || { cat "$work/get" >&2; return 1; }
	got=$(go list -mod=mod -modfile="$mod" -m -f '{{.Version}}' "$grpc")
	if [[ $got != "$1" ]]; then
		echo "the build takes $got instead" >&2
		return 1
	fi
	packages=$(users "-modfile=$mod")
	if [[ -z $packages ]]; then
		echo 'no package uses it' >&2
		return 1
	fi
	go build -mod=mod -modfile="$mod" ./...
	xargs go vet -mod=mod -modfile="$mod" <<<"$packages"
	xargs go test -mod=mod -modfile="$mod" -short -count=1 <<<"$packages" >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
	echo "   $1: $(wc -l <<<"$packages") packages built and tested, $((SECONDS - started)) s"
}

required=$(go list -m -f '{{.Version}}' "$grpc")
if [[ $required == *-* ]]; then
	echo "go.mod requires $required, which is no release" >&2
	exit 1
fi
if ! listed=$(go list -m -versions -f '{{range .Versions}}{{.}}{{"\n"}}{{end}}' "$grpc" 2>"$work/list"); then
	cat "$work/list"
	echo "   NOTE: the versions of $grpc cannot be listed; none but $required was looked at"
	exit 0
fi
newer=$(newest_patches "$required" <<<"$listed")
if [[ -z $newer ]]; then
	echo "   NOTE: no release of $grpc is newer than $required"
	exit 0
fi
for version in $newer; do
	try "$version"
done
