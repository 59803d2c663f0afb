"""Jobs: a function of this process, called once per row by `windrow run`."""

import atexit
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import urllib.parse
from collections import deque
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import (
    IO, Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Type, TypeVar, Union, cast,
)

from ._call import Caller
from ._server import Server

Rows = Union[str, "os.PathLike[str]", Iterable[Any]]
Row = TypeVar("Row", "Result", "Failure")
_FORMATS = {".csv": "--csv", ".ndjson": "--ndjson", ".jsonl": "--ndjson"}
_FINISHED, _NO_JOB, _CONFLICT, _WITH_FAILURES, _STOPPED, _INTERRUPTED = 0, 3, 4, 8, 9, 130
_running: Set[Path] = set()


class JobError(Exception):
    """Job that can't start, or stopped early. `exit_code` is that of `windrow run`; the same script resumes it."""

    def __init__(self, exit_code: int, text: str) -> None:
        super().__init__(f"{text} (exit code {exit_code})")
        self.exit_code = exit_code


@dataclass(frozen=True)
class Result:
    """Output of an item that succeeded. An item whose function returned None has no result."""

    index: int
    key: str
    row: Any
    output: Any


@dataclass(frozen=True)
class Failure:
    """Item that failed for good."""

    index: int
    key: str
    row: Any
    code: str
    message: str
    attempts: int
    output: Any


def read(kind: Type[Row], bodies: Iterable[Any]) -> Iterator[Row]:
    """Returns results or failures from their form in the API."""
    for body in bodies:
        yield kind(*(body.get("data" if one.name == "row" else one.name) for one in fields(kind)))


def run(
    rows: Rows, function: Callable[[Any], Any], *, name: str, rate: str = "auto", concurrency: int = 64,
    call_timeout: Optional[str] = None, max_attempts: Optional[int] = None, limit: Union[str, Sequence[str]] = (),
    state: Optional[str] = None, flags: Sequence[str] = (),
) -> "Job":
    """Starts a job, or resumes the one of this name: calls `function(row)` once per row. Returns its results.

    `rows` is the path of a CSV or NDJSON file, or yields JSON values. The function may be async. It returns the output,
    or raises `Skip`, `Fail` or `Retry`; after any other exception the row is retried, up to `max_attempts`. Ctrl-C and
    SIGTERM let calls in flight end, then raise SystemExit. `flags` are other flags of `windrow run`: `["--restart"]`.
    """
    given = {"rate": rate, "concurrency": concurrency, "call-timeout": call_timeout, "max-attempts": max_attempts}
    options = [f"--{flag}={value}" for flag, value in given.items() if value is not None]
    options += [f"--limit={one}" for one in ([limit] if isinstance(limit, str) else limit)]
    if not {"--if-finished", "--restart", "--only-failed"}.intersection(flag.split("=")[0] for flag in flags):
        options.append("--if-finished=ok")
    return Job(rows, function, name, state, [*options, *flags])


