#!/usr/bin/env bash
# Kills, stops and starves real runs, round after round: `scripts/soak.sh [ROUNDS]` (default 20).
#
# Each round picks random moments; one that fails prints the seed that replays it.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds="${1:-20}"
for ((round = 1; round <= rounds; round++)); do
    printf '== round %s of %s\n' "$round" "$rounds"
    cargo nextest run --test crash --locked --status-level fail
done
printf '\nSOAKED: %s rounds (%s s)\n' "$rounds" "$SECONDS"
