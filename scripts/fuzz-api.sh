#!/usr/bin/env bash
# Schemathesis against the OpenAPI document of a running node, once with every role and once with none: no 5xx, no
# answer that the document doesn't have, nothing accepted that it forbids.
#
# usage: scripts/fuzz-api.sh [path/to/windrow]     EXAMPLES=25 SEED=1 ROLES="none admin" set how much and which
set -euo pipefail
cd "$(dirname "$0")/.."

windrow="${1:-target/debug/windrow}"
examples="${EXAMPLES:-6}"
# The same cases at each run, so that a red run is the change's own fault; other seeds are for by hand.
seed="${SEED:-4}"
python="target/python/bin"
place="$(mktemp -d)"
node=""
export HYPOTHESIS_STORAGE_DIRECTORY="$place/hypothesis"
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

failed=()
# The administrator is last: its run may revoke every token.
printf 'fuzzing %s with seed %s, %s examples an operation\n' "$url" "$seed" "$examples"
for role in ${ROLES:-none viewer operator business admin}; do
    printf '\n-- role %s\n' "$role"
    token="$("$python/python" tests/api/prepare_fuzz.py "$url" "$admin" "$role")"
    header=()
    [ "$role" = none ] || header=(--header "Authorization: Bearer $token")
    # A stream has no end, and a node that is drained answers nothing more.
    "$python/schemathesis" --no-color run "$url/openapi.json" "${header[@]}" \
        --phases examples,coverage,fuzzing --max-examples "$examples" --seed "$seed" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection \
        --exclude-path /v1/events --exclude-path-regex '/drain$' --suppress-health-check all || failed+=("$role")
done

kill -0 "$node" || { cat "$place/log" >&2; printf 'the node died\n' >&2; exit 1; }
if grep -nE 'panicked|a request failed' "$place/log"; then
    printf 'the node had a bug\n' >&2
    exit 1
fi
if [ "${#failed[@]}" -gt 0 ]; then
    printf 'failed with seed %s: %s\n' "$seed" "${failed[*]}" >&2
    exit 1
fi
