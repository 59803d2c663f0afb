#!/usr/bin/env bash
# Runs every benchmark, and prints one table of those with a target. Each one's output is in target/bench, with the plots
# of docs/performance.md (`PLOTS=docs/plots` writes them there).
#
# On a quiet machine it takes about half an hour on two cores. `BENCHES="executor pace"` runs some. Uses `wrk` and `cc`;
# benchmarks that need a missing one are skipped, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."

all="window executor sleepers pace growth store results source http program line failures service"
out=target/bench
mkdir -p "$out"
cargo build --release --locked --bin windrow
for bench in ${BENCHES:-$all}; do
    printf '\n== %s\n' "$bench"
    # The profile of the program itself: `bench` would compile everything once more.
    cargo bench --locked --profile release -p windrow --bench "$bench" 2>&1 | tee "$out/$bench.txt"
done
if [ -s "$out/growth.txt" ]; then
    python3 scripts/plot.py "$out/growth.txt" "${PLOTS:-$out}"
fi

printf '\n%-10s %-66s %10s %10s\n' bench what measured aim
for bench in ${BENCHES:-$all}; do
    # Lines such as "windrow ÷ wrk = 0.93 (aim ≥ 0.9)".
    sed -n -E 's/^ *(.*[^ ]) += ([0-9.]+) \(aim (≥|≤) ([0-9.]+)\).*/\1\t\2\t\3 \4/p' "$out/$bench.txt" |
        awk -F '\t' -v bench="$bench" '{
            split($3, aim, " ")
            met = aim[1] == "≥" ? $2 >= aim[2] : $2 <= aim[2]
            printf "%-10s %-66s %10s %10s  %s\n", bench, $1, $2, $3, met ? "met" : "NOT MET"
        }'
done