class Job(Iterator[Result]):
    """Results of a job in index order, as they come. After its end it has an exit code and counts of items."""

    exit_code: Optional[int] = None
    succeeded: int
    skipped: int
    failed: int

    def __init__(
        self, rows: Rows, function: Callable[[Any], Any], name: str, state: Optional[str], options: List[str]
    ) -> None:
        self._program = find_program()
        self._place = ["--state", state] if state else []
        self._name = name
        self._said: Deque[str] = deque(maxlen=20)
        self._is_stopped = self._is_interrupted = False
        home = os.environ.get("XDG_STATE_HOME", "")
        home = home if os.path.isabs(home) else os.path.expanduser("~/.local/state")
        self._files = Path(state or f"{home}/windrow") / "python" / urllib.parse.quote(name, safe="")
        with ExitStack() as cleanup:
            lock = self._locked(cleanup)
            source = self._source(rows)
            # The address stays that of the last run, if possible: another one would be another handler.
            port, secret = json.loads(lock.read() or "null") or (0, secrets.token_urlsafe(24))
            server = cleanup.enter_context(Server(Caller(function), port, secret))
            cleanup.callback(server.shutdown)
            os.pwrite(lock.fileno(), json.dumps([server.server_address[1], secret]).ljust(80).encode(), 0)
            url = f"http://127.0.0.1:{server.server_address[1]}/{secret}"
            self._process = self._start(["--name", name, *self._place, *source, *options, "--url", url])
            atexit.register(self.close)
            cleanup.callback(atexit.unregister, self.close)
            for number in (signal.SIGINT, signal.SIGTERM):
                is_usual = signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
                if is_usual and threading.current_thread() is threading.main_thread():
                    cleanup.callback(signal.signal, number, signal.signal(number, self._on_signal))
            self._cleanup = cleanup.pop_all()

    def _locked(self, cleanup: ExitStack) -> IO[str]:
        """Returns the locked file of a running script; it has the address of its server."""
        is_running = JobError(_CONFLICT, f'the job "{self._name}" is running already')
        if self._files in _running:
            raise is_running
        self._files.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = cleanup.enter_context(open(os.open(f"{self._files}.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+"))
        try:
            # Not flock: children of the script would inherit the lock, and may outlive it.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise is_running from None
        _running.add(self._files)
        cleanup.callback(_running.discard, self._files)
        return lock

    def __next__(self) -> Result:
        line = "" if self.exit_code is not None else cast("IO[str]", self._process.stdout).readline()
        if not line:
            self._end()
            raise StopIteration
        return next(read(Result, [json.loads(line)]))

    def wait(self) -> "Job":
        """Waits for the end, and drops results that weren't read. The same script would read them again."""
        deque(self, maxlen=0)
        return self

    def stop(self) -> None:
        """Stops the job: no new calls, calls in flight end. A second time, it cuts them off."""
        self._is_stopped = True
        self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Stops the job unless it has ended, and waits for its end."""
        if self.exit_code is None:
            self.stop()
            self.wait()

    def failures(self) -> Iterator[Failure]:
        """Returns the failed items in index order."""
        return read(Failure, self._ask("failures", "--items", "--all", "--key-column", "*"))

    def _ask(self, verb: str, *flags: str) -> Iterator[Dict[str, Any]]:
        command = [self._program, "job", verb, self._name, *self._place, *flags, "-o", "ndjson"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, encoding="utf-8") as asked:
            yield from map(json.loads, cast("IO[str]", asked.stdout))
            if asked.wait() not in (_FINISHED, _NO_JOB):  # Without rows there is no job.
                raise JobError(asked.returncode, _reason(cast("IO[str]", asked.stderr)))

    def _source(self, rows: Rows) -> List[str]:
        """Returns the flags of the source. Rows that are no file are written to one first."""
        self._spool = ""
        if isinstance(rows, (str, os.PathLike)):
            flags = [_FORMATS[suffix] for suffix in Path(rows).suffixes[-2:] if suffix in _FORMATS]
            if not flags:
                raise ValueError(f"{rows} is not named as a CSV or NDJSON file; pass its rows instead")
            return [flags[-1], os.fspath(rows)]
        self._spool = f"{self._files}.ndjson"
        with open(self._spool + ".new", "w") as file:
            for row in rows:
                file.write(json.dumps(row, allow_nan=False) + "\n")
        return ["--ndjson", self._spool]

    def _start(self, flags: List[str]) -> "subprocess.Popen[str]":
        launch = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_launch.py"))]
        launch += [str(os.getpid()), f"{self._files}.running", self._spool]
        command = [*launch, self._program, "run", *flags, "--results-out", "-", "--results-data", "*"]
        # Calls within this machine need no proxy.
        env = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
        started: "Future[subprocess.Popen[str]]" = Future()

        def follow() -> None:
            # The program ends with the thread that started it, so this one waits for its end.
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                    errors="replace", env=env, start_new_session=True)
            except OSError as error:
                return started.set_exception(error)
            started.set_result(process)
            for line in cast("IO[str]", process.stderr):
                self._said.append(line)
                sys.stderr.write(line)
            process.wait()

        self._follower = threading.Thread(target=follow, name="windrow-program", daemon=True)
        self._follower.start()
        return started.result()

    def _on_signal(self, *_: Any) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True
        self.stop()

    def _end(self) -> None:
        if self.exit_code is not None:
            return
        self._follower.join()
        self.exit_code = self._process.returncode
        self._cleanup.close()
        counts: Dict[str, int] = next(self._ask("show"), {"counts": {}})["counts"]
        self.succeeded, self.skipped, self.failed = map(counts.get, ("succeeded", "skipped", "failed"), (0, 0, 0))
        is_early = self.exit_code in (_STOPPED, _INTERRUPTED)
        if is_early and self._is_interrupted:
            raise SystemExit(self.exit_code)
        if self.exit_code not in (_FINISHED, _WITH_FAILURES) and not (is_early and self._is_stopped):
            raise JobError(self.exit_code, _reason(self._said))


def find_program() -> str:
    """Returns the path of `windrow`: $WINDROW, else the one installed beside this interpreter, else that on PATH."""
    places = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.environ["PATH"]]
    named = os.environ.get("WINDROW")
    found = shutil.which(named) if named else shutil.which("windrow", path=os.pathsep.join(places))
    if found is None:
        raise FileNotFoundError(f"no program {named or '`windrow` beside this Python or on PATH'}; set $WINDROW to it")
    return os.path.abspath(found)


def _reason(said: Iterable[str]) -> str:
    """Returns the last error that the program printed, or else its last line.

    >>> _reason(["t1: 3 items\\n", "error: no such file\\n", "  because it is gone\\n"])
    'no such file\\n  because it is gone'
    """
    _, error, text = "".join(said).rstrip().rpartition("error: ")
    return text if error else text.rpartition("\n")[2]
