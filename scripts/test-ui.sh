#!/usr/bin/env bash
# Tests the dashboard in a real browser: every page in every theme, watching, steering, signing in. Screenshots go to target/ui.
#
# scripts/test-ui.sh                 the program in target/debug, built if missing, with its embedded pages
# scripts/test-ui.sh --pages         the current pages in ui/, without compiling
# scripts/test-ui.sh parts.test.js   only some of the files in tests/browser
# scripts/test-ui.sh --pictures      takes the pictures of docs/ instead, from ui/, in six minutes; check each
# WINDROW=path                       another program; CHROMIUM=path another browser
# WINDROW_BUDGETS=1                  with the time budgets of an idle machine
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --pictures ]; then
    set -- --pages pictures.js
fi
if [ "${1:-}" = --pages ]; then
    shift
    export WINDROW_UI_DIR="$PWD/ui"
elif [ -z "${WINDROW:-}" ]; then
    cargo build --locked --bin windrow
fi
export WINDROW="${WINDROW:-${CARGO_TARGET_DIR:-target}/debug/windrow}"
case "$WINDROW" in /*) ;; *) WINDROW="$PWD/$WINDROW" ;; esac

if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then
    printf 'the tests of the dashboard need Node 20.19 or later; this is %s\n' "$(node --version 2>&1)" >&2
    exit 1
fi

[ -d tests/browser/node_modules/playwright-core ] || npm ci --prefix tests/browser --no-audit --no-fund --silent
cd tests/browser
if [ "$#" -eq 0 ]; then
    set -- *.test.js
fi
# One file at a time: each has a node and a browser of its own.
node --test --test-concurrency=1 --test-reporter=spec "$@"
