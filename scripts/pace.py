#!/usr/bin/env python3
"""Paces that `windrow run` reaches at services with limits, over real sockets, judged by the services' own clocks.

usage: scripts/pace.py [--windrow PATH[:FLAGS]]… [--quick] [--warm-up 60] [--measured 120] [--only NAME,…] [--at-once 2]
                       [--json FILE]
       scripts/pace.py --list | --self-test

Each `--windrow` makes a column. Flags after a colon are added to its command: `--windrow target/release/windrow:--rate 50/s`.
`--only` takes names or their beginnings. `--quick` warms up for 40 s and measures 20 s; services that go by the minute, or
change their capacity, are measured for at least a minute.

A cell has: accepted calls as a share of what the service could take in the measured time, refused calls as a share of all,
the 95th percentile of accepted calls, and where it applies the seconds after each change until five seconds brought 90 % of
the new capacity, and Jain's index of the jobs' accepted calls.

Ends with exit code 1 if the last column misses a goal.
"""

import argparse
import asyncio
import dataclasses
import heapq
import itertools
import json
import math
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
import typing

import vendors

GOODPUT_MIN, REFUSED_MAX, BACK_MAX, JAIN_MIN = 0.95, 0.025, 15, 0.9
STEPS_SECONDS_MIN = 60
STOP_MAX = 30
ITEMS = 10_000_000

# ----------------------------------------------------------------------------------------------------------------- cases


@dataclasses.dataclass(frozen=True)
class Case:
    """A row: a service with its limit, and what is expected of a program there."""

    name: str
    text: str
    # Calls a second that it can take; several are phases of equal length. None: that of the fixed flags of `best`.
    capacity: typing.Optional[tuple] = (5,)
    limit: typing.Callable = vendors.Limit
    service: typing.Callable = vendors.Steady
    retry_after: object = None
    headers: str = ""
    jobs: int = 1
    goodput_min: float = GOODPUT_MIN
    best: str = ""

    def seconds(self, requested):
        """Returns the measured time: whole periods of the limit, and three long phases if the capacity changes."""
        requested = max(requested, STEPS_SECONDS_MIN) if len(self.capacity or ()) > 1 else requested
        period = self.limit().period
        return math.ceil(requested / period) * period if period else requested


def bucket(counts_refused=False):
    return lambda: vendors.Bucket(5, 5, counts_refused)


def sliding(counts_refused=False):
    return lambda: vendors.SlidingLog(50, 10, counts_refused)


def minute():
    return vendors.Window(300, 60)


def queue(later):
    return vendors.Queue(later, 100)


def at_20(later):
    return vendors.Steady(later, 0.2)


def quadratic(later):
    return vendors.Steady(later, vendors.LATENCY, lambda in_flight: max(1, in_flight / 8) ** 2)


