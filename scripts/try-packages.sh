#!/usr/bin/env bash
# Installs each package of `scripts/package.sh` into an empty environment and runs the job of the readme there. Prints a
# table: package, size, seconds from the beginning of the installation to the end of the job. Fails if one does.
#
#   sudo scripts/try-packages.sh [OUT]
#
# Needs root (for chroot), mmdebstrap, unshare, npm and Python. The Debian that the .deb is installed into is made once,
# in CHROOTS (target/package-chroots).
set -euo pipefail
cd "$(dirname "$0")/.."

target="${CARGO_TARGET_DIR:-target}"
out=$(realpath "${1:-$target/packages}")
chroots=$(realpath -m "${CHROOTS:-$target/package-chroots}")
seconds_max=20
work=$(mktemp -d)
pids=()
finish() {
    [ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf --one-file-system "$work"
}
trap finish EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
begin() {
    echo "$EPOCHREALTIME" >"$work/begin"
}
end() {
    echo "$EPOCHREALTIME" >"$work/end"
}

# The vendor's API of the readme, on a free port.
port=$(free_port)
sed "s/9004/$port/" examples/recipes/orders_api.py >"$work/api.py"
python3 "$work/api.py" &
pids+=($!)
until curl --silent --output /dev/null "http://127.0.0.1:$port/"; do
    kill -0 "${pids[0]}"
done

# Makes a folder with what the job reads; the user of a container owns it.
job_folder() {
    mkdir -p "$1"
    cp examples/data/orders.csv "$1/"
    echo demo-token-4711 >"$1/vendor.token"
    chown -R 65532:65532 "$1"
}

# Runs the job of the readme by the command given, in which `windrow` is the last word. One order can't be shipped.
run_job() {
    local folder="$1" code=0
    shift
    "$@" run --csv orders.csv --rate 20/s --results-out answers.ndjson --result /data \
        --request "POST http://127.0.0.1:$port/v1/orders/{order_id}/ship" --json '{"qty": {qty:number}, "note": {note}}' \
        --header 'authorization: Bearer {secret.vendor}' --secret vendor=@vendor.token || code=$?
    [ "$code" -eq 8 ] && [ "$(wc -l <"$folder/answers.ndjson")" -eq 4 ]
}

# Runs a command in a folder, with nothing of this machine's environment.
clean() {
    env --ignore-environment --chdir "$1" HOME="$1" PATH="$2:/usr/bin:/bin" "${@:3}"
}

try_tarball() {
    local place="$work/tarball"
    job_folder "$place"
    tar -xzf "$1" -C "$place" --strip-components=1
    run_job "$place" clean "$place" "$place/bin" windrow
}

try_wheel() {
    local place="$work/wheel"
    job_folder "$place"
    python3 -m venv "$place/venv"
    "$place/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$1"
    run_job "$place" clean "$place" "$place/venv/bin" windrow
}

try_npm() {
    local place="$work/npm"
    job_folder "$place"
    npm install --global --silent --offline --no-audit --no-fund --cache "$place/cache" --prefix "$place/prefix" \
        "${1%/*}/windrow-linux-x64-${1##*/windrow-}" "$1"
    run_job "$place" clean "$place" "$place/prefix/bin:$(dirname "$(command -v node)")" windrow
}

try_deb() {
    local root="$work/deb" inside
    inside=(chroot "$root" env --ignore-environment --chdir=/job HOME=/job PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    cp -a "$chroots/debian" "$root"
    begin
    cp "$1" "$root/tmp/windrow.deb"
    job_folder "$root/job"
    "${inside[@]}" dpkg --install /tmp/windrow.deb
    run_job "$root/job" "${inside[@]}" windrow
    end
    # Again, as an upgrade does; the configuration is sound, and a purge leaves nothing. The unit makes the node's folder.
    "${inside[@]}" dpkg --install /tmp/windrow.deb
    "${inside[@]}" install -d -o windrow -g windrow -m 0700 /var/lib/windrow
    "${inside[@]}" setpriv --reuid windrow --regid windrow --clear-groups windrow config check /etc/windrow/config.toml
    "${inside[@]}" dpkg --purge windrow
    for left in etc/windrow var/lib/windrow usr/bin/windrow usr/share/doc/windrow; do
        [ ! -e "$root/$left" ]
    done
}

# Unpacks the layers of the image below a folder, and prints its environment and its entrypoint.
unpack_image() {
    python3 - "$1" "$2" <<'END'
import io, json, sys, tarfile
image = tarfile.open(sys.argv[1])
blob = lambda one: image.extractfile("blobs/" + one["digest"].replace(":", "/")).read()
manifest = json.loads(blob(json.load(image.extractfile("index.json"))["manifests"][0]))
for layer in manifest["layers"]:
    tarfile.open(fileobj=io.BytesIO(blob(layer))).extractall(sys.argv[2], numeric_owner=True)
config = json.loads(blob(manifest["config"]))["config"]
print(*config["Env"], *config["Entrypoint"])
END
}

try_image() {
    local root="$work/image" words inside program address node
    words=$(unpack_image "$1" "$root")
    job_folder "$root/job"
    mkdir "$root/proc"
    # As in a container: the environment of the image only, its user, and process 1 is the program.
    program="${words##* }"
    address="127.0.0.1:$(free_port)"
    # shellcheck disable=SC2206  # words of the image
    inside=(env --ignore-environment ${words% *} "WINDROW_HTTP__LISTEN=$address" "$(command -v unshare)"
        --pid --fork --kill-child --root="$root" --setgid=65532 --setuid=65532)
    run_job "$root/job" "${inside[@]}" --mount-proc --wd=/job "$program"
    end
    # A node starts, is found ready by the image's own probe, and ends with success after SIGTERM.
    "${inside[@]}" --mount-proc --wd=/var/lib/windrow "$program" serve &
    node=$!
    # shellcheck disable=SC2064  # `node` is gone when the shell ends
    trap "kill $node 2>/dev/null || true" EXIT
    timeout 30 bash -c 'until "$@"; do sleep 0.2; done' - "${inside[@]}" "$program" doctor --ready "http://$address"
    kill -TERM "$(pgrep --parent "$node")"
    wait "$node"
}

if [ ! -e "$chroots/debian/usr/sbin/adduser" ]; then
    mkdir -p "$chroots"
    mmdebstrap --quiet --variant=minbase --include=adduser,init-system-helpers bookworm "$chroots/debian"
fi

faults=0
printf '%-74s %12s %9s\n' PACKAGE BYTES SECONDS
try() {
    local file seconds code=0
    file=$(realpath -e "$out"/$2)
    begin
    # Not as a condition, in which `set -e` would hold for nothing inside.
    (
        set -e
        "try_$1" "$file"
        [ -e "$work/end" ] || end
    ) >"$work/$1.log" 2>&1 &
    wait "$!" || code=$?
    seconds=$(awk -v a="$(cat "$work/begin")" -v b="$(cat "$work/end" 2>/dev/null)" 'BEGIN { printf "%.1f", b - a }')
    rm -f "$work/end"
    if [ "$code" -ne 0 ]; then
        seconds=failed
        cat "$work/$1.log" >&2
    elif awk -v s="$seconds" -v most="$seconds_max" 'BEGIN { exit s <= most }'; then
        code=1
        seconds="$seconds (of $seconds_max)"
    fi
    [ "$code" -eq 0 ] || faults=$((faults + 1))
    printf '%-74s %12s %9s\n' "$(basename "$file")" "$(stat -c %s "$file")" "$seconds"
}
try tarball 'windrow-*-x86_64-linux.tar.gz'
try wheel 'windrow-*.whl'
try npm 'windrow-[0-9]*.tgz'
try deb 'windrow_*_amd64.deb'
try image 'windrow-*-oci.tar'
[ "$faults" -eq 0 ]
