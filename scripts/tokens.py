#!/usr/bin/env python3
"""Limits in tokens under `windrow run`, judged by the API that counts them: examples/recipes/llm_api.py.

usage: scripts/tokens.py [--windrow PATH[:FLAGS]]… [--rows 50000] [--seconds 60] [--only NAME,…] [--json FILE]
       scripts/tokens.py --self-test

Each `--windrow` is a column, as in scripts/pace.py; one without `--cost-from` gets no limits but its own flags. The API
takes 300 calls and 90,000 tokens a second. A row runs a file of 50 to 3,000 tokens an item, and reports over the first
minute of the API's time: the use of the limit that binds, the share of refused calls, and the largest excess of any
interval over rate × length + burst + largest cost + what calls in flight cost above their estimates (below 0: none).
`exact` runs a few rows to the end and compares sums. `killed` runs with a total and is killed fifteen times: it must neither
pay more than the total, 2 % and one call, nor report other sums than the API.
"""

import argparse
import asyncio
import collections
import heapq
import json
import math
import os
import random
import sys
import tempfile
import urllib.request

import pace

API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "recipes", "llm_api.py")
CALLS_PER_SECOND, TOKENS_PER_SECOND = 300, 90_000
# Both of the API, in seconds of its limits, and what a program may send at once by its own.
API_BURST, BURST, LATENCY = 1, 1, 0.5
TOKENS_MIN, TOKENS_MAX, ANSWER_MAX = 50, 3_000, 600
USED_MIN, REFUSED_MAX = 0.93, 0.01
KILLS, TOTAL, OVERRUN_MAX = 15, 2_000_000, 0.02
EXACT_ROWS, KILLED_ROWS = 400, 5_000
# Departures as the API sees them: a call may wait so long on its way.
ON_THE_WAY = 0.05
REMEMBERED, FEW = 256, 8
LOOK, PATIENCE = 0.05, 60

# ------------------------------------------------------------------------------------------------------------------ rows


def sizes(kind, count):
    """Returns the tokens of each row; the answer may take less than its part of them."""
    chance = random.Random(count)
    if kind == "bimodal":
        return [chance.randint(*chance.choice(((50, 100), (2_900, 3_000)))) for _ in range(count)]
    uniform = [chance.randint(TOKENS_MIN, TOKENS_MAX) for _ in range(count)]
    return sorted(uniform) if kind == "sorted" else uniform


