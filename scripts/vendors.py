"""Services with limits, served over real sockets and judged by their own clocks: the other side of pace.py."""

import asyncio
import bisect
import collections
import functools
import json
import math
import signal
import sys
import time

BACK_SPAN, BACK_SHARE = 5, 0.9
FIRST_CALL_MAX = 60
LATENCY = 0.05
NEARLY_ONE = 1 - 1e-9

# ---------------------------------------------------------------------------------------------------------------- limits


class Limit:
    """A service without a limit. Times are in seconds, and `now` never falls."""

    # Length of its periods, which begin at whole multiples: measured times consist of whole ones.
    period, is_calendar = 0, False

    def admits(self, now, item):
        return True

    def ended(self):
        """Notes the end of an admitted call."""

    def change(self, now, rate):
        """Changes the rate."""

    def wait(self, now):
        """Returns the seconds until it admits a call."""
        return 0

    def room(self, now):
        """Returns the calls it admits at once, those left, the seconds until all are there, and its span."""
        raise NotImplementedError


class Bucket(Limit):
    """Tokens that refill evenly; a call takes one. If refused calls count, each empties the rest."""

    def __init__(self, rate, burst, counts_refused=False):
        self.rate, self.burst, self.counts_refused = rate, burst, counts_refused
        self.level, self.filled_at = burst, 0

    def refill(self, now):
        self.level = min(self.burst, self.level + (now - self.filled_at) * self.rate)
        self.filled_at = now

    def change(self, now, rate):
        self.refill(now)
        self.rate = rate

    def admits(self, now, item):
        self.refill(now)
        if self.level >= NEARLY_ONE:
            self.level -= 1
            return True
        if self.counts_refused:
            self.level = 0
        return False

    def wait(self, now):
        self.refill(now)
        return max(0, 1 - self.level) / self.rate

    def room(self, now):
        self.refill(now)
        return self.burst, int(self.level + 1 - NEARLY_ONE), (self.burst - self.level) / self.rate, self.burst / self.rate