STEPS = (100, 30, 100)
CASES = [
    Case("bucket", "bucket of 5/s", limit=bucket()),
    Case("bucket-retry", "bucket of 5/s, Retry-After", limit=bucket(), retry_after="true"),
    Case("bucket-headers", "bucket of 5/s, x-ratelimit-*", limit=bucket(), retry_after="true", headers="x-ratelimit"),
    Case("bucket-counted", "bucket of 5/s, refused calls count", limit=bucket(True)),
    Case("bucket-always-60", "bucket of 20/s, Retry-After 60 always", (20,), lambda: vendors.Bucket(20, 20), retry_after=60),
    Case("minute", "300 a calendar minute", limit=minute, goodput_min=0.85),
    Case("minute-retry", "300 a calendar minute, Retry-After", limit=minute, retry_after="true", goodput_min=0.85),
    Case("minute-headers", "300 a calendar minute, RateLimit", limit=minute, retry_after="true", headers="ratelimit",
         goodput_min=0.85),
    Case("sliding", "50 in any 10 s", limit=sliding(), goodput_min=0.88),
    Case("sliding-retry", "50 in any 10 s, Retry-After", limit=sliding(), retry_after="true", goodput_min=0.88),
    Case("sliding-headers", "50 in any 10 s, RateLimit", limit=sliding(), retry_after="true", headers="ratelimit",
         goodput_min=0.88),
    Case("sliding-counted", "50 in any 10 s, refused calls count", limit=sliding(True), goodput_min=0.88),
    # A slot is empty between an answer and the next call, which long calls make small.
    Case("at-once", "20 in flight of 200 ms", (100,), lambda: vendors.AtOnce(20), at_20),
    Case("at-once-retry", "20 in flight of 200 ms, Retry-After", (100,), lambda: vendors.AtOnce(20), at_20, retry_after="true"),
    Case("quadratic", "50 ms × max(1, n / 8)²", None, service=quadratic, goodput_min=75 / 87,
         best="--rate unlimited --concurrency 8"),
    Case("queue", "10 servers of 100 ms", (100,), service=queue),
    Case("queue-steps", "queue of 100, 30, 100/s", STEPS, service=queue),
    Case("bucket-steps", "bucket of 100, 30, 100/s", STEPS, lambda: vendors.Bucket(100, 20)),
    Case("bucket-two", "two jobs, bucket of 40/s", (40,), lambda: vendors.Bucket(40, 40), jobs=2),
    Case("bucket-four", "four jobs, bucket of 40/s", (40,), lambda: vendors.Bucket(40, 40), jobs=4),
    Case("queue-two", "two jobs, queue of 100/s", (100,), service=queue, jobs=2),
    Case("queue-four", "four jobs, queue of 100/s", (100,), service=queue, jobs=4),
    Case("stray", "one 429 of 89 s in 1000 calls, queue of 100/s", (100,), lambda: vendors.Stray(1000, 89), queue,
         retry_after="true"),
    Case("one-item", "one item always 429 of 89 s, queue of 100/s", (100,), lambda: vendors.OneItem(300, 89), queue,
         retry_after="true"),
]
# For the self-test: neither a limit nor a latency.
OPEN = Case("open", "answers at once", None, service=lambda later: vendors.Steady(later, 0))
BY_NAME = {case.name: case for case in [*CASES, OPEN]}


def selected(names):
    """Returns the cases of these names, or those whose names begin so."""
    def has(case, word):
        return case.name == word or word not in BY_NAME and case.name.startswith(word)

    found = [case for case in CASES if any(has(case, word) for word in names.split(","))]
    return found or sys.exit(f"no service is called {names}; --list shows them")


# ---------------------------------------------------------------------------------------------------------------- runner


