#!/usr/bin/env python3
"""Makes, runs and deletes small tasks on one node, eight at a time, and shows what memory the node keeps for them.

usage: scripts/churn.py [--windrow PATH] [--tasks 20000]

Ends with exit code 1 where the node's memory still grows by more than 100 bytes a task over the second half.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile

import attack

AT_ONCE = 8
LOOKS = 20
GROWTH_MAX = 100


async def one_life(node):
    body = {"business": "churn", "source": {"type": "range", "total": 5}, "start": True}
    task, is_again = (await attack.must(node, "POST", "/v1/tasks", body))["id"], False
    while True:
        status, text = await node.ask("GET", f"/v1/tasks/{task}?wait=5s")
        if status == 503:
            await asyncio.sleep(1)
            continue
        if status != 200:
            sys.exit(f"task {task}: {status} {text.decode()}")
        if json.loads(text)["status"] == "finished":
            break
    while True:
        status, text = await node.ask("DELETE", f"/v1/tasks/{task}")
        if status < 300 or (status == 404 and is_again):
            return
        # A busy machine: the node asks for it again, and may have done it meanwhile.
        if status != 503:
            sys.exit(f"delete of {task}: {status} {text.decode()}")
        is_again = True
        await asyncio.sleep(1)


async def play(options, place):
    answering = await asyncio.create_subprocess_exec(sys.executable, attack.__file__, "--business", place)
    while not os.path.exists(f"{place}/port"):
        await asyncio.sleep(0.05)
    node = await attack.start(options.windrow, place)
    looks, todo = [], iter(range(options.tasks))
    try:
        url = f"http://127.0.0.1:{open(f'{place}/port').read()}/"
        await attack.must(node, "POST", "/v1/businesses?check=skip", {"name": "churn", "url": url})

        async def worker():
            for number in todo:
                if number % (options.tasks // LOOKS) == 0:
                    looks.append((number, node.memory()))
                    print(f"{number:7} tasks  {node.memory() / 1e6:6.1f} MB", flush=True)
                await one_life(node)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        looks.append((options.tasks, node.memory()))
    finally:
        node.process.send_signal(signal.SIGTERM)
        await node.process.wait()
        answering.kill()
        await answering.wait()
    return looks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windrow", default="target/release/windrow")
    parser.add_argument("--tasks", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        looks = asyncio.run(play(options, place))
    half = looks[len(looks) // 2]
    growth = (looks[-1][1] - half[1]) / (looks[-1][0] - half[0])
    print(f"second half: {growth:.0f} bytes a task; {looks[0][1] / 1e6:.1f} MB at the start, {looks[-1][1] / 1e6:.1f} MB at the end")
    sys.exit(1 if growth > GROWTH_MAX else 0)


if __name__ == "__main__":
    main()
