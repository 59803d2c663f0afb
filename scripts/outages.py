#!/usr/bin/env python3
"""Real outages of real handlers under `windrow run`: what they cost, measured from the handler's side.

usage: scripts/outages.py [--windrow PATH] [--seconds 60] [--rate 5] [--batch 1] [--kinds refused,503] [-- FLAGS OF RUN]

`--rate 0` is without a rate: eight calls at a time of 50 ms each.

Each kind of outage has a handler of its own that works for ten seconds, is down for so many, and works again; all kinds
run at once. Ends with exit code 1 where an item was given up, the first call came later than 36 s (and a timeout) after
the handler was back, the rate never came back, or calls went on through the outage.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

CALM = 10
AFTER = 30
UNPACED_CALL = 0.05
UNPACED_CALLS = 8
FIRST_CALL_MAX = 36.0
TIMEOUT = 2
# Evidence that opens a circuit, in calls: a full row of unclear ones. What left before their timeout comes on top.
OPENING_CALLS_MAX = 40

STATUSES = {"500": 500, "502": 502, "503": 503}
HTTP = ["refused", "name", "tls", "timeout", "reset", *STATUSES]
WORKERS = ["worker-start", "worker-dies"]

WORKER = r"""
import json, os, sys, time
place, takes = sys.argv[1], float(sys.argv[2])
log = open(os.path.join(place, "calls"), "a", buffering=1)
down = lambda kind: os.path.exists(os.path.join(place, kind))
if down("worker-start"):
    sys.exit("no licence")
for line in sys.stdin:
    # Not the hello, which is no item.
    if "index" in json.loads(line):
        log.write(f"{time.time()} 1\n")
    if down("worker-dies") or down("worker-start"):
        os._exit(1)
    time.sleep(takes)
    print("ok", flush=True)
"""


class Handler:
    """One business: answers calls, or fails in its way, and writes down when items came."""

    def __init__(self, kind, place, takes):
        self.kind, self.place, self.takes, self.is_down, self.calls = kind, place, takes, False, []
        self.port, self.server, self.tls = None, None, None

    def hosts(self, is_there):
        with open(os.path.join(self.place, "hosts"), "w") as hosts:
            hosts.write("127.0.0.1 localhost\n" + ("127.0.0.1 business.test\n" if is_there else ""))

    async def listen(self):
        if self.kind == "tls":
            key, cert = (os.path.join(self.place, name) for name in ("key.pem", "cert.pem"))
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                 "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", cert],
                check=True, capture_output=True)
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(cert, key)
        if self.kind == "name":
            self.hosts(True)
        await self.open()

    async def open(self):
        tls = None if self.is_down else self.tls
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port or 0, ssl=tls)
        self.port = self.server.sockets[0].getsockname()[1]

    async def close(self):
        self.server.close()
        for task in asyncio.all_tasks():
            if task.get_name() == f"call {id(self)}":
                task.cancel()

    async def turn(self, is_down):
        self.is_down = is_down
        if self.kind in WORKERS:
            flag = os.path.join(self.place, self.kind)
            open(flag, "w").close() if is_down else os.remove(flag)
        elif self.kind == "name":
            self.hosts(not is_down)
            await self.close()
            await self.open()
        elif self.kind == "refused":
            await (self.close() if is_down else self.open())
        elif self.kind == "tls":
            # Down, it speaks plain text where TLS is expected.
            await self.close()
            await self.open()

    async def serve(self, reader, writer):
        asyncio.current_task().set_name(f"call {id(self)}")
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                               if line.lower().startswith(b"content-length:")), 0)
                call = json.loads(await reader.readexactly(length))
                self.calls.append((time.time(), len(call.get("items", [0]))))
                if self.is_down and self.kind == "timeout":
                    await asyncio.sleep(3600)
                if self.is_down and self.kind == "reset":
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                await asyncio.sleep(self.takes)
                status = STATUSES.get(self.kind, 200) if self.is_down else 200
                writer.write(f"HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def seen(self):
        if self.kind in WORKERS:
            with open(os.path.join(self.place, "calls")) as calls:
                return [(float(at), int(items)) for at, items in (line.split() for line in calls)]
        return self.calls


def processor_seconds(pid):
    """What a process and its ended children used; none once it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def command(kind, place, port, options):
    host = {"tls": "https://localhost", "name": "http://business.test"}.get(kind, "http://127.0.0.1")
    pace = ["--rate", f"{options.rate:g}/s"] if options.rate else ["--concurrency", str(UNPACED_CALLS * options.batch)]
    usual = options.rate or UNPACED_CALLS / UNPACED_CALL * options.batch
    total = int(usual * (CALM + AFTER))
    run = [options.windrow, "run", "--total", str(total), *pace, "--wait", "-o", "json", "-q",
           "--state", os.path.join(place, "state"), "--call-timeout", f"{TIMEOUT}s", *options.flags]
    if kind in WORKERS:
        run += [] if options.rate else ["--workers", str(UNPACED_CALLS)]
        return total, [*run, "--", sys.executable, "-c", WORKER, place, str(0 if options.rate else UNPACED_CALL)]
    run += ["--batch", str(options.batch), "--url", f"{host}:{port}/"]
    if kind == "name":
        mount = f"mount --bind {place}/hosts /etc/hosts && exec \"$@\""
        run = ["unshare", "--mount", "sh", "-c", mount, "sh", *run]
    return total, run


