"""Celery over Redis: two processes (prefork), each 1,000 messages ahead, no results, no gossip, mingle or heartbeat.

One `delay` an item, since Celery has no bulk call. Nothing else was tuned.
"""

import json
import os
import subprocess
import sys
import time

import celery
import redis

from celery_noop import noop

PROCESSES = 2
WORKER = [sys.executable, "-m", "celery", "-A", "celery_noop", "worker", "--loglevel=ERROR", "--pool=prefork",
          f"--concurrency={PROCESSES}", "--without-gossip", "--without-mingle", "--without-heartbeat"]


def wait_until(is_so) -> None:
    while not is_so():
        time.sleep(0.005)


def main() -> None:
    n = int(sys.argv[1])
    server = redis.Redis.from_url(os.environ["REDIS_URL"])

    def used() -> int:
        return server.info("memory")["used_memory"]

    empty = used()
    begun = time.monotonic()
    for index in range(n):
        noop.delay(index)
    enqueue_s = time.monotonic() - begun
    stored = used() - empty

    # Out of the worker's sight, so that its start is not measured.
    server.rename("celery", "staged")
    here = os.path.dirname(os.path.abspath(__file__))
    worker = subprocess.Popen(WORKER, cwd=here, stdout=sys.stderr)
    try:
        wait_until(lambda: server.get("ready"))
        begun = time.monotonic()
        server.rename("staged", "celery")
        wait_until(lambda: server.llen("celery") == 0 and server.hlen("unacked") == 0)
        drain_s = time.monotonic() - begun
    finally:
        worker.terminate()
        worker.wait()
    print(json.dumps({"peer": "celery", "version": celery.__version__, "n": n, "enqueue_s": enqueue_s,
                      "drain_s": drain_s, "bytes": stored}))


if __name__ == "__main__":
    main()
