"""`windrow.run` against the real program."""

import asyncio
import collections
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import windrow
from conftest import until
from windrow._job import find_program

ROWS = [{"n": n} for n in range(40)]


def double(row):
    return row["n"] * 2


def test_results_come_in_index_order_with_their_rows():
    job = windrow.run(ROWS, double, name="double", rate="unlimited")
    results = list(job)
    assert [(one.index, one.row, one.output) for one in results] == [(n, {"n": n}, n * 2) for n in range(40)]
    assert len({one.key for one in results}) == 40
    assert (job.succeeded, job.skipped, job.failed, list(job.failures())) == (40, 0, 0, [])


@pytest.mark.parametrize("name, text, rows", [
    ("users.csv", "id,name\n1,Ann\n2,\"Bo, B.\"\n", [{"id": "1", "name": "Ann"}, {"id": "2", "name": "Bo, B."}]),
    ("users.ndjson", '{"id":1}\n["a"]\n', [{"id": 1}, ["a"]]),
])
def test_rows_of_files(tmp_path, name, text, rows):
    (tmp_path / name).write_text(text)
    assert [one.output for one in windrow.run(tmp_path / name, lambda row: row, name="f", rate="unlimited")] == rows
    with pytest.raises(ValueError, match="not named as a CSV or NDJSON file"):
        windrow.run(tmp_path / "users.xlsx", double, name="x")


def test_an_iterator_gives_any_json_value():
    values = ["text", 1.5, None, True, [1, "ü"], {"a": {"b": None}}]
    job = windrow.run(iter(values), lambda row: [row], name="any", rate="unlimited")
    assert [one.output for one in job] == [[value] for value in values]


def test_async_functions_run_at_the_same_time():
    running, most, all_there = 0, 0, None

    async def wait_for_all(row):
        nonlocal running, most, all_there
        all_there = all_there or asyncio.Event()  # Python 3.9 binds it to the present loop.
        running += 1
        most = max(most, running)
        if running == 8:
            all_there.set()
        await all_there.wait()
        return windrow.current().index

    job = windrow.run(ROWS[:8], wait_for_all, name="async", rate="unlimited", concurrency=8)
    assert [one.output for one in job] == list(range(8))
    assert most == 8


def test_outcomes_are_counted_and_failures_have_code_and_reason():
    attempts = collections.Counter()

    def judge(row):
        attempts[row] += 1
        item = windrow.current()
        assert item.attempt == attempts[row]
        if row == "skip":
            raise windrow.Skip
        if row == "fail":
            raise windrow.Fail("NO_TOKEN", "it is empty", output={"asked": True})
        if row == "later" and item.attempt < 3:
            raise windrow.Retry(after=0.01)
        if row == "set":
            return {1, 2}
        return 1 / row if row == 0 else row

    rows = ["skip", "fail", "later", "set", 0, "fine"]
    job = windrow.run(rows, judge, name="outcomes", rate="unlimited", max_attempts=4, flags=["--backoff", "1ms..2ms"])
    assert [one.output for one in job] == ["later", "fine"]
    assert (job.succeeded, job.skipped, job.failed) == (2, 1, 3)
    failures = {one.row: one for one in job.failures()}
    assert (failures["fail"].code, failures["fail"].message) == ("NO_TOKEN", "it is empty")
    assert (failures["fail"].output, failures["fail"].index) == ({"asked": True}, 1)
    assert (failures["set"].code, failures["set"].attempts) == ("OUTPUT_NOT_JSON", 1)
    assert (failures[0].code, failures[0].attempts) == ("ZERO_DIVISION_ERROR", 4)
    assert failures[0].message.startswith("division by zero (test_run.py:")
    assert attempts == {"skip": 1, "fail": 1, "later": 3, "set": 1, 0: 4, "fine": 1}


def test_exits_in_a_function_are_failed_attempts():
    async def leave(row):
        raise SystemExit(3)

    def leave_plainly(row):
        raise SystemExit(3)

    for name, function in [("async", leave), ("plain", leave_plainly)]:
        job = windrow.run([1], function, name=name, rate="unlimited", max_attempts=1).wait()
        assert [one.code for one in job.failures()] == [{"async": "RUNTIME_ERROR", "plain": "SYSTEM_EXIT"}[name]]


def test_batches():
    job = windrow.run(ROWS, double, name="batch", rate="unlimited", flags=["--batch", "16"])
    assert [one.output for one in job] == [n * 2 for n in range(40)]


