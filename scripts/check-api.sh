#!/usr/bin/env bash
# Checks the OpenAPI document: it validates, and a client generated from it without warnings can call a node.
#
# usage: scripts/check-api.sh [path/to/windrow]
set -euo pipefail
cd "$(dirname "$0")/.."

windrow="${1:-target/debug/windrow}"
. scripts/api-node.sh

curl --silent --fail --output "$place/openapi.json" "$url/openapi.json"
"$python/openapi-spec-validator" "$place/openapi.json"
# Rows are bytes to a client, and what it generates isn't kept, so nothing makes it pretty.
cat >"$place/client.yml" <<END
post_hooks: []
content_type_overrides: { text/csv: application/octet-stream, application/x-ndjson: application/octet-stream, text/plain: application/octet-stream }
END
"$python/openapi-python-client" generate --path "$place/openapi.json" --output-path "$place/windrow_client" \
    --meta none --fail-on-warning --config "$place/client.yml"
PYTHONPATH="$place" "$python/python" tests/api/generated_client.py "$url" "$admin"
