#!/usr/bin/env python3
"""Shows which items a job fails, with real handlers: last items that fail, bad items in batches, outages, mixtures of both.

usage: scripts/blame.py [PROGRAM] [PART]    PART: tails, batches, outages, mixtures, chance; all without it.
Prints a line a case, and ends with 1 where one is not as it should be. 45 minutes for all.
"""
import collections
import concurrent.futures
import http.server
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "target/release/windrow"
PART = sys.argv[2] if len(sys.argv) > 2 else ""
CALL_TIMEOUT = 1.0


class Handler(http.server.ThreadingHTTPServer):
    """A handler with bad items, and times at which it fails for everybody."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, bad, fault, down=None, share=0.0):
        super().__init__(("127.0.0.1", 0), Request)
        self.bad, self.fault, self.down, self.share = bad, fault, down, share
        self.calls_of = collections.Counter()
        self.began, self.calls, self.lock = time.monotonic(), [], threading.Lock()
        self.chances = random.Random(7)

    def handle_error(self, request, client_address):
        pass

    def fails_with(self, indexes):
        at = time.monotonic() - self.began
        with self.lock:
            self.calls.append(at)
            self.calls_of.update(indexes)
            turn = len(self.calls)
            is_unlucky = self.chances.random() < self.share
        if self.down and self.down[0] <= at < self.down[1]:
            return self.down[2]
        if self.bad.isdisjoint(indexes) and not is_unlucky:
            return None
        return ["500", "502", "503", "504"][turn % 4] if self.fault == "mixed" else self.fault


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        items = body.get("items") or [body["item"]]
        fault = self.server.fails_with({item["index"] for item in items})
        if fault == "reset":
            self.close_connection = True
            return
        if fault == "timeout":
            time.sleep(CALL_TIMEOUT + 0.5)
        status = int(fault) if fault and fault.isdigit() else 200
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


def play(bad, fault, flags, down=None, limit=600, share=0.0):
    """Runs a job: exit code, seconds, the items it gave up with their codes, how many of them unconfirmed, the calls, and of each item."""
    handler = Handler(bad, fault, down, share)
    threading.Thread(target=handler.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as place:
        failures = os.path.join(place, "failures.ndjson")
        url = f"http://127.0.0.1:{handler.server_address[1]}/"
        words = [PROGRAM, "run", "-q", "--name", "blame", "--url", url, "--state", os.path.join(place, "state")]
        words += ["--failures-out", failures, "--call-timeout", f"{CALL_TIMEOUT:.0f}s", *flags]
        begun = time.monotonic()
        try:
            code = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            code = None
        took = time.monotonic() - begun
        lines = [json.loads(line) for line in open(failures)] if os.path.exists(failures) else []
    handler.shutdown()
    handler.server_close()
    given_up = {line["index"]: line["code"] for line in lines}
    unconfirmed = sum(line.get("unconfirmed", False) for line in lines)
    return Story(code, took, given_up, unconfirmed, handler.calls, handler.calls_of)


Story = collections.namedtuple("Story", "code took given_up unconfirmed calls calls_of")
CODES = {"timeout": "TIMEOUT", "reset": "RESET"}
WRONG = []


def tell(name, is_right, *columns):
    print(f"{'ok   ' if is_right else 'WRONG'} {name:<44}", *columns, flush=True)
    if not is_right:
        WRONG.append(name)


def tails():
    """The last items of a job of five seconds."""
    for last in (1, 2, 5):
        for fault in ("500", "502", "503", "504", "timeout", "reset", "mixed"):
            bad = set(range(200 - last, 200))
            code, took, given_up, unconfirmed, *_ = play(bad, fault, ["--total", "200", "--rate", "40/s"])
            own = fault == "mixed" or all(code in (f"HTTP_{fault}", CODES.get(fault)) for code in given_up.values())
            is_right = code == 8 and set(given_up) == bad and own and took <= 35
            tell(f"last {last}, {fault}", is_right, f"exit {code}, {took:5.1f} s, {unconfirmed} unconfirmed")


def batches():
    """Bad items for which a whole call fails."""
    total = 2000
    for batch in (10, 50, 200):
        for share in (0.001, 0.01, 0.05, 0.1):
            for fault in ("500", "503", "reset", "timeout"):
                step = round(1 / share)
                bad = set(range(step // 2, total, step))
                code, took, given_up, _, calls, _ = play(bad, fault, ["--total", str(total), "--batch", str(batch)])
                most = 1.2 * total / batch + len(bad) * (2 * math.log2(batch) + 8)
                is_right = code == 8 and set(given_up) == bad and len(calls) <= most
                wrong = len(set(given_up) ^ bad)
                told = f"exit {code}, {took:5.1f} s, {wrong} wrong, {len(calls)} of {most:.0f} calls"
                tell(f"batches of {batch}, {share:.1%} {fault}", is_right, told)


def outages():
    """Half a minute without a handler, in the middle and two seconds before only the last items are left."""
    for fault in ("500", "502", "503", "reset", "timeout"):
        for name, begin in (("middle", 3), ("before the tail", 8)):
            down = (begin, begin + 30, fault)
            flags = ["--total", "400", "--rate", "40/s", "--wait"]
            code, took, given_up, unconfirmed, calls, _ = play(set(), fault, flags, down)
            after = [at for at in calls if at >= down[1]]
            first = after[0] - down[1] if after else math.inf
            is_right = len(given_up) == unconfirmed and (name != "middle" or not given_up) and first <= 36
            told = f"exit {code}, {took:5.1f} s, {len(given_up)} given up, first call {first:.1f} s after it"
            tell(f"outage {fault}, {name}", is_right, told)


def together(cases, judge):
    """Plays cases that hardly need a processor, eight at a time, and judges each in its turn."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        stories = [(name, bad, pool.submit(play, bad, *args)) for name, bad, args in cases]
        for name, bad, story in stories:
            judge(name, bad, story.result())