async def outage(kind, options):
    """Plays one; a row of the table and what is wrong with it."""
    with tempfile.TemporaryDirectory() as place:
        handler = Handler(kind, place, 0 if options.rate else UNPACED_CALL)
        await handler.listen()
        total, run = command(kind, place, handler.port, options)
        environment = {**os.environ, "WINDROW_HANDLER__HTTP__CA_FILE": os.path.join(place, "cert.pem")}
        if kind != "tls":
            del environment["WINDROW_HANDLER__HTTP__CA_FILE"]
        process = await asyncio.create_subprocess_exec(
            *run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        await asyncio.sleep(CALM)
        went, used = time.time(), processor_seconds(process.pid)
        await handler.turn(True)
        await asyncio.sleep(options.seconds)
        used = processor_seconds(process.pid) - used
        back = time.time()
        await handler.turn(False)
        try:
            out, error = await asyncio.wait_for(process.communicate(), FIRST_CALL_MAX + TIMEOUT + 4 * AFTER)
        except asyncio.TimeoutError:
            process.send_signal(signal.SIGKILL)
            out, error = await process.communicate()
        return judged(kind, (total, out, error), (went, back, used), handler.seen(), options)


def judged(kind, ended, times, calls, options):
    (total, out, error), (went, back, used) = ended, times
    try:
        counts = json.loads(out)["counts"]
    except (ValueError, KeyError):
        counts = {"succeeded": None, "failed": None, "said": (out + error).decode()[-300:]}
    # What was under way when it went, or came back, belongs to neither side.
    during = sum(1 for at, _ in calls if went + 0.1 <= at < back)
    after = [(at - back, items) for at, items in calls if at >= back]
    first = after[0][0] if after else float("inf")
    span = 5
    usual = sum(items for at, items in calls if went - span <= at < went) / span
    full = next((at - first for at, _ in after
                 if sum(items for then, items in after if at <= then < at + span) >= 0.9 * usual * span),
                float("inf"))
    row = {"outage": kind, "items": total, "succeeded": counts["succeeded"], "failed": counts["failed"],
           "rate before": round(usual, 1), "calls in it": during, "first call after s": round(first, 1), "full rate after s": round(full, 1),
           "processor %": round(100 * used / options.seconds, 1)}
    wrong = []
    if counts["succeeded"] != total or counts["failed"] != 0:
        wrong.append(f"not every item succeeded: {counts}")
    if first > FIRST_CALL_MAX + TIMEOUT:
        wrong.append("called too late")
    if full > 10:
        wrong.append("the rate did not come back")
    in_flight = (options.rate * TIMEOUT or UNPACED_CALLS) if kind == "timeout" else 0
    if during > OPENING_CALLS_MAX + in_flight + options.seconds / 10:
        wrong.append("calls went on")
    return row, wrong


async def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--windrow", default="target/debug/windrow")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--kinds", default=",".join([*HTTP, *WORKERS]))
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if "name" in kinds and os.geteuid() != 0:
        print("skipped: only root can remove a name", file=sys.stderr)
        kinds.remove("name")
    rows = await asyncio.gather(*(outage(kind, options) for kind in kinds))
    names = list(rows[0][0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row, _ in rows:
        print("| " + " | ".join(str(row[name]) for name in names) + " |")
    wrong = [f"{row['outage']}: {text}" for row, texts in rows for text in texts]
    print("\n".join(wrong) or "no items were lost")
    return 1 if wrong else 0


sys.exit(asyncio.run(main()))
