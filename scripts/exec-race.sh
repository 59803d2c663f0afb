#!/usr/bin/env bash
# Compares one process per item with xargs -P and GNU parallel in one run: prints processes/s and the ratios.
#
# exec-race.sh [N] [JOBS]     N processes of `true` (default 100000), JOBS at once (default: one per core)
# WINDROW=PATH                the program; default target/release/windrow
# ROUNDS=3                    runs of each, in turns; the best one counts
# SMOKE=1                     a few processes, as a smoke test; ignore the ratios
# INSTALL=1                   installs GNU parallel with apt-get if it is missing; otherwise it is skipped
# RESULTS=0                   keeps no results; else what each process wrote goes to a file, in order
# MIN_XARGS=0.8 MIN_PARALLEL=2  fail if a ratio is below
#
# Windrow works with a rate, retries, results and a state that resumes; the others have none of these.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${SMOKE:-}" = 1 ]; then
    set -- "${1:-300}" "${2:-2}"
    ROUNDS=1
fi
n=${1:-100000}
jobs=${2:-$(nproc)}
rounds=${ROUNDS:-3}
windrow=${WINDROW:-target/release/windrow}

if [ ! -x "$windrow" ]; then
    echo "no program at $windrow; run cargo build --release, or set WINDROW=PATH" >&2
    exit 2
fi
if ! command -v xargs > /dev/null; then
    echo "skipped: xargs is not installed (Debian: apt-get install findutils)"
    exit 0
fi
if ! command -v parallel > /dev/null && [ "${INSTALL:-}" = 1 ]; then
    apt-get install --yes --quiet parallel > /dev/null
fi
if command -v parallel > /dev/null; then
    has_parallel=1
else
    has_parallel=0
    echo "skipped: GNU parallel is not installed (INSTALL=1 installs it)"
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
# GNU parallel is slow at a hundred thousand: a tenth says how many a second as well.
n_parallel=$((n >= 10000 ? n / 10 : n))

by_xargs() { seq "$n" | xargs -P "$jobs" -n 1 true; }
by_parallel() { seq "$n_parallel" | parallel --will-cite -j "$jobs" true {}; }
by_windrow() {
    local results=()
    if [ "${RESULTS:-1}" = 1 ]; then results=(--results-out "$place/results-$1.ndjson"); fi
    "$windrow" run --total "$n" --state "$place/$1" --rate 1000000/s --concurrency "$jobs" --quiet -o json \
        "${results[@]}" --each 'true {}' > "$place/outcome"
    grep -q "\"succeeded\":$n[,}]" "$place/outcome" || { cat "$place/outcome" >&2; exit 1; }
}

# A command's count and name: processes a second.
rate() {
    local count=$1 begun ended
    shift
    begun=$(date +%s%N)
    "$@"
    ended=$(date +%s%N)
    echo $((count * 1000000000 / (ended - begun)))
}

best() { printf '%s\n' "$@" | sort -n | tail -1; }

xargs_best=0 parallel_best=0 windrow_best=0
for round in $(seq "$rounds"); do
    xargs_best=$(best "$xargs_best" "$(rate "$n" by_xargs)")
    windrow_best=$(best "$windrow_best" "$(rate "$n" by_windrow "$round")")
    if [ "$has_parallel" = 1 ]; then
        parallel_best=$(best "$parallel_best" "$(rate "$n_parallel" by_parallel)")
    fi
done

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
# The first is below the second, which may be unsaid.
is_below() { awk -v a="$1" -v b="${2:-0}" 'BEGIN { exit !(a < b) }'; }

to_xargs=$(ratio "$windrow_best" "$xargs_best")
echo "xargs -P $jobs       $xargs_best/s"
echo "windrow --each    $windrow_best/s   $to_xargs x xargs"
failed=0
if is_below "$to_xargs" "${MIN_XARGS:-}"; then failed=1; fi
if [ "$has_parallel" = 1 ]; then
    to_parallel=$(ratio "$windrow_best" "$parallel_best")
    echo "parallel -j $jobs    $parallel_best/s   windrow is $to_parallel x parallel"
    if is_below "$to_parallel" "${MIN_PARALLEL:-}"; then failed=1; fi
fi
if [ "$failed" = 1 ]; then
    echo "FAILED: slower than the minimum (MIN_XARGS=${MIN_XARGS:-none}, MIN_PARALLEL=${MIN_PARALLEL:-none})" >&2
    exit 1
fi
