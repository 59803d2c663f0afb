#!/usr/bin/env bash
# Installs what the tests need and this machine lacks. Does nothing where all is there.
set -euo pipefail

have() {
    command -v "$1" >/dev/null 2>&1
}

# Runs apt-get as root: directly, or through sudo.
install_package() {
    if ! have apt-get; then
        printf 'install %s with your package manager, then run this again\n' "$1" >&2
        return 1
    fi
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update --quiet
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends "$1"
}

# The linker, and the compiler of the bundled SQLite.
have cc || install_package build-essential
# The handlers of the examples and of the tests that run real workers.
have python3 || install_package python3

for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
done

# Each test in a process of its own: a test that hangs or dies takes no other with it.
if ! cargo nextest --version >/dev/null 2>&1; then
    cargo install --locked cargo-nextest
fi

printf 'tools: %s, %s, %s\n' "$(rustc --version)" "$(cargo nextest --version | head -n 1)" "$(python3 --version)"
