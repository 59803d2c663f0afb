#!/usr/bin/env python3
"""What hostile clients cost the tasks of a node: all known attacks on its façade at once, beside a task of 100/s.

    scripts/siege.py [--windrow target/release/windrow] [--seconds 30]    measures, and fails below the bars
    scripts/siege.py --windrow target/debug/windrow --smoke               some seconds; judges all but rate and memory

Attackers, each from an address of its own and none with more than one token of one business:
- bodies:   30 clients that send lists of 5.5 million empty items, again and again
- uploads:  512 uploads whose bytes never come
- silence:  1,200 connections without a token that say half a request
- streams:  300 streams of events

Needs nothing but Python and Linux (127.0.0.2 and so on are this machine). Everything is private and ends with it.
"""
import argparse, asyncio, json, os, signal, subprocess, sys, tempfile, time, urllib.request

RATE = 100
MEMORY_MAX = 300 << 20
RATE_MIN = 0.99
HEALTH_MAX = 1.0
LIST = b'{"business":"push","source":{"type":"inline","items":[' + b"{}," * 5_499_999 + b"{}]}}"


class Seen:
    def __init__(self):
        self.calls, self.answers, self.cut, self.health, self.memory = [], {}, 0, [], 0

    def answer(self, who, status):
        self.answers.setdefault(who, {}).setdefault(status, 0)
        self.answers[who][status] += 1


SEEN = Seen()


