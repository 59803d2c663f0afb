"""`python3 -m windrow FILE` as a worker of the real program."""

import json
import os
import subprocess
import sys

import pytest

PLAIN = """
import os, subprocess, sys, windrow

@windrow.worker
def work(row):
    print(f"a print {row['n']}")
    os.write(1, b"a write\\n")
    subprocess.run(["echo", "a child"])
    assert sys.stdin.read() == ""
    if row["n"] == 2:
        raise windrow.Fail("TWO", sys.argv[1])
    return [row["n"], windrow.current().key]
"""
ASYNC = """
import asyncio, windrow
running, all_there = 0, None

@windrow.worker
async def work(row):
    global running, all_there
    all_there = all_there or asyncio.Event()
    running += 1
    if running == 8:
        all_there.set()
    await all_there.wait()
    return row["n"]
"""


def work(tmp_path, text, *arguments, flags=()):
    """Runs a worker over rows; returns exit code, results and stderr."""
    (tmp_path / "worker.py").write_text(text)
    (tmp_path / "rows.ndjson").write_text("".join(f'{{"n":{n}}}\n' for n in range(8)))
    command = [os.environ["WINDROW"], "run", "--ndjson", "rows.ndjson", "--results-out", "-", "-v", *flags, "--"]
    command += [sys.executable, "-m", "windrow", *arguments]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr


def test_prints_don_t_disturb_the_protocol(tmp_path):
    code, results, said = work(tmp_path, PLAIN, "worker.py", "an argument")
    assert code == 8
    assert [one["output"] for one in results] == [[n, results[0]["key"][:-1] + str(n)] for n in range(8) if n != 2]
    assert "an argument" in said
    assert "a print 3" in said and "a write" in said and "a child" in said


def test_async_functions_are_called_at_the_same_time(tmp_path):
    code, results, _ = work(tmp_path, ASYNC, "--concurrency", "8", "worker.py")
    assert (code, [one["output"] for one in results]) == (0, list(range(8)))


@pytest.mark.parametrize("text, count", [("x = 1", 0), (ASYNC + PLAIN, 2)])
def test_a_file_has_one_worker(tmp_path, text, count):
    (tmp_path / "worker.py").write_text(text)
    ran = subprocess.run([sys.executable, "-m", "windrow", "worker.py"], capture_output=True, encoding="utf-8")
    assert ran.returncode == 1
    assert f"worker.py has {count} functions with @windrow.worker, expected 1" in ran.stderr