def test_without_rows_there_is_nothing_to_do():
    job = windrow.run([], double, name="none").wait()
    assert (job.succeeded, job.failed, list(job.failures())) == (0, 0, [])


def test_a_finished_job_gives_its_results_without_a_call():
    def never(row):
        raise AssertionError

    first = [one.output for one in windrow.run(ROWS, double, name="once", rate="unlimited")]
    job = windrow.run(ROWS, never, name="once", rate="unlimited")
    assert [one.output for one in job] == first
    assert job.succeeded == 40


def test_other_rows_under_the_same_name_are_refused():
    windrow.run(ROWS, double, name="same", rate="unlimited").wait()
    with pytest.raises(windrow.JobError, match="another job has this name") as refused:
        windrow.run(ROWS[1:], double, name="same", rate="unlimited").wait()
    assert refused.value.exit_code == 7
    assert len(list(windrow.run(ROWS, double, name="same", rate="unlimited"))) == 40


def test_a_restart_begins_with_the_new_rows():
    windrow.run(ROWS, double, name="again", rate="unlimited").wait()
    job = windrow.run([{"n": 7}], double, name="again", rate="unlimited", flags=["--restart"])
    assert [one.output for one in job] == [14]


def test_only_failed_calls_the_failed_rows_again():
    def fail(row):
        raise windrow.Fail("EVEN") if row % 2 == 0 else windrow.Skip

    job = windrow.run(range(8), fail, name="mend", rate="unlimited", flags=["--error-budget", "none"]).wait()
    assert (job.failed, job.skipped) == (4, 4)
    job = windrow.run(range(8), lambda row: row * 10, name="mend", rate="unlimited", flags=["--only-failed"])
    assert [(one.index, one.output) for one in job] == [(0, 0), (2, 20), (4, 40), (6, 60)]


def test_an_error_of_the_iterator_starts_nothing():
    def rows():
        yield 1
        raise KeyError("gone")

    with pytest.raises(KeyError):
        windrow.run(rows(), double, name="broken")
    assert [one.output for one in windrow.run([1], lambda row: row, name="broken")] == [1]


def test_wrong_flags_are_reported_with_the_reason():
    with pytest.raises(windrow.JobError, match="rate") as refused:
        windrow.run(ROWS, double, name="wrong", rate="fast").wait()
    assert refused.value.exit_code == 2


def test_a_job_runs_once_at_a_time():
    release = threading.Event()
    job = windrow.run([1], lambda row: release.wait(60), name="busy")
    with pytest.raises(windrow.JobError, match="is running already") as refused:
        windrow.run([1], double, name="busy")
    assert refused.value.exit_code == 4
    release.set()
    assert [one.output for one in job] == [True]


def test_close_lets_calls_in_flight_end_and_the_rest_stays_for_the_next_run(capsys):
    calls = collections.Counter()

    def count(row):
        calls[row["n"]] += 1
        return row["n"]

    before = signal.getsignal(signal.SIGINT)
    job = windrow.run(ROWS, count, name="closed", rate="50/s", flags=["--burst", "1 items"])
    assert signal.getsignal(signal.SIGINT) is not before
    assert next(job).index == 0
    job.close()
    assert signal.getsignal(signal.SIGINT) is before
    assert job.exit_code == 9 and 0 < len(calls) < 40
    assert [one.output for one in windrow.run(ROWS, count, name="closed", rate="unlimited")] == list(range(40))
    assert set(calls.values()) == {1} and len(calls) == 40
    assert "another handler" not in capsys.readouterr().err, "the address stays"


def test_nobody_else_can_call_the_function(state):
    release = threading.Event()
    job = windrow.run([1], lambda row: release.wait(60), name="secret")
    port, secret = json.loads((state / "windrow/python/secret.lock").read_text())
    assert (state / "windrow/python").stat().st_mode & 0o777 == 0o700

    def ask(path):
        body = json.dumps({"item": {"index": 0, "key": "k", "attempt": 1, "data": 1}}).encode()
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"POST %s HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
            stranger.shutdown(socket.SHUT_WR)
            return stranger.makefile("rb").read()

    release.set()
    assert ask("/") == b"" == ask("/" + secret[:-1])
    assert ask("/" + secret).startswith(b"HTTP/1.1 200 OK\r\n")
    job.wait()