def mixtures():
    """Bad items of each kind beside good ones, and half a minute without a handler."""
    flags = ["--total", "400", "--rate", "40/s", "--wait"]
    cases = []
    for share in (0.05, 0.3):
        for fault in ("500", "503", "timeout", "reset", "422", "404"):
            for outage in (None, "500", "503", "timeout"):
                # Three refusals before any answer stop a job, and it is about what comes later.
                chances = random.Random(f"{share} {fault}")
                bad = {index for index in range(400) if index > 20 and chances.random() < share}
                if fault == "404" and share > 0.1:
                    continue
                down = outage and (3, 33, outage)
                cases.append((f"{share:.0%} {fault}, outage {outage}", bad, (fault, flags, down)))

    def judge(name, bad, story):
        mean = sum(story.calls_of[index] for index in bad) / len(bad)
        wrong = len(set(story.given_up) ^ bad)
        is_right = story.code == 8 and wrong == 0 and mean <= 12
        told = f"exit {story.code}, {story.took:5.1f} s, {wrong} wrong, {story.unconfirmed} of {len(bad)} unconfirmed"
        tell(name, is_right, f"{told}, {mean:.1f} calls each")

    together(cases, judge)


def chance():
    """Calls that fail at random, whatever their items."""
    flags = ["--total", "1000", "--rate", "100/s"]
    cases = [(f"{share:.0%} of all calls {fault}", set(), (fault, flags, None, 600, share)) for share in (0.1, 0.3, 0.5) for fault in ("500", "503")]

    def judge(name, _, story):
        is_right = len(story.given_up) == story.unconfirmed <= 10 and story.code in (0, 8)
        tell(name, is_right, f"exit {story.code}, {story.took:5.1f} s, {len(story.given_up)} given up, all unconfirmed")

    together(cases, judge)


for part in (tails, batches, outages, mixtures, chance):
    if PART in ("", part.__name__):
        part()
print(f"{len(WRONG)} wrong")
sys.exit(bool(WRONG))
