# Starts a node for scripts that test its API: sourced, with `windrow` set to the program. Sets `place`, `url`, `admin`, `node` and
# `python`; the node ends with the script.
python="target/python/bin"
place="$(mktemp -d)"
node=""
trap '[ -z "$node" ] || kill "$node" 2>/dev/null; rm -rf "$place"' EXIT

WINDROW_NODE__DATA_DIR="$place/data" WINDROW_HTTP__LISTEN=127.0.0.1:0 \
    WINDROW_AUTH__BOOTSTRAP_TOKEN_FILE="$place/admin.token" \
    "$windrow" serve 2>"$place/log" &
node=$!
url=""
for _ in $(seq 200); do
    url="$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$place/log" | head -n 1 || true)"
    [ -z "$url" ] || break
    kill -0 "$node" 2>/dev/null || { cat "$place/log" >&2; exit 1; }
    sleep 0.05
done
admin="$(cat "$place/admin.token")"