def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setenv("WINDROW", "/nowhere/windrow")
    with pytest.raises(FileNotFoundError, match=r"no program /nowhere/windrow"):
        windrow.run([1], double, name="none")
    monkeypatch.delenv("WINDROW")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="no program `windrow`"):
        windrow.run([1], double, name="none")


def test_the_program_beside_the_interpreter_comes_before_that_on_path(tmp_path, monkeypatch):
    for folder in ("beside", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "windrow").touch(mode=0o700)
    monkeypatch.delenv("WINDROW")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_program() == str(tmp_path / "path/windrow")
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path / "beside"))
    assert find_program() == str(tmp_path / "beside/windrow")
    monkeypatch.setenv("WINDROW", "path/windrow")
    assert find_program() == str(tmp_path / "path/windrow")


def test_a_program_that_dies_is_an_error_and_the_job_resumes():
    calls = collections.Counter()

    def kill_the_program(row):
        calls[row["n"]] += 1
        if sum(calls.values()) == 20:
            os.kill(job._process.pid, signal.SIGKILL)
        return row["n"]

    job = windrow.run(ROWS, kill_the_program, name="died", rate="100/s", concurrency=4)
    with pytest.raises(windrow.JobError, match="exit code -9"):
        job.wait()
    assert [one.output for one in windrow.run(ROWS, kill_the_program, name="died", rate="unlimited")] == list(range(40))


def steady(count, rate, *, concurrency=8, work="row['n'] ** 2"):
    """Script that logs each call and prints each result."""
    return f"""
import os, time, windrow
log = os.open("log", os.O_WRONLY | os.O_APPEND)

def call(row):
    os.write(log, b"%d\\n" % row["n"])
    return {work}

rows = ({{"n": n}} for n in range({count}))
for result in windrow.run(rows, call, name="steady", rate="{rate}", concurrency={concurrency}):
    print(result.index, result.row["n"], result.output, flush=True)
"""


def test_through_kills_every_row_is_delivered_and_only_those_in_flight_repeat(script):
    script = script(steady(1500, "500/s"))
    kills = 4
    for nth in range(1, kills + 1):
        assert script.run_until(250 * nth, signal.SIGKILL)[0] == -signal.SIGKILL
    code, out = script.run()
    assert code == 0
    assert out.splitlines() == [f"{n} {n} {n * n}" for n in range(1500)]
    calls = collections.Counter(map(int, script.lines()))
    assert set(calls) == set(range(1500))
    assert sum(calls.values()) - 1500 <= kills * 8, "more repeated than were in flight"


def test_nothing_runs_on_after_a_kill(script, state):
    script = script(steady(100, "5/s", work="None"))  # With results, it would notice that nobody reads them.
    script.run_until(3, signal.SIGKILL)
    with open(state / "windrow/python/steady.running") as held:
        until(lambda: is_free(held))


def is_free(held):
    """Returns True once the program that holds a lock is gone."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_job_begins_when_the_program_of_a_killed_script_is_gone(state):
    folder = state / "windrow/python"
    folder.mkdir(parents=True)
    with open(folder / "after.running", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        job = windrow.run([1, 2], lambda row: row, name="after", rate="unlimited")
        waiting = re.compile(rf"^\d+: -> FLOCK .* {job._process.pid} ", re.M)
        until(lambda: waiting.search(Path("/proc/locks").read_text()))
        assert not (folder / "after.ndjson").exists(), "the other program may still read its rows"
    assert [one.output for one in job] == [1, 2]


@pytest.mark.parametrize("number, group", [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)])
def test_a_signal_stops_cleanly_and_nothing_repeats(script, number, group):
    # Calls take some time: a program that got two signals would cut them off.
    script = script(steady(300, "300/s", concurrency=64, work="time.sleep(0.1) or row['n']"))
    code, out = script.run_until(100, number, group)
    assert code == 9
    early = out.splitlines()
    assert script.run()[1].splitlines()[:len(early)] == early
    assert sorted(map(int, script.lines())) == list(range(300))


def test_a_second_ctrl_c_cuts_calls_off(script):
    script = script("""
import threading, windrow
def hang(row):
    open("log", "a").write("called\\n")
    threading.Event().wait()
windrow.run([1], hang, name="hang", call_timeout="10m").wait()
""")
    process = script.start()
    until(lambda: script.lines())
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0


def test_from_another_thread_the_job_outlives_that_thread():
    started = []

    def start():
        started.append(windrow.run(ROWS, double, name="thread", rate="100/s"))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(list(started[0])) == 40
