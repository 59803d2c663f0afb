#!/usr/bin/env bash
# Build times: an edit of one CLI verb and of one store file (`cargo check`, warm), lines and dependencies; with
# --cold also a fresh `cargo install`, and the size of what it installs.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds() {
    local begun=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'
}

# A real edit, since cargo looks at times and rustc at content; taken back whatever happens.
edited() {
    cp --preserve=timestamps "$1" "$1.kept"
    trap 'mv -f "'"$1"'.kept" "'"$1"'"' EXIT
    printf '\nconst _: &str = "%s";\n' "$RANDOM" >>"$1"
    seconds cargo check --locked
    mv -f "$1.kept" "$1"
    trap - EXIT
}

cargo check --locked >/dev/null 2>&1
printf 'check after an edit of one CLI verb (src/cli/task/look/list.rs): %s\n' "$(edited src/cli/task/look/list.rs)"
printf 'check after an edit of one store file (src/store/sql/task/list.rs): %s\n' "$(edited src/store/sql/task/list.rs)"
printf 'check after an edit of the core (src/core/pace/mod.rs): %s\n' "$(edited src/core/pace/mod.rs)"
cargo check --locked >/dev/null 2>&1
printf 'dependencies in the lock file: %s\n' "$(grep -c '^name = ' Cargo.lock)"
for folder in src/*/; do
    printf '%7s lines  %s\n' "$(find "$folder" -name '*.rs' -exec cat {} + | wc -l)" "$folder"
done

if [ "${1:-}" = "--cold" ]; then
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    printf 'cargo install --path . --locked, cold: %s\n' \
        "$(CARGO_TARGET_DIR="$place/target" seconds cargo install --path . --locked --root "$place")"
    printf 'the program: %s\n' "$(du -h "$place/bin/windrow" | cut -f1)"
fi
