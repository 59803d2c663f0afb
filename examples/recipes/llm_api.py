#!/usr/bin/env python3
"""A stand-in for a language model API that limits calls and tokens per minute, and counts what it did.

usage: PORT=9006 python3 examples/recipes/llm_api.py [--rpm 300] [--tpm 90000] [--burst 6] [--latency 0.1] [--headers]

POST /v1/chat  {"prompt": "…", "max_tokens": 200} is answered with {"text": "…", "usage": {"prompt_tokens": …,
               "completion_tokens": …, "total_tokens": …}} after the latency. The key is LLM_KEY (sk-demo-0815).
               A token is four bytes of the prompt; the text has 1 to max_tokens tokens, the same for the same prompt.
GET /stats     counts of calls and tokens, in total and for each second since the first call.
GET /accepted  [second, seconds until the answer, prompt bytes, tokens] of each accepted call, in order of arrival.

Both limits refill evenly: --rpm 18000 is 300 calls a second. --burst is the span whose calls and tokens may come at once.
PORT=0 takes any free port; the first line of the output says which.
"""

import argparse
import asyncio
import json
import math
import os
import time
import zlib

KEY = os.environ.get("LLM_KEY", "sk-demo-0815")
BYTES_PER_TOKEN = 4
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Bucket:
    """Units that refill evenly up to a capacity."""

    def __init__(self, per_minute, burst):
        self.per_minute, self.rate = per_minute, per_minute / 60
        self.capacity = self.level = max(1.0, self.rate * burst)
        self.filled_at = None

    def refill(self, now):
        if self.filled_at is not None:
            self.level = min(self.capacity, self.level + (now - self.filled_at) * self.rate)
        self.filled_at = now

    def wait(self, units):
        """Returns the seconds until the units are there."""
        return max(0.0, (units - self.level) / self.rate)

    def headers(self, unit):
        return {
            f"x-ratelimit-limit-{unit}": f"{self.per_minute:.0f}",
            f"x-ratelimit-remaining-{unit}": f"{math.floor(self.level)}",
            f"x-ratelimit-reset-{unit}": span(self.wait(self.capacity)),
        }


