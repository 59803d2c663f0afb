# Installs the peers into target/peers; what is there already stays. Sourced by bench-peers.sh.

# Runs apt-get as root: directly, or through sudo.
apt_install() {
    command -v apt-get > /dev/null || { echo "install $1 with your package manager" >&2; return 1; }
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update --quiet &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends "$1"
}

# The peers in Node run beside their packages, where their imports look.
install_node() {
    command -v npm > /dev/null || apt_install npm || return 1
    cp scripts/peers/package.json scripts/peers/*.mjs "$cache/" &&
        npm install --prefix "$cache" --no-audit --no-fund --no-package-lock --silent
}

install_celery() {
    python3 -c 'import ensurepip, venv' || apt_install python3-venv || return 1
    [ -x "$cache/python/bin/pip" ] || python3 -m venv "$cache/python" || return 1
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r scripts/peers/requirements.txt
}

install_sidekiq() {
    command -v sidekiq > /dev/null || apt_install ruby-sidekiq
}

install_apalis() {
    cargo build --release --locked --quiet --manifest-path scripts/peers/apalis/Cargo.toml --target-dir "$cache/apalis"
}

# Windrow's bench is built before the first round, so that no round waits for it.
install_windrow() {
    [ -n "$windrow_row" ] || cargo bench --locked --quiet -p windrow --bench executor --no-run
}
