#!/usr/bin/env python3
"""Writes a container image as an OCI layout, packed into one tar file, without a daemon and without root.

    scripts/oci.py PROGRAM VERSION COMMIT_TIME OUT.tar

The image holds the program, the system libraries that it is linked to (those of this machine), certificates and a user,
and nothing else: no shell. `docker load`, `podman load` and `skopeo copy oci-archive:` read it.
"""
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

USER = 65532
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")


class Layer:
    """A layer of the image: files whose times and owners don't depend on this machine."""

    def __init__(self, made: int) -> None:
        self.made, self.raw, self.folders = made, io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.raw, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, name: str, kind: bytes, mode: int, data: bytes = b"", link: str = "", user: int = 0) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), link
        entry.mtime, entry.uid, entry.gid = self.made, user, user
        self.tar.addfile(entry, io.BytesIO(data))

    def folder(self, name: str, mode: int = 0o755, user: int = 0) -> None:
        if name in self.folders:
            return
        if "/" in name:
            self.folder(name.rsplit("/", 1)[0])
        self.folders.add(name)
        self.add(name, tarfile.DIRTYPE, mode, user=user)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        if "/" in name:
            self.folder(name.rsplit("/", 1)[0])
        self.add(name, tarfile.REGTYPE, mode, data)

    def packed(self) -> tuple[bytes, str]:
        """Returns the compressed layer, and the digest of what is in it."""
        self.tar.close()
        raw = self.raw.getvalue()
        return gzip.compress(raw, 6, mtime=0), digest(raw)


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def libraries(program: Path) -> list[str]:
    """Returns the loader and the libraries that the program is linked to, by the paths where it looks for them."""
    told = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", told)))


def base(program: Path) -> Layer:
    """Returns the layer below the program's: it changes only with the system's libraries."""
    layer = Layer(0)
    for path in libraries(program):
        layer.file(path.lstrip("/"), Path(path).read_bytes(), 0o755)
    layer.file(CERTIFICATES, Path("/", CERTIFICATES).read_bytes())
    layer.file("etc/passwd", f"root:x:0:0::/:/\nwindrow:x:{USER}:{USER}::/var/lib/windrow:/\n".encode())
    layer.file("etc/group", f"root:x:0:\nwindrow:x:{USER}:\n".encode())
    layer.folder("tmp", 0o1777)
    layer.folder("var/lib/windrow", 0o700, USER)
    return layer


def top(program: Path, made: int) -> Layer:
    layer = Layer(made)
    layer.file("usr/bin/windrow", program.read_bytes(), 0o755)
    for name in LICENCES:
        layer.file(f"usr/share/doc/windrow/{name}", Path(name).read_bytes())
    return layer


def config(version: str, made: int, layers: list[str]) -> dict:
    second = 1_000_000_000
    probe = {"Test": ["CMD", "/usr/bin/windrow", "doctor", "--ready"],
             "Interval": 10 * second, "Timeout": 5 * second, "StartPeriod": 60 * second}
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(made)),
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/windrow"],
            "Cmd": ["serve"],
            # A container's own network: what the host publishes decides who reaches the port.
            "Env": ["PATH=/usr/bin", "HOME=/var/lib/windrow", "WINDROW_HTTP__LISTEN=0.0.0.0:7700"],
            "ExposedPorts": {"7700/tcp": {}},
            "Volumes": {"/var/lib/windrow": {}},
            "WorkingDir": "/var/lib/windrow",
            "Healthcheck": probe,
            "Labels": {"org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": layers},
        "history": [{"created_by": "scripts/oci.py"} for _ in layers],
    }


def main(program: Path, version: str, made: int, out: Path) -> None:
    packed = [layer.packed() for layer in (base(program), top(program, made))]
    blobs: dict[str, bytes] = {digest(data): data for data, _ in packed}

    def blob(value: dict, kind: str) -> dict:
        data = json.dumps(value).encode()
        blobs[digest(data)] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}+json", "digest": digest(data), "size": len(data)}

    described = blob(config(version, made, [content for _, content in packed]), "config.v1")
    gzipped = "application/vnd.oci.image.layer.v1.tar+gzip"
    layers = [{"mediaType": gzipped, "digest": digest(data), "size": len(data)} for data, _ in packed]
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = blob({"schemaVersion": 2, "mediaType": kind, "config": described, "layers": layers}, "manifest.v1")
    tag = f"windrow:{version}"
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": tag}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}
    path = lambda of: "blobs/" + of.replace(":", "/")
    # What Docker before version 25 reads instead of the index.
    old = [{"Config": path(described["digest"]), "RepoTags": [tag], "Layers": [path(one["digest"]) for one in layers]}]
    image = Layer(made)
    image.file("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    image.file("index.json", json.dumps(index).encode())
    image.file("manifest.json", json.dumps(old).encode())
    for name, data in sorted(blobs.items()):
        image.file(path(name), data)
    image.tar.close()
    out.write_bytes(image.raw.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
