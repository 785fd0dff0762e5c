#!/usr/bin/env bash
# The gate: what every commit passes. Run it from anywhere: bash scripts/check.sh
#
# It needs go, git and the usual command-line tools. It stops at the first step that fails and names
# it. On two cores it has to stay below 15 minutes; what takes longer belongs in scripts/long.sh.
set -euo pipefail
shopt -s inherit_errexit
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# A workspace file in a directory above would choose other versions than go.mod does.
export GOWORK=off

current_step='start'
work=$(mktemp -d)
finish() {
	local status=$?
	rm -rf -- "$work"
	if ((status != 0)); then
		echo "gate: FAILED in step \"$current_step\" after $SECONDS s" >&2
	fi
}
trap finish EXIT

# step NAME FUNCTION runs one step and prints its time. The function is called as a plain command:
# inside a condition, bash would ignore errexit in it.
step() {
	local started=$SECONDS
	current_step=$1
	echo "== $1"
	"$2"
	echo "   $((SECONDS - started)) s"
}

# files PATTERN... lists the files that are, or would be, in a commit. git goes on listing a deleted
# file until its deletion is staged.
files() {
	git ls-files -z --cached --others --exclude-standard -- "$@" | sort -zu |
		while IFS= read -r -d '' f; do
			if [[ -f $f ]]; then printf '%s\n' "$f"; fi
		done
}

# without REGEXP keeps the lines that do not match; that none is left is no error.
without() { grep -vE -- "$1" || (($? == 1)); }

# ---- form ------------------------------------------------------------------------------------

check_gofmt() {
	local bad
	bad=$(files '*.go' | xargs -r gofmt -l)
	if [[ -n $bad ]]; then
		echo "$bad"
		echo '   refused: not in the form that gofmt gives'
		return 1
	fi
}

check_vet() { go vet ./...; }

# Exits 1 when a newer form of the language or of the library would replace something.
check_fix() { go fix -diff ./...; }

check_tidy() { go mod tidy -diff; }

# The tools have a module of their own, so that they take no part in a user's choice of versions.
check_staticcheck() { go tool -modfile=tools/go.mod staticcheck ./...; }

# ---- house greps -----------------------------------------------------------------------------

# Programs may print, stop and draw as they like; the library runs inside somebody else's.
programs='^(examples|cmd|bench|interop|tools)/'

code_files() { files '*.go' | without '_test\.go$'; }
library_files() { code_files | without "$programs"; }
quiet_files() { library_files | without '^internal/sim/'; }
go_and_shell_files() { files '*.go' '*.sh' .ci/run; }
all_files() { files .; }

refused=0

# refuse REASON REGEXP LISTER [BUT] prints the lines of the listed files that match, except those that
# match BUT as "file:line:text". It does not stop at a hit, so that one run shows them all.
refuse() {
	local names hits
	names=$("$3")
	if [[ -z $names ]]; then return 0; fi
	# grep's 1 says "no line"; xargs makes 123 of it.
	hits=$(tr '\n' '\0' <<<"$names" | xargs -0 grep -nHIE -- "$2" || (($? == 123)))
	hits=$(without "${4:-^$}" <<<"$hits")
	if [[ -n $hits ]]; then
		printf '%s\n   refused: %s\n' "$hits" "$1"
		refused=$((refused + 1))
	fi
}

# refuse_code REASON REGEXP LISTER lets a line pass that is nothing but a comment.
refuse_code() { refuse "$@" '^[^:]+:[0-9]+:[[:space:]]*//'; }

# Tests that do not run in virtual time.
real_time_tests() {
	local names
	names=$(files '*_test.go')
	if [[ -z $names ]]; then return 0; fi
	tr '\n' '\0' <<<"$names" | xargs -0 grep -LF '"testing/synctest"' || (($? == 123))
}

refuse_waiting() {
	# A sleeping test is slow where the machine is fast, and flaky where it is slow. In a synctest
	# bubble time is virtual and a sleep costs nothing.
	refuse_code 'time.Sleep in a test without testing/synctest' '\btime\.Sleep\(' real_time_tests
	# Beside a context in a select it leaves a timer behind, and a test that waits for it sleeps.
	refuse_code 'time.After; a timer with Stop, or a context with a deadline, ends with its user' \
		'\btime\.After\(' go_and_shell_files
}