class Program:
    """A column: a program with its own flags."""

    def __init__(self, text):
        self.text = text
        self.path, _, flags = text.partition(":")
        self.flags = shlex.split(flags)
        if not shutil.which(self.path):
            sys.exit(f"{self.path} is no program")

    async def start(self, place, name, flags):
        command = [self.path, "run", "--name", name, "--state", f"{place}/{name}", "--error-budget", "none", *flags, *self.flags]
        environment = {**os.environ, "HOME": place, "no_proxy": "*"}
        with open(f"{place}/{name}.log", "ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


async def stop(process):
    """Interrupts a run, and kills it if it doesn't end; returns its exit code."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        return await asyncio.wait_for(process.wait(), STOP_MAX)
    except asyncio.TimeoutError:
        process.kill()
        return await process.wait()


async def start_vendor(case, options):
    words = [__file__, "--serve", case.name, "--warm-up", str(options.warm_up), "--measured", str(options.measured)]
    pipe = asyncio.subprocess.PIPE
    vendor = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe, stdout=pipe)
    return vendor, int(await vendor.stdout.readline())


async def play(case, program, options):
    """Runs a program at a service until the service judged it."""
    with tempfile.TemporaryDirectory() as place:
        vendor, port = await start_vendor(case, options)
        runs = []
        try:
            for job in range(case.jobs):
                request = f"GET http://127.0.0.1:{port}/{job}/{{index}}"
                runs.append(await program.start(place, f"job-{job}", ["-q", "--total", str(ITEMS), "--request", request]))
            figures = await judgement(vendor, runs, place)
            figures["exits"] = await asyncio.gather(*(stop(run) for run in runs))
            return figures
        finally:
            for run in runs:
                if run.returncode is None:
                    run.kill()
            vendor.stdin.close()
            await vendor.wait()


async def judgement(vendor, runs, place):
    """Waits for the service's judgement, or for a run that ends by itself."""
    judged = asyncio.create_task(vendor.stdout.readline())
    ends = [asyncio.create_task(run.wait()) for run in runs]
    await asyncio.wait([judged, *ends], return_when=asyncio.FIRST_COMPLETED)
    early = [job for job, end in enumerate(ends) if end.done()]
    if not early:
        return json.loads(await judged)
    judged.cancel()
    with open(f"{place}/job-{early[0]}.log", errors="replace") as log:
        return {"error": f"ended by itself with {runs[early[0]].returncode}: {' '.join(log.read().split())[-200:]}"}


def misses(name, figures):
    """Returns the goals that a result misses, as texts."""
    case, found = BY_NAME[name], []
    if figures["goodput"] < case.goodput_min:
        found.append(f"{figures['goodput']:.1%} of capacity, goal {case.goodput_min:.0%}")
    if figures["refused"] > REFUSED_MAX:
        found.append(f"{figures['refused']:.1%} refused, goal {REFUSED_MAX:.1%}")
    for seconds in figures.get("back", []):
        if seconds is None or seconds > BACK_MAX:
            found.append(f"capacity back: {spell(seconds)}, goal {BACK_MAX} s")
    if figures.get("jain", 1) < JAIN_MIN:
        found.append(f"Jain {figures['jain']:.2f}, goal {JAIN_MIN}")
    return found


def spell(seconds):
    return "never" if seconds is None else f"{seconds:.0f} s"


def cell(figures):
    parts = [f"{figures['goodput']:.1%}", f"{figures['refused']:.1%}", f"{figures['p95_ms']:.0f} ms"]
    parts += [" / ".join(map(spell, figures["back"]))] if "back" in figures else []
    parts += [f"J {figures['jain']:.2f}"] if "jain" in figures else []
    return " · ".join(parts)


async def measure(cases, options):
    """Plays each case with each program; returns {case: [figures by column]}."""
    programs, gate = [Program(text) for text in options.windrow], asyncio.Semaphore(options.at_once)

    async def one(case, program):
        async with gate:
            figures = await play(case, program, options)
            print(f"{case.name}: {program.text}: {json.dumps(figures)}", file=sys.stderr, flush=True)
            return figures

    async def row(case):
        columns = programs + ([Program(f"{programs[0].path}:{case.best}")] if case.best else [])
        results = await asyncio.gather(*(one(case, program) for program in columns))
        if case.best:
            best = results.pop().get("per_second", 0)
            for figures in results:
                figures |= {"best": best, "goodput": figures.get("per_second", 0) / max(best, 1e-9)}
        return results

    return dict(zip([case.name for case in cases], await asyncio.gather(*map(row, cases))))


def heading(case, results):
    best = f", {results[0].get('best', 0):.1f}/s by {case.best}" if case.best else ""
    return case.text + best


def report(programs, texts, table, cell, misses):
    """Prints a table with a column for each program, then its goals; returns whether the last column meets all."""
    letters, is_good = "ABCDEFGHIJ"[: len(programs)], True
    for letter, program in zip(letters, programs):
        print(f"{letter}: {program}")
    print("\n| | " + " | ".join(letters) + " |\n|" + "---|" * (len(letters) + 1))
    for name, results in table.items():
        print(f"| {texts[name]} | " + " | ".join("–" if "error" in figures else cell(figures) for figures in results) + " |")
    print()
    for name, results in table.items():
        for letter, figures in zip(letters, results):
            figures["misses"] = [figures["error"]] if "error" in figures else misses(name, figures)
            print(f"{'misses' if figures['misses'] else 'ok':6} {name} {letter} {'; '.join(figures['misses'])}".rstrip())
        is_good &= not figures["misses"]
    return is_good


def write_json(path, programs, table):
    if path:
        with open(path, "w") as file:
            json.dump({"programs": programs, "results": table}, file, indent=1)


# ------------------------------------------------------------------------------------------------------------- self-test


def arrivals(mean_rate, seconds, seed=1):
    """Returns times of calls in bursts and lulls, as the beginning of time for a limit."""
    chance, now, times = random.Random(seed), 0, []
    while now < seconds:
        times.append(now)
        now += chance.expovariate(mean_rate * chance.choice((0.2, 1, 5)))
    return times


def decided(limit, times):
    """Returns each call with its decision; a check needs both kinds."""
    calls = [(at, limit.admits(at, number)) for number, at in enumerate(times)]
    assert len({is_accepted for _, is_accepted in calls}) == 2, limit
    return calls


def fits_bucket(accepted, at, rate, burst, refused_at):
    """Tells by the definition whether one more call fits: in every stretch until now, rate × length + burst."""
    stretches = [rate * (at - since) + burst for since in accepted]
    room = [most - (len(accepted) - number) for number, most in enumerate(stretches)]
    if refused_at is not None:
        # A refused call that counts leaves nothing.
        room.append(rate * (at - refused_at) - sum(then > refused_at for then in accepted))
    return all(left >= vendors.NEARLY_ONE for left in [*room, burst])


def check_buckets():
    for counts_refused in (False, True):
        accepted, refused_at = [], None
        for at, is_accepted in decided(vendors.Bucket(5, 5, counts_refused), arrivals(12, 120)):
            assert is_accepted == fits_bucket(accepted, at, 5, 5, refused_at), (counts_refused, at)
            accepted += [at] if is_accepted else []
            refused_at = at if counts_refused and not is_accepted else refused_at
    stepped = vendors.Bucket(100, 20)
    hits = [at for at, is_accepted in decided(stepped, [n / 1000 for n in range(10_000)]) if is_accepted]
    stepped.change(10, 30)
    later = [at for at, is_accepted in decided(stepped, [10 + n / 1000 for n in range(10_000)]) if is_accepted]
    assert abs(len(hits) - 1020) <= 1 and abs(len(later) - 300) <= 1


def check_windows():
    for at, is_accepted, before in with_history(vendors.Window(300, 60), arrivals(20, 300)):
        assert is_accepted == (sum(yes and then // 60 == at // 60 for then, yes in before) < 300), at
    for counts_refused in (False, True):
        for at, is_accepted, before in with_history(vendors.SlidingLog(50, 10, counts_refused), arrivals(15, 120)):
            recent = sum((yes or counts_refused) and then > at - 10 for then, yes in before)
            assert is_accepted == (recent < 50), (counts_refused, at)


def with_history(limit, times):
    """Yields each call with its decision and those before it."""
    before = []
    for at, is_accepted in decided(limit, times):
        yield at, is_accepted, before
        before.append((at, is_accepted))


def check_waits():
    """A call is refused just before the wait is over, and admitted just after it."""
    for make in (lambda: vendors.Bucket(5, 5), lambda: vendors.Window(300, 60), lambda: vendors.SlidingLog(50, 10)):
        limit, now = make(), 7
        while limit.admits(now, 0):
            now += 0.001
        over = now + limit.wait(now)
        assert over > now and not limit.admits(over - 1e-3, 0) and limit.admits(over + 1e-6, 0), limit
        most, left, reset, _ = limit.room(over + 1e-3)
        assert left < most and limit.room(over + 1e-3 + reset)[1] == most, limit


def check_others():
    limit, chance, out = vendors.AtOnce(20), random.Random(2), 0
    for _ in range(10_000):
        if out and chance.random() < 0.5:
            limit.ended()
            out -= 1
        else:
            is_accepted = limit.admits(0, 0)
            assert is_accepted == (out < 20)
            out += is_accepted
    assert [n for n, (_, yes) in enumerate(decided(vendors.Stray(1000, 89), range(3000))) if not yes] == [999, 1999, 2999]
    assert [n for n, (_, yes) in enumerate(decided(vendors.OneItem(7, 89), range(50))) if not yes] == [7]


def ends_of(make_service, times, changes=()):
    """Plays calls at a service under a clock of its own; returns their ends by number."""
    timers, order, ends = [], itertools.count(), {}
    later = lambda at, act: heapq.heappush(timers, (at, next(order), act))
    service = make_service(later)
    for number, at in enumerate(times):
        later(at, lambda at=at, number=number: service.take(at, lambda end: ends.__setitem__(number, end)))
    for at, rate in changes:
        later(at, lambda at=at, rate=rate: service.change(at, rate))
    while timers:
        heapq.heappop(timers)[2]()
    return [ends[number] for number in range(len(times))]


def check_services():
    times, free, expected = arrivals(90, 60), [0.0] * 10, []
    for at in times:
        end = max(at, heapq.heappop(free)) + 0.1
        heapq.heappush(free, end)
        expected.append(end)
    assert all(abs(one - other) < 1e-9 for one, other in zip(ends_of(queue, times), expected))
    ends = ends_of(queue, [0] * 3000, [(10, 30), (20, 100)])
    per_phase = [sum(begin < end <= begin + 10 for end in ends) for begin in (0, 10, 20)]
    assert all(abs(calls - rate * 10) <= 20 for calls, rate in zip(per_phase, STEPS)), per_phase
    assert [round(end, 3) for end in ends_of(quadratic, [0] * 16)] == [0.05] * 8 + [
        round(0.05 * (n / 8) ** 2, 3) for n in range(9, 17)]


def check_figures():
    assert vendors.jain([5, 5]) == 1 and abs(vendors.jain([1, 0]) - 0.5) < 1e-9
    assert vendors.percentile(range(1, 101), 0.95) == 95
    ends = [n / 10 for n in range(100)] + [10 + n / 100 for n in range(1000)]
    assert abs(vendors.back(ends, 0, 20, 100) - 9.45) < 0.1 and vendors.back(ends, 0, 10, 100) is None


async def client(port, per_second, connections, seconds):
    """Calls at a rate, or as fast as it is answered; returns the answers as (status, head)."""
    until, answers = time.monotonic() + seconds, []

    async def calls():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            began = time.monotonic()
            writer.write(f"GET /0/{len(answers)} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            answers.append((int(head.split()[1]), head.decode()))
            if per_second:
                await asyncio.sleep(max(0, began + connections / per_second - time.monotonic()))
        writer.close()

    await asyncio.gather(*(calls() for _ in range(connections)))
    return answers


async def served(case, per_second, connections, seconds):
    """Returns the judgement of a service, and what a client was answered."""
    vendor, port = await start_vendor(case, argparse.Namespace(warm_up=1, measured=seconds))
    answers = await client(port, per_second, connections, seconds + 2)
    figures = json.loads(await vendor.stdout.readline())
    vendor.stdin.close()
    await vendor.wait()
    return figures, answers


async def check_sockets():
    figures, answers = await served(BY_NAME["bucket-headers"], 20, 4, 5)
    assert 0.95 < figures["goodput"] < 1.05 and 0.7 < figures["refused"] < 0.8, figures
    assert {status for status, _ in answers} == {200, 429}
    for status, head in answers:
        assert "x-ratelimit-limit-requests: 5\r\n" in head and "x-ratelimit-reset-requests: 0m" in head, head
        assert ("retry-after: 1\r\n" in head) == (status == 429), head
    figures, _ = await served(BY_NAME["queue"], 0, 30, 5)
    assert figures["goodput"] > 0.99 and abs(figures["p95_ms"] - 300) < 30, figures
    figures, _ = await served(OPEN, 0, 16, 3)
    assert figures["per_second"] > 2000, figures
    print(f"ok: limits and services are as defined; {figures['per_second']:.0f} calls/s")


def self_test():
    for check in (check_buckets, check_windows, check_waits, check_others, check_services, check_figures):
        check()
    asyncio.run(check_sockets())


# ------------------------------------------------------------------------------------------------------------------ main


def options_of_the_command():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--windrow", action="append", metavar="PATH[:FLAGS]")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--warm-up", type=float)
    parser.add_argument("--measured", type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.windrow = options.windrow or ["target/release/windrow"]
    options.warm_up = options.warm_up or (40 if options.quick else 60)
    options.measured = options.measured or (20 if options.quick else 120)
    return options


def main():
    options = options_of_the_command()
    if options.serve:
        return asyncio.run(vendors.serve(BY_NAME[options.serve], options.warm_up, options.measured))
    if options.self_test:
        return self_test()
    cases = selected(options.only)
    if options.list:
        return print("\n".join(f"{case.name:18} {case.text}" for case in cases))
    table = asyncio.run(measure(cases, options))
    texts = {case.name: heading(case, table[case.name]) for case in cases}
    is_good = report(options.windrow, texts, table, cell, misses)
    write_json(options.json, options.windrow, table)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
