# python3 examples/recipes/pictures.py DIR: draws six small pictures and one broken file
import os, struct, sys, zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def png(width, height, shade):
    row = lambda y: b"\0" + b"".join(bytes([4 * x % 256, 4 * y % 256, shade]) for x in range(width))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(row(y) for y in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")

os.makedirs(sys.argv[1], exist_ok=True)
for no in range(1, 7):
    with open(f"{sys.argv[1]}/{no}.png", "wb") as picture:
        picture.write(png(64, 48, 40 * no))
with open(f"{sys.argv[1]}/7.png", "wb") as picture:
    picture.write(b"half a download")
