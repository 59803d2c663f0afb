"""Scripts of the pages, run as they are written."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from conftest import PATIENCE, until

ROOT = Path(__file__).parents[3]


def test_the_script_of_the_readme_survives_a_kill(tmp_path):
    text = (ROOT / "deploy/python/README.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    assert len(found.splitlines()) <= 12
    (tmp_path / "squares.py").write_text(found)
    command = [sys.executable, "-u", "squares.py"]
    with open("first", "w") as first:
        process = subprocess.Popen(command, stdout=first)
        until(lambda: Path("first").read_text().count("\n") > 1000)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr
    assert "resuming" in ran.stderr
    *results, last = ran.stdout.splitlines()
    assert results == [f"{n} {n} {n * n}" for n in range(10_000) if n != 13]
    assert last == "9999 1 ['UNLUCKY']"


def test_the_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    push = [sys.executable, "examples/python/push.py"]
    ran = subprocess.run(push, stdout=subprocess.PIPE, encoding="utf-8", timeout=PATIENCE)
    assert ran.returncode == 0
    assert "193 succeeded, 5 skipped, 2 failed\n63 TOKEN_EXPIRED u_0064\n128 TOKEN_EXPIRED u_0129\n" in ran.stdout
    work = [os.environ["WINDROW"], "run", "--csv", "examples/data/users.csv", "--results-out", "-", "--"]
    work += [sys.executable, "-m", "windrow", "examples/python/worker.py"]
    ran = subprocess.run(work, stdout=subprocess.PIPE, encoding="utf-8", timeout=PATIENCE)
    assert ran.stdout.splitlines()[199].endswith('"output":"u_0200"}')
