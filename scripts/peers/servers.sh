# A private Redis and a private PostgreSQL on free ports, with their data in $place. Sourced by bench-peers.sh.

free_port() {
    node -e 'const server = require("net").createServer().listen(0, "127.0.0.1", () => {
        console.log(server.address().port); server.close(); })'
}

# A tenth of a second at a time, at most a minute.
wait_until() {
    for _ in $(seq 600); do
        if "$@" > /dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "gave up waiting: $*" >&2
    return 1
}

# It keeps nothing on disk.
start_redis() {
    command -v redis-server > /dev/null || apt_install redis-server >&2
    redis_port=$(free_port)
    redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$place" > "$place/redis.log" &
    redis_pid=$!
    wait_until redis-cli -p "$redis_port" ping
    export REDIS_URL="redis://127.0.0.1:$redis_port/0"
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# Its commits are durable, as they are by default. 1 GB of shared buffers where the machine has it to spare.
start_postgres() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || apt_install postgresql >&2
    postgres_bin=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -1)
    shared_buffers=1GB
    if [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -lt 4 ]; then shared_buffers=128MB; fi
    postgres_port=$(free_port)
    mkdir "$place/postgres"
    if [ "$(id -u)" -eq 0 ]; then chmod 755 "$place" && chown postgres "$place/postgres"; fi
    # From a directory that the user may be in.
    (cd / && as_postgres "$postgres_bin/initdb" -D "$place/postgres/data" -U postgres -A trust -E UTF8 --locale=C) \
        > "$place/initdb.log"
    postgres_control start --wait -l "$place/postgres/log" \
        -o "-p $postgres_port -k $place/postgres -c listen_addresses=127.0.0.1 -c shared_buffers=$shared_buffers" > /dev/null
    export DATABASE_URL="postgres://postgres@127.0.0.1:$postgres_port/peer"
}

postgres_control() {
    (cd / && as_postgres "$postgres_bin/pg_ctl" -D "$place/postgres/data" "$@")
}

# Nothing of the peer before is left.
empty_servers() {
    redis-cli -p "$redis_port" flushall > /dev/null
    local psql=(psql -h 127.0.0.1 -p "$postgres_port" -U postgres -q -v ON_ERROR_STOP=1)
    "${psql[@]}" -c 'SET client_min_messages = error' -c 'DROP DATABASE IF EXISTS peer WITH (FORCE)' -c 'CREATE DATABASE peer'
    # What the peer before wrote does not have to be written while the next is measured.
    "${psql[@]}" -c CHECKPOINT
    rm -f "$place"/apalis.db*
}

stop_servers() {
    if [ -n "${redis_pid:-}" ]; then kill "$redis_pid" && wait "$redis_pid"; fi
    if [ -d "$place/postgres/data" ]; then postgres_control stop --mode immediate; fi
} > /dev/null 2>&1