def span(seconds):
    """Writes a span as vendors do: 6m0s, 1.5s, 450ms."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(math.ceil(seconds * 1000) / 1000, 60)
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


class Counts:
    """Everything the server counts, with times since the first call."""

    def __init__(self):
        self.first_at, self.keys = None, set()
        self.calls = self.repeats = self.unauthorized = self.invalid = self.refused = self.tokens = 0
        self.accepted, self.seconds = [], {}

    def arrival(self, now, key):
        self.first_at = now if self.first_at is None else self.first_at
        self.calls += 1
        if key:
            self.repeats += key in self.keys
            self.keys.add(key)

    def second(self, now):
        """Returns [accepted, refused, tokens] of the present second."""
        return self.seconds.setdefault(int(now - self.first_at), [0, 0, 0])

    def accept(self, now, latency, prompt_bytes, tokens):
        self.tokens += tokens
        self.accepted.append((round(now - self.first_at, 6), latency, prompt_bytes, tokens))
        second = self.second(now)
        second[0] += 1
        second[2] += tokens

    def refuse(self, now):
        self.refused += 1
        self.second(now)[1] += 1

    def stats(self):
        names = ("calls", "repeats", "unauthorized", "invalid", "refused", "tokens")
        rows = ({"second": second, "accepted": row[0], "refused": row[1], "tokens": row[2]}
                for second, row in sorted(self.seconds.items()))
        age = 0 if self.first_at is None else time.monotonic() - self.first_at
        return {**{name: getattr(self, name) for name in names}, "accepted": len(self.accepted),
                "seconds": round(age, 3), "series": list(rows)}


class Api:
    """The vendor: its two limits, its key and its counts."""

    def __init__(self, options):
        self.requests = Bucket(options.rpm, options.burst)
        self.tokens = Bucket(options.tpm, options.burst)
        self.latency, self.has_headers, self.counts = options.latency, options.headers, Counts()

    def answer(self, method, path, headers, body):
        """Returns the status, further headers, the body and the seconds until they are sent."""
        if (method, path) == ("POST", "/v1/chat"):
            return self.chat(headers, body)
        if (method, path) == ("GET", "/stats"):
            return 200, {}, self.counts.stats(), 0
        if (method, path) == ("GET", "/accepted"):
            return 200, {}, self.counts.accepted, 0
        return 404, {}, error("not_found", f"no {method} {path} here"), 0

    def chat(self, headers, body):
        now = time.monotonic()
        self.counts.arrival(now, headers.get("idempotency-key"))
        if headers.get("authorization") != f"Bearer {KEY}":
            self.counts.unauthorized += 1
            return 401, {}, error("authentication", "the API key is missing or wrong"), 0
        try:
            call = json.loads(body)
            prompt, most = call["prompt"].encode(), call["max_tokens"]
            if type(most) is not int or most < 1:
                raise ValueError("not a positive number")
        except (ValueError, KeyError, TypeError, AttributeError):
            self.counts.invalid += 1
            return 400, {}, error("invalid_request", 'expected {"prompt": TEXT, "max_tokens": NUMBER}'), 0
        return self.limited(now, prompt, 1 + zlib.crc32(prompt) % most)

    def limited(self, now, prompt, completion_tokens):
        prompt_tokens = -(-len(prompt) // BYTES_PER_TOKEN)
        tokens = prompt_tokens + completion_tokens
        self.requests.refill(now)
        self.tokens.refill(now)
        if tokens > self.tokens.capacity:
            self.counts.invalid += 1
            return 400, {}, error("request_too_large", f"{tokens} tokens exceed the limit"), 0
        waits = {"requests": self.requests.wait(1), "tokens": self.tokens.wait(tokens)}
        unit = max(waits, key=waits.get)
        if waits[unit] > 0:
            self.counts.refuse(now)
            reply = error("rate_limit", f"the limit of {unit} is reached; try again in {span(waits[unit])}")
            more = {"retry-after-ms": str(math.ceil(waits[unit] * 1000))} if self.has_headers else {}
            return 429, {**self.limits(), **more, "retry-after": str(math.ceil(waits[unit]))}, reply, 0
        self.requests.level -= 1
        self.tokens.level -= tokens
        self.counts.accept(now, self.latency, len(prompt), tokens)
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": tokens}
        return 200, self.limits(), {"text": f"A text of {completion_tokens} tokens.", "usage": usage}, self.latency

    def limits(self):
        return {**self.requests.headers("requests"), **self.tokens.headers("tokens")} if self.has_headers else {}


def error(kind, message):
    return {"error": {"type": kind, "message": message}}


class Connection(asyncio.Protocol):
    """A kept connection; the next request on it waits for the answer to the one before."""

    def __init__(self, api):
        self.api, self.received, self.is_busy, self.transport = api, b"", False, None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        self.next()

    def next(self):
        end = self.received.find(b"\r\n\r\n")
        if self.is_busy or end < 0 or self.transport.is_closing():
            return
        first, *rest = self.received[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        length, words = headers.get("content-length", "0"), first.split(" ")
        if "transfer-encoding" in headers or not length.isdigit() or len(words) != 3:
            self.send(400, {"connection": "close"}, error("invalid_request", "a body needs content-length"))
            return self.transport.close()
        body_ends = end + 4 + int(length)
        if len(self.received) < body_ends:
            return
        body, self.received = self.received[end + 4 : body_ends], self.received[body_ends:]
        status, more, reply, wait = self.api.answer(words[0], words[1], headers, body)
        self.is_busy = True
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self.send, status, more, reply)
        else:
            self.send(status, more, reply)

    def send(self, status, headers, reply):
        if self.transport.is_closing():
            return
        text = json.dumps(reply).encode()
        lines = [f"HTTP/1.1 {status} {REASONS[status]}", "content-type: application/json", f"content-length: {len(text)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        self.is_busy = False
        self.next()


async def serve(options):
    api = Api(options)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(api), "127.0.0.1", int(os.environ.get("PORT", 9006)), backlog=512)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rpm", type=float, default=300, help="calls per minute")
    parser.add_argument("--tpm", type=float, default=90_000, help="tokens per minute")
    parser.add_argument("--burst", type=float, default=6, help="span of both limits that may come at once, in seconds")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds until an answer")
    parser.add_argument("--headers", action="store_true", help="send x-ratelimit-* headers")
    try:
        asyncio.run(serve(parser.parse_args()))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
