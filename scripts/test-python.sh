#!/usr/bin/env bash
# Tests the Python package against the real program: types, doctests, kills, a node.
#
# usage: scripts/test-python.sh [arguments of pytest]
# WINDROW=path   another program than target/debug/windrow
# PYTHON=path    another interpreter than python3, such as a python3.9
set -euo pipefail
cd "$(dirname "$0")/.."

export WINDROW="${WINDROW:-${CARGO_TARGET_DIR:-target}/debug/windrow}"
case "$WINDROW" in /*) ;; *) WINDROW="$PWD/$WINDROW" ;; esac

python="${PYTHON:-python3}"
venv="target/test-python-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
[ -x "$venv/bin/mypy" ] || { "$python" -m venv "$venv" && "$venv/bin/pip" install --quiet 'pytest>=8,<10' 'mypy>=1.10,<3'; }
venv="$PWD/$venv"

cd deploy/python
"$venv/bin/mypy"
lines="$(cat windrow/*.py | grep -c '[^[:space:]]')"
[ "$lines" -le 600 ] || { printf 'the module has %s lines that are not blank, more than 600\n' "$lines" >&2; exit 1; }
"$venv/bin/python" -m pytest --quiet "$@"
