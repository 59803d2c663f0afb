#!/usr/bin/env bash
# Records the readme's job in a real terminal (started, stopped by Ctrl-C, resumed) as an animated picture, light and
# dark: docs/pictures/run-light.svg and run-dark.svg.
#
# usage: WINDROW=target/release/windrow scripts/record.sh
set -euo pipefail
cd "$(dirname "$0")/.."

tools="target/record-tools"
if [ ! -x "$tools/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check 'pyte==0.8.2'
fi
exec "$tools/bin/python" scripts/record.py "$(realpath "${WINDROW:-target/release/windrow}")" docs/pictures
