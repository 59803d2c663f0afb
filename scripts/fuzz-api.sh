#!/usr/bin/env bash
# Schemathesis against the OpenAPI document of a running node, once with every role and once with none: no 5xx, no
# answer that the document doesn't have, nothing accepted that it forbids.
#
# usage: scripts/fuzz-api.sh [path/to/windrow]     EXAMPLES=25 SEED=1 ROLES="none admin" set the number, seed and roles
set -euo pipefail
cd "$(dirname "$0")/.."

windrow="${1:-target/debug/windrow}"
examples="${EXAMPLES:-6}"
# Other cases at each run, so that each looks where none did before; a red one is played again with the seed that it says.
seed="${SEED:-$RANDOM}"
. scripts/api-node.sh
export HYPOTHESIS_STORAGE_DIRECTORY="$place/hypothesis"

failed=()
# The administrator is last: its run may revoke every token.
printf 'fuzzing %s with seed %s, %s examples per operation\n' "$url" "$seed" "$examples"
for role in ${ROLES:-none viewer operator business admin}; do
    printf '\n-- role %s\n' "$role"
    token="$("$python/python" tests/api/prepare_fuzz.py "$url" "$admin" "$role")"
    header=()
    [ "$role" = none ] || header=(--header "Authorization: Bearer $token")
    # A stream has no end, and a node that is drained answers nothing more. Who asks for news waits up to 30 s.
    "$python/schemathesis" --no-color run "$url/openapi.json" "${header[@]}" \
        --phases examples,coverage,fuzzing --max-examples "$examples" --seed "$seed" --request-timeout 60 \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection \
        --exclude-path /v1/events --exclude-path-regex '/drain$' --suppress-health-check all || failed+=("$role")
done

kill -0 "$node" || { cat "$place/log" >&2; printf 'the node crashed\n' >&2; exit 1; }
if grep -nE 'panicked|request failed' "$place/log"; then
    printf 'the node reported a bug\n' >&2
    exit 1
fi
if [ "${#failed[@]}" -gt 0 ]; then
    printf 'failed: %s; repeat with SEED=%s scripts/fuzz-api.sh\n' "${failed[*]}" "$seed" >&2
    exit 1
fi