def write_rows(path, kind, count):
    with open(path, "w") as file:
        for number, tokens in enumerate(sizes(kind, count)):
            answer = min(tokens // 2, ANSWER_MAX)
            prompt = f"row {number} ".ljust(4 * (tokens - answer), "x")
            file.write(json.dumps({"prompt": prompt, "max_tokens": answer}) + "\n")


# ----------------------------------------------------------------------------------------------------------------- check

Call = collections.namedtuple("Call", "at took bytes tokens")


def guess(call, factor):
    """Returns what the expression of `--cost` says of a call."""
    return factor * (call.bytes / 4 + 300)


def estimates(calls, factor):
    """Returns each call's estimate at its departure, scaled by the latest actual costs that were known then."""
    known, known_actual, known_guess = collections.deque(), 0, 0
    out, found = [], []
    for call in calls:
        while out and out[0][0] <= call.at:
            ended = heapq.heappop(out)[1]
            known.append(ended)
            known_actual, known_guess = known_actual + ended.tokens, known_guess + guess(ended, factor)
            if len(known) > REMEMBERED:
                first = known.popleft()
                known_actual, known_guess = known_actual - first.tokens, known_guess - guess(first, factor)
        scale = known_actual / known_guess if len(known) >= FEW else 1
        found.append(scale * guess(call, factor))
        heapq.heappush(out, (call.at + call.took, call))
    return found


def above_estimates(calls, estimated):
    """Returns, at each arrival, what the calls in flight cost above their estimates."""
    out, above, found = [], 0, []
    for call, estimate in zip(calls, estimated):
        while out and out[0][0] <= call.at:
            above -= heapq.heappop(out)[1]
        more = max(0, call.tokens - estimate)
        heapq.heappush(out, (call.at + call.took, more))
        above += more
        found.append(above)
    return found


def largest_excess(times, costs, allowed, rate):
    """Returns the largest cost of an interval above rate × length and what its last call allows, with its bounds."""
    # Calls i to j cost S(j) − S(i−1): with the least S(i−1) − rate × t(i) so far, one pass finds the largest.
    total, least, since, worst = 0, math.inf, 0, (-math.inf, 0, 0)
    for at, cost, more in zip(times, costs, allowed):
        if total - rate * at < least:
            least, since = total - rate * at, at
        total += cost
        worst = max(worst, (total - rate * at - least - more, since, at))
    return worst


def excesses(calls, factor):
    """Returns by how much the worst interval breaks each pace; at most 0 if it is kept."""
    times = [call.at for call in calls]
    above = above_estimates(calls, estimates(calls, factor))
    tokens, begin, end = largest_excess(times, [call.tokens for call in calls], above, TOKENS_PER_SECOND)
    by_calls = largest_excess(times, [1] * len(calls), [0] * len(calls), CALLS_PER_SECOND)[0]
    largest = max(call.tokens for call in calls)
    return {
        "tokens": tokens - TOKENS_PER_SECOND * (BURST + ON_THE_WAY) - largest,
        "calls": by_calls - CALLS_PER_SECOND * (BURST + ON_THE_WAY) - 1,
        "worst": [begin, end],
    }


# ---------------------------------------------------------------------------------------------------------------- runner


class Api:
    """The stand-in in a process of its own."""

    async def start(self):
        words = [API, "--rpm", str(60 * CALLS_PER_SECOND), "--tpm", str(60 * TOKENS_PER_SECOND), "--burst", str(API_BURST),
                 "--latency", str(LATENCY)]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PORT": "0"})
        self.url = (await self.process.stdout.readline()).split()[-1].decode()
        return self

    async def stop(self):
        self.process.terminate()
        await self.process.wait()

    async def ask(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.loads(await asyncio.to_thread(lambda: opener.open(self.url + path, timeout=PATIENCE).read()))

    async def until(self, reached, run):
        """Waits until the counts say so, or the run ends, or nothing new comes."""
        tokens, silent = 0, 0
        while run.returncode is None and silent < PATIENCE:
            stats = await self.ask("/stats")
            if reached(stats):
                return
            silent, tokens = (silent + LOOK if stats["tokens"] == tokens else 0), stats["tokens"]
            await asyncio.sleep(LOOK)


class Job:
    """A program's command over a file of rows, which can be started again after its death."""

    def __init__(self, program, api, place, factor, limits):
        self.program, self.place = program, place
        with open(f"{place}/key", "w") as key:
            key.write("sk-demo-0815")
        self.flags = ["--ndjson", f"{place}/rows.ndjson", "--request", f"POST {api.url}/v1/chat", "-q", "-o", "json",
                      "--json", '{"prompt": {prompt}, "max_tokens": {max_tokens}}',
                      "--header", "authorization: Bearer {secret.llm}", "--secret", f"llm=@{place}/key"]
        if program.has_costs:
            cost = [] if factor is None else ["--cost", f"tokens = {factor} * ({{prompt:bytes}}/4 + 300)"]
            paces = [f"{CALLS_PER_SECOND}/s", f"{TOKENS_PER_SECOND // 1000}k tokens/s"]
            self.flags += ["--cost-from", "tokens = {answer./usage/total_tokens}", *cost]
            self.flags += [word for limit in [*paces, *limits] for word in ("--limit", limit)]

    async def start(self):
        return await self.program.start(self.place, "tokens", self.flags)

    def output(self):
        with open(f"{self.place}/tokens.log", errors="replace") as log:
            return log.read()

    def failure(self, exit_code):
        end = "made no call" if exit_code is None else f"ended by itself with {exit_code}"
        return {"error": f"{end}: {' '.join(self.output().split())[-200:]}"}

    def costs(self):
        """Returns the program's own sums, from the JSON that it prints at its end."""
        try:
            text = "\n" + self.output()
            return json.JSONDecoder().raw_decode(text, text.rindex("\n{") + 1)[0]["costs"]["tokens"]
        except (ValueError, KeyError, TypeError):
            return {}


async def has_costs(program):
    process = await asyncio.create_subprocess_exec(
        program.path, "run", "--help", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    return b"--cost-from" in (await process.communicate())[0]


async def minute(program, api, place, options, kind, factor):
    """Runs for the measured time and stops; returns the use of the limits and the excess."""
    write_rows(f"{place}/rows.ndjson", kind, options.rows)
    job = Job(program, api, place, factor, [])
    run = await job.start()
    await api.until(lambda stats: stats["seconds"] >= options.seconds, run)
    ended = run.returncode
    await pace.stop(run)
    calls = [Call(*values) for values in await api.ask("/accepted") if values[0] < options.seconds]
    if ended is not None or not calls:
        return job.failure(ended)
    seconds = [row for row in (await api.ask("/stats"))["series"] if row["second"] < options.seconds]
    refused = sum(row["refused"] for row in seconds)
    # The limit that binds changes in a sorted file, so each second counts by its own.
    used = sum(max(row["accepted"] / CALLS_PER_SECOND, row["tokens"] / TOKENS_PER_SECOND) for row in seconds)
    return {"used": used / options.seconds, "refused": refused / (refused + len(calls)), "calls": len(calls),
            "tokens": sum(call.tokens for call in calls), "excess": excesses(calls, 1 if factor is None else factor)}


async def exact(program, api, place, _):
    """Runs a few rows to the end; returns both sums."""
    write_rows(f"{place}/rows.ndjson", "unsorted", EXACT_ROWS)
    job = Job(program, api, place, 1, [])
    run = await job.start()
    await api.until(lambda _: False, run)
    return {"exit": await pace.stop(run), "paid": (await api.ask("/stats"))["tokens"], "costs": job.costs()}


async def killed(program, api, place, _):
    """Kills a run with a total at even parts of its first half, then lets it end; returns both sums."""
    write_rows(f"{place}/rows.ndjson", "unsorted", KILLED_ROWS)
    job = Job(program, api, place, 1, [f"{TOTAL // 1_000_000}M tokens"])
    for kill in range(1, KILLS + 1):
        run = await job.start()
        await api.until(lambda stats: stats["tokens"] >= kill * TOTAL / (2 * KILLS), run)
        if run.returncode is not None:
            return job.failure(run.returncode)
        run.kill()
        await run.wait()
    run = await job.start()
    # A program without a total never stops by itself.
    await api.until(lambda stats: stats["tokens"] > 1.5 * TOTAL, run)
    exit_code, stats = await pace.stop(run), await api.ask("/stats")
    return {"exit": exit_code, "paid": stats["tokens"], "repeats": stats["repeats"], "costs": job.costs(),
            "bound": TOTAL * (1 + OVERRUN_MAX) + TOKENS_MAX}


CASES = {
    "unsorted": lambda *run: minute(*run, "unsorted", 1),
    "sorted": lambda *run: minute(*run, "sorted", 1),
    "bimodal": lambda *run: minute(*run, "bimodal", 1),
    "too-high": lambda *run: minute(*run, "unsorted", 13),
    "too-low": lambda *run: minute(*run, "unsorted", 0.1),
    "no-estimate": lambda *run: minute(*run, "unsorted", None),
    "exact": exact,
    "killed": killed,
}


def misses(_, figures):
    """Returns the goals that a result misses, as texts."""
    found = []
    if "used" in figures:
        found += [f"{figures['used']:.1%} used, goal {USED_MIN:.0%}"] if figures["used"] < USED_MIN else []
        found += [f"{figures['refused']:.1%} refused, goal {REFUSED_MAX:.1%}"] if figures["refused"] > REFUSED_MAX else []
        return found + [f"{figures['excess'][unit]:.0f} {unit} too many in {figures['excess']['worst']}"
                        for unit in ("tokens", "calls") if figures["excess"][unit] > 0]
    costs, paid = figures["costs"], figures["paid"]
    actual, unsure = float(costs.get("actual", math.nan)), float(costs.get("unsure", 0))
    if not actual <= paid <= actual + unsure:
        found.append(f"the API has {paid} tokens, the program {actual:.0f} and {unsure:.0f} unsure")
    if paid > figures.get("bound", math.inf):
        found.append(f"{paid} tokens paid, at most {figures['bound']:.0f} allowed")
    return found


def cell(figures):
    if "used" in figures:
        return f"{figures['used']:.1%} · {figures['refused']:.1%} · {figures['excess']['tokens']:+,.0f}"
    return f"{figures['paid']:,} paid, {figures['costs'] or 'no sums'}"


async def measure(names, programs, options):
    table = {name: [] for name in names}
    for program in programs:
        program.has_costs = await has_costs(program)
        for name in names:
            api = await Api().start()
            with tempfile.TemporaryDirectory() as place:
                figures = await CASES[name](program, api, place, options)
            await api.stop()
            print(f"{name}: {program.text}: {json.dumps(figures)}", file=sys.stderr, flush=True)
            table[name].append(figures)
    return table


# ------------------------------------------------------------------------------------------------------------- self-test


def self_test():
    """Compares the one-pass checks with their definitions on short random logs."""
    for seed in range(200):
        chance = random.Random(seed)
        times = sorted(round(chance.uniform(0, 4), 2) for _ in range(40))
        calls = [Call(at, chance.uniform(0.1, 1), chance.randint(10, 900), chance.randint(10, 900)) for at in times]
        estimated = [chance.uniform(10, 900) for _ in calls]
        above = above_estimates(calls, estimated)
        for now, found in zip(range(len(calls)), above):
            out = [(call.tokens, estimate) for call, estimate in zip(calls[: now + 1], estimated)
                   if call.at + call.took > calls[now].at]
            assert abs(found - sum(max(0, tokens - estimate) for tokens, estimate in out)) < 1e-6
        costs = [call.tokens for call in calls]
        naive = max(sum(costs[i : j + 1]) - 300 * (times[j] - times[i]) - above[j]
                    for j in range(len(calls)) for i in range(j + 1))
        assert abs(largest_excess(times, costs, above, 300)[0] - naive) < 1e-6
        for number, found in enumerate(estimates(calls, 13)):
            known = [call for call in calls if call.at + call.took <= times[number]]
            scale = sum(call.tokens for call in known) / sum(guess(call, 13) for call in known) if len(known) >= FEW else 1
            assert abs(found - scale * guess(calls[number], 13)) < 1e-6
    # As many tokens a second as allowed, evenly, is no excess; a burst of three seconds is one.
    even = [Call(n / 90, LATENCY, 2_800, 1_000) for n in range(5_400)]
    assert excesses(even, 1)["tokens"] < 0 and excesses([call._replace(at=0) for call in even[:270]], 1)["tokens"] > 0
    print("ok: the checks agree with their definitions")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--windrow", action="append", metavar="PATH[:FLAGS]")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    programs = [pace.Program(text) for text in options.windrow or ["target/release/windrow"]]
    table = asyncio.run(measure(options.only.split(",") if options.only else list(CASES), programs, options))
    is_good = pace.report([program.text for program in programs], {name: name for name in table}, table, cell, misses)
    pace.write_json(options.json, [program.text for program in programs], table)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
