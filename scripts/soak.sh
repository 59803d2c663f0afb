#!/usr/bin/env bash
# Kills, stops and starves real runs for as long as one likes: `scripts/soak.sh [ROUNDS]` (default 20).
#
# Each round has random moments of its own; one that fails prints the seed with which it can be played again.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds="${1:-20}"
for ((round = 1; round <= rounds; round++)); do
    printf '== round %s of %s\n' "$round" "$rounds"
    cargo nextest run --test crash --locked --status-level fail
done
printf '\nSOAKED: %s rounds (%s s)\n' "$rounds" "$SECONDS"
