"""Fixtures: a state directory of its own for each test, scripts in processes, and a node."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import windrow

PACKAGE = Path(windrow.__file__).parent.parent
# No event of a test takes longer, even on a busy machine.
PATIENCE = 120


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Directory in which jobs keep their state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


class Script:
    """Python script in a process group of its own; `log` is a file that it appends to."""

    def __init__(self, folder, text):
        self.path, self.log = folder / "script.py", folder / "log"
        self.path.write_text(text)
        self.log.touch()

    def start(self):
        command = [sys.executable, self.path]
        return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, encoding="utf-8")

    def run(self):
        """Runs it to its end; returns its exit code and its output."""
        process = self.start()
        out, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, out

    def lines(self):
        """Whole lines of the log."""
        return self.log.read_text().split("\n")[:-1]

    def run_until(self, count, number, group=False):
        """Runs it until the log has so many lines, then sends a signal; returns its exit code and its output."""
        process = self.start()
        until(lambda: len(self.lines()) >= count or process.poll() is not None)
        assert process.poll() is None, f"ended with {process.poll()} before the signal"
        (os.killpg if group else os.kill)(process.pid, number)
        out, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, out


def until(condition):
    """Waits for an event outside this process, which nothing announces."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the event did not come"
        time.sleep(0.005)


@pytest.fixture
def script(tmp_path):
    return lambda text: Script(tmp_path, text)


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Client of a fresh node."""
    monkeypatch.setenv("WINDROW_NODE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("WINDROW_HTTP__LISTEN", "127.0.0.1:0")
    monkeypatch.setenv("WINDROW_AUTH__BOOTSTRAP_TOKEN_FILE", str(tmp_path / "token"))
    with subprocess.Popen([os.environ["WINDROW"], "serve"], stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr)))
            yield windrow.Client(found.group(), (tmp_path / "token").read_text().strip())
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
