#!/bin/sh
# A leaderboard: every few seconds the figures of all drivers are asked for afresh, a ranking of the teams is made of them
# once all are there, and readers see one round or the next, never some of each.
#
#   examples/leaderboard/run.sh            until Ctrl-C
#   examples/leaderboard/run.sh --check    for a minute; the last line says how many answers were read, and that 0 were mixed
#
# WINDROW is the program, if it isn't on the path; CHECK_SECONDS how long a check takes.
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

# A round every two seconds. One that is due while another runs waits for it.
"$windrow" schedule create drivers rounds --every 2s --overlap queue --items @examples/leaderboard/drivers.json \
    --rate 200/s --shards 2 --publish team-board --publish-key team --reduce command:rank >/dev/null

until "$windrow" dataset get team-board >"$place/first" 2>/dev/null; do
    kill -0 "$node" 2>/dev/null || { cat "$place/node.log" >&2; exit 1; }
    sleep 0.2
done
echo "the first ranking: $(cat "$place/first")"
python3 examples/leaderboard/reader.py "$url" "$(tail -n 1 "$place/reader.token")" "$seconds"