async def handle(reader, writer):
    """The business: answers at once and closes, so that its name is resolved for each call."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
    SEEN.calls.append(time.monotonic())
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def connect(port, source):
    return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)), 30)


def request(line, token=None, *headers):
    headers = [*headers, f"authorization: Bearer {token}"] if token else headers
    return "\r\n".join([f"{line} HTTP/1.1", "host: localhost", *headers, "", ""]).encode()


async def status_of(reader):
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    return int(head.split(b" ", 2)[1])


async def bodies(port, token):
    while True:
        writer = None
        try:
            reader, writer = await connect(port, "127.0.0.3")
            head = request("POST /v1/tasks", token, "content-type: application/json", f"content-length: {len(LIST)}")
            writer.write(head)
            # All of it before the answer is looked at, as plain clients do; a reset is an answer that nobody saw.
            for at in range(0, len(LIST), 1 << 20):
                writer.write(LIST[at : at + (1 << 20)])
                await writer.drain()
            SEEN.answer("bodies", await status_of(reader))
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            SEEN.cut += 1
        finally:
            if writer:
                writer.close()


async def held(who, source, port, first, more):
    """A connection that is held for as long as the node lets it, then made again."""
    while True:
        writer = None
        try:
            reader, writer = await connect(port, source)
            writer.write(first)
            await writer.drain()
            if more is None:
                SEEN.answer(who, await status_of(reader))
                while await reader.read(4096):
                    pass
            else:
                answer = asyncio.create_task(reader.read(16))
                while not answer.done():
                    writer.write(more)
                    await writer.drain()
                    await asyncio.wait([answer], timeout=2)
                said = answer.result()
                SEEN.answer(who, int(said.split(b" ")[1]) if said.startswith(b"HTTP") else "closed")
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError, IndexError):
            pass
        finally:
            if writer:
                writer.close()
        await asyncio.sleep(1)


async def health(port):
    while True:
        begun = time.monotonic()
        try:
            reader, writer = await connect(port, "127.0.0.1")
            writer.write(request("GET /healthz", None, "connection: close"))
            status = await status_of(reader)
            writer.close()
            SEEN.health.append(time.monotonic() - begun if status == 200 else 60.0)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            SEEN.health.append(60.0)
        await asyncio.sleep(0.5)


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


async def memory(pid):
    while True:
        SEEN.memory = max(SEEN.memory, resident(pid))
        await asyncio.sleep(0.05)


def ask(url, token, path, body):
    data, headers = json.dumps(body).encode(), {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as answer:
        return json.load(answer)


def start(windrow, place):
    with open(f"{place}/config.toml", "w") as config:
        config.write("")
    environment = dict(os.environ, HOME=place, WINDROW_NODE__DATA_DIR=f"{place}/data", WINDROW_HTTP__LISTEN="127.0.0.1:0")
    environment["WINDROW_AUTH__BOOTSTRAP_TOKEN_FILE"] = f"{place}/admin.token"
    said = open(f"{place}/said", "w+")
    words = [windrow, "serve", "--config", f"{place}/config.toml"]
    node = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, cwd=place)
    for _ in range(600):
        text = open(f"{place}/said").read()
        if "http://127.0.0.1:" in text:
            port = text.split("http://127.0.0.1:")[1]
            return node, int("".join(c for c in port[:5] if c.isdigit()))
        if node.poll() is not None:
            sys.exit(f"the node ended:\n{text}")
        time.sleep(0.1)
    node.kill()
    sys.exit("the node doesn't come up")


async def siege(windrow, seconds, place):
    node, port = start(windrow, place)
    try:
        business = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://localhost:{business.sockets[0].getsockname()[1]}/"
        base, admin = f"http://127.0.0.1:{port}", open(f"{place}/admin.token").read().strip()
        do = lambda path, body: asyncio.to_thread(ask, base, admin, path, body)
        for name in ["push", "victim"]:
            await do("/v1/businesses?check=skip", {"name": name, "url": url})
        hostile = (await do("/v1/tokens", {"name": "hostile", "role": "business", "business": "push"}))["token"]
        source = {"type": "range", "total": 10_000_000}
        await do("/v1/tasks", {"business": "victim", "source": source, "rate": f"{RATE}/s", "start": True})
        while not SEEN.calls:
            await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        calm = resident(node.pid)
        upload = request("POST /v1/uploads", hostile, "content-type: text/csv", "content-length: 1000000000") + b"a,b\n"
        listen = request("GET /v1/events?topics=tasks", hostile)
        attacks = [
            *[bodies(port, hostile) for _ in range(30)],
            *[held("uploads", "127.0.0.4", port, upload, b"1,2\n") for _ in range(512)],
            *[held("silence", "127.0.0.2", port, b"GET /v1/tasks HTTP/1.1\r\nx: ", b"x") for _ in range(1200)],
            *[held("streams", "127.0.0.5", port, listen, None) for _ in range(300)],
        ]
        tasks = [asyncio.create_task(one) for one in [*attacks, health(port), memory(node.pid)]]
        begun = time.monotonic()
        await asyncio.sleep(seconds)
        ended = time.monotonic()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(5)
        if node.poll() is not None:
            sys.exit("the node ended:\n" + open(f"{place}/said").read())
        calls = [at for at in SEEN.calls if begun <= at < ended]
        gap = max(later - earlier for earlier, later in zip(calls, calls[1:]))
        return calm, len(calls) / (ended - begun) / RATE, gap, resident(node.pid)
    finally:
        node.send_signal(signal.SIGTERM)
        try:
            node.wait(60)
        except subprocess.TimeoutExpired:
            node.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--windrow", default="target/release/windrow")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    seconds = min(args.seconds, 6) if args.smoke else args.seconds
    with tempfile.TemporaryDirectory() as place:
        calm, rate, gap, after = asyncio.run(siege(os.path.abspath(args.windrow), seconds, place))
    mib = lambda count: f"{count / (1 << 20):.0f} MiB"
    print(f"rate      {rate:.4f} of {RATE}/s, longest gap {gap * 1000:.0f} ms, over {seconds:.0f} s")
    print(f"memory    {mib(calm)} before, {mib(SEEN.memory)} at most, {mib(after)} five seconds after")
    print(f"health    asked {len(SEEN.health)} times, {max(SEEN.health) * 1000:.0f} ms at most")
    print(f"answers   {json.dumps(SEEN.answers)}, {SEEN.cut} posts were cut off")
    faults = []
    refused = SEEN.answers.get("bodies", {})
    if SEEN.cut or not refused or not set(refused) <= {413, 429, 503}:
        faults.append("a large post was taken, or cut off before its client saw an answer")
    for who in ["uploads", "streams"]:
        if 429 not in SEEN.answers.get(who, {}):
            faults.append(f"one business had all {who}")
    if max(SEEN.health) > (30 if args.smoke else HEALTH_MAX):
        faults.append("health was not answered in time")
    if not args.smoke and rate < RATE_MIN:
        faults.append(f"the task kept less than {RATE_MIN} of its rate")
    if not args.smoke and SEEN.memory > MEMORY_MAX:
        faults.append(f"more than {mib(MEMORY_MAX)} of memory")
    sys.exit("; ".join(faults) or None)


if __name__ == "__main__":
    main()