refuse_unsafe() {
	# Whatever the input, the caller's process is not ours to end.
	refuse_code 'panic in library code; return an error' '(^|[^.[:alnum:]_])panic\(' library_files
	# A *rand.Rand is not safe for concurrent use, and with a mutex every pick would wait for it.
	refuse_code 'rand.New outside simulations; take a func() uint64' '\brand\.New\(' quiet_files
}

refuse_noise() {
	# A library has no place to write to: it offers hooks and counters, its user decides.
	refuse_code 'logging in a library package' \
		'"(log|log/slog|google\.golang\.org/grpc/grpclog)"|\bfmt\.(Print|Printf|Println)\(|\bos\.(Stdout|Stderr)\b' \
		quiet_files
	# A note that nothing tracks is not seen again. The word is in two parts, or this line would count.
	refuse 'a to-do without the number of its issue' 'TO''DO([^#]*$|[^#]*#[^0-9])' go_and_shell_files
	# Such a path exists on one machine alone, and says nothing to a reader elsewhere.
	refuse 'a path of one machine' '(^|[^[:alnum:]_.~-])/(work|root)/' all_files
}

# One idea per file: beyond 400 lines there are two.
refuse_long_files() {
	local names f n
	names=$(code_files)
	for f in $names; do
		n=$(wc -l <"$f")
		if ((n > 400)); then
			echo "$f: $n lines"
			echo '   refused: more than 400 lines; give each idea its file'
			refused=$((refused + 1))
		fi
	done
}

check_house() {
	refused=0
	refuse_waiting
	refuse_unsafe
	refuse_noise
	refuse_long_files
	((refused == 0))
}

# ---- tests -----------------------------------------------------------------------------------

packages_but_sim() { go list ./... | without '/internal/sim(/|$)'; }

# The race detector needs cgo and a C compiler, which go and git do not bring along.
can_race() { [[ $(go env CGO_ENABLED) == 1 ]] && command -v "$(go env CC)" >/dev/null; }

# Runs the seeds of the fuzz targets too. The simulator's long runs belong in scripts/long.sh.
check_tests() {
	local flags=(-shuffle=on -timeout 20m) # a busy machine is not a hang
	if can_race; then
		flags+=(-race)
	else
		echo '   NOTE: no C compiler, the tests run without the race detector'
	fi
	packages_but_sim | xargs go test "${flags[@]}"
	if [[ -d internal/sim ]]; then
		go test "${flags[@]}" -short ./internal/sim/...
	fi
}

# A benchmark that nobody runs stops working unnoticed; one round of each shows that it does.
check_benchmarks() { go test -run '^$' -bench . -benchtime 1x ./...; }

# Tables and 64-bit atomics have to work where int and alignment have 32 bits. What is assembled or
# aligned wrongly shows when it runs, so that the core's tests run too where the machine can.
check_386() {
	GOARCH=386 go build ./...
	GOARCH=386 go vet ./...
	GOARCH=386 go test -c -o "$work/probe" .
	if "$work/probe" -test.run '^$' >/dev/null 2>&1; then
		go list -deps . | grep '^github.com/evenkeel/evenkeel' | GOARCH=386 xargs go test -short
	else
		echo '   NOTE: this machine runs no 386 programs, the tests were built only'
	fi
}

# Modules inside the tree are not part of ./... and would rot unseen.
check_nested() {
	local mods mod dir
	mods=$(files '*/go.mod' | without '^tools/')
	for mod in $mods; do
		dir=${mod%/go.mod}
		echo "   $dir"
		(cd -- "$dir" && go vet ./... && go test ./...)
	done
}

step 'gofmt' check_gofmt
step 'go vet' check_vet
step 'go fix' check_fix
step 'go mod tidy' check_tidy
step 'staticcheck' check_staticcheck
step 'house rules' check_house
step 'tests with the race detector' check_tests
step 'benchmarks, once each' check_benchmarks
step '386' check_386
step 'nested modules' check_nested

echo "gate: passed in $SECONDS s"
