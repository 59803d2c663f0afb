#!/bin/sh
# A leaderboard: every few seconds a round fetches the figures of all drivers and publishes a ranking of the teams once all
# are there. Readers see one round or the next, never a mix.
#
#   examples/leaderboard/run.sh            until Ctrl-C
#   examples/leaderboard/run.sh --check    for a minute; the last line counts the responses read, and how many mixed two rounds
#
# WINDROW: path of the program, if it isn't in PATH. CHECK_SECONDS: duration of a check.
set -eu
cd "$(dirname "$0")/../.."
windrow=${WINDROW:-windrow}
seconds=${CHECK_SECONDS:-60}
[ "${1:-}" = --check ] || seconds=864000

place=$(mktemp -d)
export HOME="$place"
node=
stop() {
    [ -z "$node" ] || { kill "$node" 2>/dev/null && wait "$node" 2>/dev/null; } || true
    rm -rf "$place"
}
trap stop EXIT
trap 'exit 130' INT TERM

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url="http://127.0.0.1:$port"
"$windrow" serve --config examples/leaderboard/config.toml --listen "127.0.0.1:$port" --data-dir "$place/data" \
    2>"$place/node.log" &
node=$!
tries=0
until [ -s "$place/data/admin.token" ] && "$windrow" version --server "$url" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { cat "$place/node.log" >&2; exit 1; }
    sleep 0.1
done
"$windrow" ctx add board --server "$url" --token-file "$place/data/admin.token" >/dev/null
"$windrow" biz register drivers --command figures >/dev/null
"$windrow" token create --role reader --business drivers --name board >"$place/reader.token"

# A round every two seconds. A round that is due while another runs waits for it.
"$windrow" schedule create drivers rounds --every 2s --overlap queue --items @examples/leaderboard/drivers.json \
    --rate 200/s --shards 2 --publish team-board --publish-key team --reduce command:rank >/dev/null

until "$windrow" dataset get team-board >"$place/first" 2>/dev/null; do
    kill -0 "$node" 2>/dev/null || { cat "$place/node.log" >&2; exit 1; }
    sleep 0.2
done
echo "first ranking: $(cat "$place/first")"
python3 examples/leaderboard/reader.py "$url" "$(tail -n 1 "$place/reader.token")" "$seconds"
