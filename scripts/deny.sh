#!/usr/bin/env bash
# Licences, banned crates and sources of all dependencies, by deny.toml. Apart from scripts/test.sh, because building
# cargo-deny takes minutes. Advisories need their database from the network: `scripts/deny.sh advisories`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    cargo install --locked cargo-deny
fi

checks=("$@")
if [ "${#checks[@]}" -eq 0 ]; then
    checks=(bans licenses sources)
fi
cargo deny --locked check "${checks[@]}"
