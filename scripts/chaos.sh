#!/usr/bin/env bash
# Plays rounds of chaos against real nodes: `scripts/chaos.sh --help`.
#
# A round: a task flows over three `windrow serve` processes, a private database server and a private Redis; something
# happens to them; all is healed; the task must finish; three logs from outside are joined and judged (tests/chaos).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
scripts/chaos.sh [--rounds N] [--seed S] [--scenario NAME|all] [--store postgres|mariadb|sqlite]
                 [--witness redis|database] [--nodes 3] [--shards 1] [--ttl-ms 3000] [--rate 250] [--items 2500]
                 [--out FILE]
scripts/chaos.sh --measure takeover|handover [--rounds 50] [--ttl-ms MS] [--db-rtt-ms MS] …
scripts/chaos.sh --measure redis-outage [--minutes 10] …
scripts/chaos.sh --measure db-outage|path-outage|cpu [--seconds 60] …
scripts/chaos.sh --measure limit [--minutes 3] …
scripts/chaos.sh --measure rate [--rate 3000] [--shards 4] …

--release uses the release build: for measurements.
Without --scenario each round picks one at random; `all` plays them in turn; `random` mixes three.
Round k has seed S + k; findings come with the command that replays the round. --out gets one line of JSON per round.
TEXT
}

test=rounds
profile=()
export CHAOS_ROUNDS="${CHAOS_ROUNDS:-1}"
while [ $# -gt 0 ]; do
    case "$1" in
    --help | -h) usage && exit 0 ;;
    --release) profile=(--release) && shift ;;
    --rounds | --seed | --scenario | --store | --witness | --nodes | --shards | --rate | --items | --out | --minutes | --seconds | --ttl-ms | --db-rtt-ms | --measure)
        [ $# -ge 2 ] || { printf '%s needs a value\n' "$1" >&2; exit 2; }
        name="${1#--}"
        name="${name//-/_}"
        [ "$1" = --measure ] && test=measurement
        export "CHAOS_${name^^}=$2"
        shift 2
        ;;
    *)
        printf 'unknown option: %s\n' "$1" >&2
        usage >&2
        exit 2
        ;;
    esac
done

# Not nextest: it would end a long run by its own clock.
exec cargo test "${profile[@]}" --workspace --locked --test chaos -- --nocapture --exact \
    "$([ "$test" = rounds ] && echo long::rounds || echo measure::measurement)"
