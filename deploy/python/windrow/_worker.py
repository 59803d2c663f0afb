"""Workers: a function as a program that `windrow run` or a node starts."""

import argparse
import json
import os
import runpy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Callable, Dict, List, TypeVar

from ._call import Caller, encode

Function = TypeVar("Function", bound=Callable[[Any], Any])
_registered: List[Callable[[Any], Any]] = []


def worker(function: Function) -> Function:
    """Marks the function, plain or async, that `python3 -m windrow FILE` calls for each item, as `run` would."""
    _registered.append(function)
    return function


def main() -> None:
    """Runs the worker of a file. The protocol has stdin and stdout for itself; what the function prints is stderr."""
    parser = argparse.ArgumentParser(prog="python3 -m windrow", description="Runs the @windrow.worker of a file.")
    parser.add_argument("--concurrency", type=int, default=16, help="items in flight [default: 16]")
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the file")
    args = parser.parse_args()
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.argv = [args.file, *args.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(args.file)))
    runpy.run_path(args.file, run_name="__windrow__")
    if len(_registered) != 1:
        sys.exit(f"{args.file} has {len(_registered)} functions with @windrow.worker, expected 1")
    serve(_registered[0], args.concurrency, messages, answers)


def serve(function: Callable[[Any], Any], concurrency: int, messages: IO[bytes], answers: IO[bytes]) -> None:
    """Answers the items of a stream until it ends, some at a time."""
    call, lock = Caller(function), threading.Lock()

    def say(line: bytes) -> None:
        with lock:
            answers.write(line + b"\n")
            answers.flush()

    def work(item: Dict[str, Any]) -> None:
        say(encode(call(item), type="result", id=item["id"]))

    with ThreadPoolExecutor(concurrency) as pool:
        for message in map(json.loads, messages):
            if message["type"] == "hello":
                say(encode({"type": "ready", "protocol": 1, "concurrency": concurrency}))
            elif message["type"] == "item":
                pool.submit(work, message)
