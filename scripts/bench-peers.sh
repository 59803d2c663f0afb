#!/usr/bin/env bash
# Compares Windrow with job queues on this machine: no-op items/s (enqueued, then drained) and bytes stored per item.
#
# bench-peers.sh [PEER…]      only these peers; all by default: see the table below
# ROUNDS=3                    rounds; each runs every peer once, under the same conditions
# SMOKE=1                     one round of a few items, as a smoke test; ignore the numbers
# ITEMS=100000000             Windrow's items; a peer's are in the table below
# WINDROW_ROW="70 8192"       use these million items/s and stored bytes instead of measuring; `none` skips Windrow
#
# The peers are installed into target/peers at pinned versions (Sidekiq: with apt-get), each with the settings in its
# file in scripts/peers. Redis keeps nothing on disk, PostgreSQL's commits are durable; both are private and stopped at the
# end. Prints a table and writes it to target/peers/result.json. If a peer fails, it is named, the others continue, and the
# script exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

# Items of each: enough for seconds. apalis-redis fails at more than some 8,000 that are due, since it unpacks all in Lua.
declare -A items=(
    [bullmq]=60000 [pg-boss]=50000 [graphile-worker]=50000 [skip-locked]=50000 [sidekiq]=50000
    [celery]=6000 [apalis-redis]=7000 [apalis-sqlite]=4000
)
# apalis-sqlite can take 0.1 s or a minute for the same items, by how much else the machine has to do.
all=(bullmq pg-boss graphile-worker skip-locked sidekiq celery apalis-redis apalis-sqlite)
if [ $# -eq 0 ]; then set -- "${all[@]}"; fi
rounds=${ROUNDS:-3}
windrow_items=${ITEMS:-100000000}
windrow_row=${WINDROW_ROW:-}
if [ "${SMOKE:-}" = 1 ]; then
    rounds=1 windrow_items=${ITEMS:-20000}
    for peer in "${all[@]}"; do items[$peer]=200; done
fi
for peer in "$@"; do
    [ -n "${items[$peer]:-}" ] || { echo "no peer named $peer; known peers: ${all[*]}" >&2; exit 2; }
done

cache=$PWD/target/peers
mkdir -p "$cache"
place=$(mktemp -d)
source scripts/peers/install.sh
source scripts/peers/servers.sh
trap 'stop_servers || true; rm -rf "$place"' EXIT

# Runs a peer with a number of items: prints one line of JSON.
run_peer() {
    case $1 in
        bullmq | pg-boss | graphile-worker | skip-locked) node "$cache/$1.mjs" "$2" ;;
        sidekiq) ruby scripts/peers/sidekiq_peer.rb "$2" ;;
        celery) "$cache/python/bin/python" scripts/peers/celery_peer.py "$2" ;;
        apalis-*) SQLITE_DIR=$place "$cache/apalis/release/apalis-peer" "${1#apalis-}" "$2" ;;
    esac
}
export -f run_peer
export cache place

# The rate of the task of the executor bench whose handler gets one item a call, on two lanes; and what its store grew by.
run_windrow() {
    if [ -n "$windrow_row" ]; then
        awk '{ print "windrow, batch 1, 2 lanes " $1 " / " $1 " / " $1; if ($2 != "") print "stored: " $2 " bytes" }' <<< "$windrow_row"
    else
        cargo bench --locked --quiet -p windrow --bench executor -- "$windrow_items" 1 windrow
    fi > "$place/windrow"
    local rate bytes
    rate=$(awk -F'lanes' '/^windrow, batch 1, 2 lanes/ { split($2, of, "/"); print of[2] * 1000000 }' "$place/windrow")
    bytes=$(awk '/^stored: / { print $2 }' "$place/windrow")
    [ -n "$rate" ] || { echo "the bench printed no line 'windrow, batch 1, 2 lanes'" >&2; return 1; }
    printf '{"peer":"windrow","version":"%s","n":%s,"total":%s,"bytes":%s}\n' \
        "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)" "$windrow_items" "$rate" "${bytes:-null}"
}

declare -A failed=()
# A name, a file with what it said, and what could not be done.
fail() {
    failed[$1]=1
    printf '%s: %s:\n' "$1" "$3" >&2
    tail -5 "$2" | sed 's/^/    /' >&2
}

# The installer of a peer.
installer() {
    case $1 in
        sidekiq | celery | windrow) echo "install_$1" ;;
        apalis-*) echo install_apalis ;;
        *) echo install_node ;;
    esac
}

names=("$@")
if [ "$windrow_row" != none ]; then names=(windrow "$@"); fi
declare -A installed=()
for name in "${names[@]}"; do
    install=$(installer "$name")
    if [ -z "${installed[$install]:-}" ]; then
        echo "installing: ${install#install_}" >&2
        if "$install" > "$cache/$install.log" 2>&1; then installed[$install]=yes; else installed[$install]=no; fi
    fi
    if [ "${installed[$install]}" = no ]; then fail "$name" "$cache/$install.log" 'could not be installed'; fi
done

start_redis
start_postgres
for ((round = 1; round <= rounds; round++)); do
    for name in "${names[@]}"; do
        if [ -n "${failed[$name]:-}" ]; then continue; fi
        echo "round $round of $rounds: $name" >&2
        log=$cache/$name.log
        if [ "$name" = windrow ]; then
            run_windrow > "$place/line" 2> "$log" || fail "$name" "$log" 'failed'
        else
            empty_servers
            timeout --kill-after=10 600 bash -c 'run_peer "$@"' - "$name" "${items[$name]}" > "$place/line" 2> "$log" ||
                fail "$name" "$log" "failed, or took more than ten minutes"
        fi
        if [ -z "${failed[$name]:-}" ]; then sed "s/^{/{\"round\":$round,/" "$place/line" >> "$place/lines"; fi
    done
done

if [ ! -s "$place/lines" ]; then echo 'no measurements' >&2; exit 1; fi
SHARED_BUFFERS=$shared_buffers node scripts/peers/table.mjs "$place/lines" "$cache/result.json"
[ ${#failed[@]} -eq 0 ] || { echo "FAILED: ${!failed[*]}" >&2; exit 1; }