class Window(Limit):
    """A number of calls in each period by the clock."""

    is_calendar = True

    def __init__(self, most, period):
        self.most, self.period, self.number, self.used = most, period, None, 0

    def turn(self, now):
        if now // self.period != self.number:
            self.number, self.used = now // self.period, 0

    def admits(self, now, item):
        self.turn(now)
        if self.used == self.most:
            return False
        self.used += 1
        return True

    def rest(self, now):
        return (now // self.period + 1) * self.period - now

    def wait(self, now):
        self.turn(now)
        return self.rest(now) if self.used == self.most else 0

    def room(self, now):
        self.turn(now)
        return self.most, self.most - self.used, self.rest(now), self.period


class SlidingLog(Limit):
    """A number of calls in any stretch of a length, refused ones included if they count."""

    def __init__(self, most, period, counts_refused=False):
        self.most, self.period, self.counts_refused = most, period, counts_refused
        self.times = collections.deque()

    def forget(self, now):
        while self.times and self.times[0] <= now - self.period:
            self.times.popleft()

    def admits(self, now, item):
        self.forget(now)
        has_room = len(self.times) < self.most
        if has_room or self.counts_refused:
            self.times.append(now)
        return has_room

    def wait(self, now):
        self.forget(now)
        return self.times[-self.most] + self.period - now if len(self.times) >= self.most else 0

    def room(self, now):
        self.forget(now)
        reset = self.times[-1] + self.period - now if self.times else 0
        return self.most, max(0, self.most - len(self.times)), reset, self.period


class AtOnce(Limit):
    """A number of calls in flight."""

    def __init__(self, most):
        self.most, self.out = most, 0

    def admits(self, now, item):
        if self.out == self.most:
            return False
        self.out += 1
        return True

    def ended(self):
        self.out -= 1

    def wait(self, now):
        return 1


class Stray(Limit):
    """One refusal in so many calls, for no reason, with a long wait."""

    def __init__(self, every, wait):
        self.every, self.seconds, self.calls = every, wait, 0

    def admits(self, now, item):
        self.calls += 1
        return self.calls % self.every != 0

    def wait(self, now):
        return self.seconds


class OneItem(Limit):
    """Refusals of one item, whenever it comes."""

    def __init__(self, item, wait):
        self.item, self.seconds = item, wait

    def admits(self, now, item):
        return item != self.item

    def wait(self, now):
        return self.seconds


# -------------------------------------------------------------------------------------------------------------- services


class Steady:
    """A service whose calls all take the same time, or longer the more are in flight."""

    def __init__(self, later, seconds=LATENCY, slower=lambda in_flight: 1):
        self.later, self.seconds, self.slower, self.in_flight = later, seconds, slower, 0

    def take(self, now, done):
        self.in_flight += 1
        end = now + self.seconds * self.slower(self.in_flight)
        self.later(end, functools.partial(self.end, end, done))

    def end(self, at, done):
        self.in_flight -= 1
        done(at)

    def change(self, now, rate):
        """Changes nothing: its limit has the rate."""


class Queue:
    """Servers with one line before them. A server goes on at the planned end of its call, so a late timer costs no capacity."""

    def __init__(self, later, rate, seconds=0.1):
        self.later, self.seconds, self.servers, self.busy = later, seconds, round(rate * seconds), 0
        self.waiting = collections.deque()

    def take(self, now, done):
        self.waiting.append(done)
        self.start(now)

    def start(self, at):
        while self.waiting and self.busy < self.servers:
            self.busy += 1
            self.later(at + self.seconds, functools.partial(self.end, at + self.seconds, self.waiting.popleft()))

    def end(self, at, done):
        self.busy -= 1
        done(at)
        self.start(at)

    def change(self, now, rate):
        self.servers = round(rate * self.seconds)
        self.start(now)


# ---------------------------------------------------------------------------------------------------------------- vendor


class Log:
    """Calls as the service saw them: ends, seconds and jobs of accepted ones, times of refused ones."""

    def __init__(self):
        self.accepted, self.refused = [], []

    def judged(self, case, begin, seconds):
        calls = sorted(call for call in self.accepted if begin <= call[0] < begin + seconds)
        refused = sum(begin <= at < begin + seconds for at in self.refused)
        per_job = collections.Counter(job for _, _, job in calls)
        figures = {"seconds": seconds, "accepted": len(calls), "per_second": len(calls) / seconds,
                   "refused": refused / max(1, refused + len(calls)),
                   "p95_ms": 1000 * percentile([took for _, took, _ in calls], 0.95)}
        if case.capacity:
            figures["goodput"] = len(calls) / seconds / (sum(case.capacity) / len(case.capacity))
        if case.jobs > 1:
            figures["jain"] = jain([per_job[str(job)] for job in range(case.jobs)])
        ends, phase = [end for end, _, _ in calls], seconds / len(case.capacity or (0,))
        if case.capacity and len(case.capacity) > 1:
            figures["back"] = [back(ends, begin + number * phase, phase, rate)
                               for number, rate in enumerate(case.capacity) if number]
        return figures


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else 0


def jain(values):
    squares = len(values) * sum(value * value for value in values)
    return sum(values) ** 2 / squares if squares else 0


def back(ends, begin, phase, rate):
    """Returns the seconds until the first stretch with nearly the whole rate, None without one in the phase."""
    for start in [begin, *ends[bisect.bisect_left(ends, begin):]]:
        if start + BACK_SPAN > begin + phase:
            return None
        if bisect.bisect_left(ends, start + BACK_SPAN) - bisect.bisect_left(ends, start) >= BACK_SHARE * rate * BACK_SPAN:
            return start - begin
    return None


def x_ratelimit(most, left, reset, _):
    reset = f"{int(reset // 60)}m{reset % 60:.3f}s"
    return {"x-ratelimit-limit-requests": most, "x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": reset}


def ratelimit(most, left, reset, span):
    return {"ratelimit-policy": f'"calls";q={most};w={math.ceil(span)}', "ratelimit": f'"calls";r={left};t={math.ceil(reset)}'}


WRITERS = {"x-ratelimit": x_ratelimit, "ratelimit": ratelimit}


class Vendor:
    """The service of a case: answers calls, and prints its judgement once the measured time is over."""

    def __init__(self, case, warm_up, measured):
        self.case, self.warm_up, self.seconds = case, warm_up, case.seconds(measured)
        self.loop, self.log, self.is_open = asyncio.get_running_loop(), Log(), False
        self.limit, self.service = case.limit(), case.service(self.later)
        # Calendar windows go by the time of day. It is read once: somebody may set the clock meanwhile.
        self.offset = time.time() - self.loop.time()

    def now(self):
        return self.loop.time() + self.offset

    def headers(self, now, is_refused):
        named, headers = self.case.retry_after, {}
        if is_refused and named is not None:
            headers["retry-after"] = math.ceil(self.limit.wait(now)) if named == "true" else named
        if self.case.headers:
            headers |= WRITERS[self.case.headers](*self.limit.room(now))
        return headers

    def later(self, at, act):
        self.loop.call_later(max(0, at - self.now()), act)

    def open(self, now):
        """Sets the measured time, which the first call decides."""
        self.is_open, begin, period = True, now + self.warm_up, self.limit.period
        if self.limit.is_calendar:
            begin = math.ceil(begin / period) * period
        capacity = self.case.capacity or (0,)
        for number, rate in enumerate(capacity[1:], start=1):
            at = begin + number * self.seconds / len(capacity)
            self.later(at, lambda at=at, rate=rate: (self.limit.change(at, rate), self.service.change(at, rate)))
        self.later(begin + self.seconds, lambda: print_json(self.log.judged(self.case, begin, self.seconds)))

    def arrive(self, path, send):
        now = self.now()
        if not self.is_open:
            self.open(now)
        _, job, item = path.split("/")
        if self.limit.admits(now, int(item)):
            self.service.take(now, lambda end: self.end(end, end - now, job, send))
        else:
            self.log.refused.append(now)
            send("429 Too Many Requests", self.headers(now, True))

    def end(self, at, took, job, send):
        self.limit.ended()
        self.log.accepted.append((at, took, job))
        send("200 OK", self.headers(self.now(), False))


class Connection(asyncio.Protocol):
    """A kept connection with one request without a body at a time."""

    def __init__(self, vendor):
        self.vendor, self.received, self.transport = vendor, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            path = self.received.split(b" ", 2)[1].decode()
            self.received = self.received[end + 4:]
            self.vendor.arrive(path, self.send)

    def send(self, status, headers):
        if not self.transport.is_closing():
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n{lines}\r\n".encode())


def print_json(value):
    print(json.dumps(value), flush=True)


async def serve(case, warm_up, measured):
    """Prints the port, then the judgement, and answers until its input is closed."""
    # Ctrl-C reaches all processes of a terminal; the runs that it ends still have calls here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    vendor, loop, is_over = Vendor(case, warm_up, measured), asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(lambda: Connection(vendor), "127.0.0.1", 0, backlog=512)
    print_json(server.sockets[0].getsockname()[1])
    loop.call_later(FIRST_CALL_MAX, lambda: vendor.is_open or print_json({"error": f"no call within {FIRST_CALL_MAX} s"}))
    loop.add_reader(sys.stdin, is_over.set)
    await is_over.wait()
