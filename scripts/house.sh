#!/usr/bin/env bash
# Measures the product: lines, types, circles, comments and words, with the goals beside the figures.
#
# usage: scripts/house.sh [COMMIT…] [--json] [--circles] [--words] [--self-test]
# --words lists comments and literals that break the rules of English. Two commits stand beside each other; without one the work tree is measured. scripts/house.py says how each figure is counted.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/house.py" "$@"
