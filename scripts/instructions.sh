#!/usr/bin/env bash
# Counts the instructions of an item, of an item in a batch and of an HTTP call with callgrind, and fails where they are more than
# tests/instructions/bounds.txt allows: a time differs from run to run on shared machines, a count doesn't.
#
#   scripts/instructions.sh            # compares the counts with the bounds
#   scripts/instructions.sh --write    # writes the counts as the new bounds: explain a rise in the commit
#
# A count is that of 2 N pieces of work less that of N, so that start and end of the process aren't in it. More than 3 % above a
# bound is a failure; more than 3 % below it is reported, since the bound should follow.
set -euo pipefail
cd "$(dirname "$0")/.."

bounds="tests/instructions/bounds.txt"
cargo build --quiet --release --locked -p windrow-instructions
program="${CARGO_TARGET_DIR:-target}/release/instructions"
place="$(mktemp -d)"
"$program" serve >"$place/address" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$place"' EXIT
until [ -s "$place/address" ]; do sleep 0.05; done
address="$(cat "$place/address")"

# The instructions of one run: the least of three, since seeds and kernel differ.
collected() {
    local least="" count
    for _ in 1 2 3; do
        count="$(once "$@")" || return
        if [ -z "$least" ] || [ "$count" -lt "$least" ]; then least="$count"; fi
    done
    printf '%s\n' "$least"
}

once() {
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" >"$place/log" 2>&1; then
        cat "$place/log" >&2
        return 1
    fi
    awk '/Collected/ { print $NF }' "$place/log"
}

# The instructions of one piece of work, of N and as many again.
each() {
    local count="$1" less more
    shift
    less="$(collected "$@" "$count")" || return
    more="$(collected "$@" $((2 * count)))" || return
    awk -v more="$more" -v less="$less" -v count="$count" 'BEGIN { printf "%.1f\n", (more - less) / count }'
}

failed=0
: >"$place/bounds"
printf '%-8s %12s %12s %9s\n' work counted bound change
judge() {
    local name="$1" counted bound change
    shift
    bound="$(awk -v name="$name" '$1 == name { print $2 }' "$bounds" 2>/dev/null || true)"
    counted="$(each "$@")" || return
    printf '%s %s\n' "$name" "$counted" >>"$place/bounds"
    change="$(awk -v counted="$counted" -v bound="${bound:-0}" 'BEGIN {
        if (bound > 0) printf "%+.1f%%", 100 * (counted / bound - 1); else print "new"
    }')"
    printf '%-8s %12s %12s %9s\n' "$name" "$counted" "${bound:--}" "$change"
    case "$change" in
        new) failed=1 ;;
        *) awk -v change="${change%\%}" 'BEGIN { exit !(change > 3) }' && failed=1 || true ;;
    esac
}
judge item 1000000 item
judge batch 10000000 batch
judge call 500 call "$address"

if [ "${1:-}" = "--write" ]; then
    cp "$place/bounds" "$bounds"
elif [ "$failed" -ne 0 ]; then
    printf '\nmore instructions than %s allows; use callgrind_annotate, or run %s --write and explain the rise\n' "$bounds" "$0" >&2
    exit 1
fi
