#!/usr/bin/env bash
# Builds the documentation as a site, into OUT (target/site); a warning is an error. With --ask, ten questions are then
# put to the site's own search, and each must be answered by one of the first three pages.
#
# usage: scripts/site.sh [--ask] [OUT]
set -euo pipefail
cd "$(dirname "$0")/.."

ask=
if [ "${1:-}" = --ask ]; then
    ask=yes
    shift
fi
out="$(realpath -m "${1:-target/site}")"

tools="target/site-tools"
if ! cmp --quiet deploy/site/requirements.txt "$tools/requirements.txt"; then
    "${PYTHON:-python3}" -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement deploy/site/requirements.txt
    cp deploy/site/requirements.txt "$tools/requirements.txt"
fi

"$tools/bin/mkdocs" --quiet build --clean --config-file deploy/site/mkdocs.yml --site-dir "$out"
printf 'site: %s (%s pages)\n' "$out/index.html" "$(find "$out" -name '*.html' | wc -l)"
if [ "$ask" ]; then
    node deploy/site/ask.mjs "$out"
fi
