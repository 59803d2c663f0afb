#!/usr/bin/env bash
# Builds every package of Windrow for Linux on x86-64 into OUT (target/packages): a tarball, a Python wheel, two npm
# packages, a .deb, a container image, the parts list and checksums. One build of the program serves all.
#
#   scripts/package.sh [OUT]
#
# Needs rustup's toolchain, Python 3.11, npm, dpkg-deb and lintian. The other tools come from PyPI into TOOLS
# (target/package-tools). The same commit gives the same version, times and order of files.
set -euo pipefail
cd "$(dirname "$0")/.."

# Wanted: 40 MB. This keeps it from growing.
size_max=46500000
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR="$target"
out=$(realpath -m "${1:-$target/packages}")
tools=$(realpath -m "${TOOLS:-$target/package-tools}")
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
maintainer="${MAINTAINER:-The Windrow developers <windrow@users.noreply.github.com>}"
name="windrow-$version-x86_64-linux"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

fail() {
    printf 'package.sh: %s\n' "$1" >&2
    exit 1
}

[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "commit your changes: packages name their commit"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

if ! "$tools/bin/python" -c 'import cyclonedx.validation.json, ziglang' 2>/dev/null; then
    python3.11 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin==1.16.0' 'ziglang==0.17.1' \
        'auditwheel==6.8.2' 'wheel==0.48.0' 'cyclonedx-python-lib[json-validation]==11.12.0'
fi
export PATH="$tools/bin:$PATH"

# The program and the wheel. Zig links against glibc 2.17, whatever this machine has.
(cd deploy/python && maturin build --zig --target x86_64-unknown-linux-gnu --compatibility manylinux2014 \
    --auditwheel check --out "$out")
program="$target/x86_64-unknown-linux-gnu/dist/windrow"
wheel=$(echo "$out"/windrow-*.whl)
auditwheel show "$wheel" | tee "$work/audit"
grep -q 'manylinux_2_17_x86_64' "$work/audit" || fail "the wheel needs more than glibc 2.17"
size=$(stat -c %s "$program")
[ "$size" -le "$size_max" ] || fail "the program has $size bytes, of at most $size_max"
told=$("$program" --version)
wanted="windrow $version ($(git log -1 --abbrev=8 --format='%h %cs'), x86_64-unknown-linux-gnu)"
[ "$told" = "$wanted" ] || fail "the program says $told, not $wanted"

# What all packages have in common, as below /usr or /usr/local.
tree="$work/$name"
doc="$tree/share/doc/windrow"
mkdir -p "$tree"/bin "$tree"/lib/systemd/system "$tree"/share/{man/man1,bash-completion/completions} \
    "$tree"/share/{zsh/site-functions,fish/vendor_completions.d} "$doc"
install -m 755 "$program" "$tree/bin/windrow"
windrow="$tree/bin/windrow"
"$windrow" man "$tree/share/man/man1"
gzip -9n "$tree"/share/man/man1/*.1
"$windrow" completions bash >"$tree/share/bash-completion/completions/windrow"
"$windrow" completions zsh >"$tree/share/zsh/site-functions/_windrow"
"$windrow" completions fish >"$tree/share/fish/vendor_completions.d/windrow.fish"
"$windrow" openapi >"$doc/openapi.json"
git archive HEAD README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE docs examples | tar -x -C "$doc"
"$tools/bin/python" scripts/notices.py "$version" "$doc"
"$tools/bin/python" - "$doc/sbom.cdx.json" <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(fault and f"sbom.cdx.json: {fault}")
END
cp deploy/windrow.service "$tree/lib/systemd/system/"
cp "$doc/sbom.cdx.json" "$out/windrow-$version.cdx.json"
chmod -R u=rwX,go=rX "$tree"

tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"

# The wheel gets the licences too.
wheel unpack --dest "$work/wheel" "$wheel"
info=$(echo "$work/wheel/windrow-$version"/*.dist-info)
mkdir -p "$info/licenses"
cp "$doc"/LICENSE-* "$doc/THIRD-PARTY.txt" "$info/licenses/"
rm "$wheel"
wheel pack --dest-dir "$out" "$work/wheel/windrow-$version"

# npm: the program's package, and the one that people install.
cp -r deploy/npm "$work/npm"
sed -i "s/\"0\.0\.0\"/\"$version\"/" "$work"/npm/*/package.json
mkdir "$work/npm/windrow-linux-x64/bin"
cp "$program" "$work/npm/windrow-linux-x64/bin/"
for package in windrow-linux-x64 windrow; do
    cp LICENSE-MIT LICENSE-APACHE "$work/npm/$package/"
    cp "$doc/THIRD-PARTY.txt" "$work/npm/windrow-linux-x64/"
    (cd "$out" && npm pack --silent "$work/npm/$package")
done

# The .deb: the same tree below /usr.
deb="$work/deb"
mkdir -p "$deb/DEBIAN" "$deb/etc/windrow" "$deb/usr/share/lintian/overrides"
cp -r "$tree"/{bin,lib,share} "$deb/usr/"
sed -i '/^#.*\/usr\/local\/bin/,/^#   systemctl/d; s|/usr/local/|/usr/|g' "$deb/usr/lib/systemd/system/windrow.service"
mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
cp deploy/deb/config.toml "$deb/etc/windrow/"
cp deploy/deb/lintian-overrides "$deb/usr/share/lintian/overrides/windrow"
debdoc="$deb/usr/share/doc/windrow"
{
    printf 'Copyright (c) 2026 The Windrow developers\n\nLicence: MIT OR Apache-2.0\n\n'
    cat LICENSE-MIT
    printf '\nApache-2.0: /usr/share/common-licenses/Apache-2.0. Licences of contained software: THIRD-PARTY.txt\n'
} >"$debdoc/copyright"
rm "$debdoc"/LICENSE-*
printf 'windrow (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$maintainer" \
    "$(date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$debdoc/changelog.gz"
(cd "$deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$deb/DEBIAN/md5sums"
echo /etc/windrow/config.toml >"$deb/DEBIAN/conffiles"
sed "s/@VERSION@/$version/; s/@SIZE@/$(du -sk "$deb/usr" | cut -f1)/; s/@MAINTAINER@/$maintainer/" deploy/deb/control \
    >"$deb/DEBIAN/control"
install -m 755 deploy/deb/{postinst,prerm,postrm} "$deb/DEBIAN/"
chmod -R u=rwX,go=rX "$deb"
dpkg-deb --root-owner-group -Zxz --build "$deb" "$out/windrow_${version}_amd64.deb"
lintian --fail-on error "$out/windrow_${version}_amd64.deb"

"$tools/bin/python" scripts/oci.py "$program" "$version" "$SOURCE_DATE_EPOCH" "$out/windrow-$version-oci.tar"

(cd "$out" && sha256sum -- * >SHA256SUMS)
printf 'the program: %s bytes of at most %s, %s\n' "$size" "$size_max" "$told"
ls -l "$out"
