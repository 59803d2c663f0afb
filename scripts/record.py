"""Plays the readme's job in a pseudo-terminal and draws what the terminal showed; see record.sh.

Nothing is staged but the speed of typing: each picture is a screen that a terminal emulator had after what the program
wrote. Pauses are shortened to PAUSE.
"""
import csv
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from html import escape
from pathlib import Path

import pyte

COLUMNS, ROWS = 112, 23
FONT, WIDTH, HEIGHT, EDGE = 13, 7.83, 18, 14    # pixels: of a letter, of a line, around the text
TYPED = 0.02                                    # seconds a letter
FRAME = 0.1                                     # seconds a picture lasts at least
PAUSE = 1.2                                     # seconds that nothing happens, at most
END = 4.0                                       # seconds of the last picture
PATIENCE = 60                                   # seconds for what is awaited

JOB = r"""windrow run --csv orders.csv --rate 20/s --results-out answers.ndjson --result /data \
  --request 'POST http://127.0.0.1:9004/v1/orders/{order_id}/ship' \
  --json '{"qty": {qty:number}, "note": {note}}' \
  --header 'authorization: Bearer {secret.vendor}' --secret vendor=@vendor.token
"""
# What is typed, and what has to appear before the next: a letter of Ctrl-C is typed as any other.
SESSION = [
    (JOB, r"succeeded (4[5-9]|[5-9]\d)\D"),
    ("\x03", r"same command resumes[\s\S]*\$ $"),
    ("!!\n", r"finished \(succeeded\)[\s\S]*\$ $"),
    ("wc -l answers.ndjson\n", r"120 answers.ndjson\s+\$ $"),
]
THEMES = {
    "light": {"back": "#ffffff", "default": "#1f2328", "edge": "#d0d7de", "red": "#cf222e", "green": "#1a7f37",
              "brown": "#9a6700", "yellow": "#9a6700", "blue": "#0969da", "magenta": "#8250df", "cyan": "#1b7c83",
              "dim": "#656d76"},
    "dark": {"back": "#0d1117", "default": "#e6edf3", "edge": "#30363d", "red": "#ff7b72", "green": "#3fb950",
             "brown": "#d29922", "yellow": "#d29922", "blue": "#58a6ff", "magenta": "#bc8cff", "cyan": "#39c5cf",
             "dim": "#8b949e"},
}


class Terminal:
    """A shell in a pseudo-terminal; `frames` are its screens with the times at which they appeared."""

    def __init__(self, folder, program):
        path = f"{folder}/bin:{os.environ['PATH']}"
        os.makedirs(f"{folder}/bin")
        os.symlink(program, f"{folder}/bin/windrow")
        keep = {"PATH": path, "HOME": folder, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "$ ", "PS2": "> "}
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], keep)
        ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.now, self.frames = 0.0, []

    def read(self, patience):
        """Takes what the program writes within a time; false if it wrote nothing."""
        begun = time.monotonic()
        if not select.select([self.file], [], [], patience)[0]:
            return False
        self.stream.feed(os.read(self.file, 65536))
        self.now += min(time.monotonic() - begun, PAUSE)
        self.draw()
        return True

    def draw(self):
        rows = [self.row(y) for y in range(ROWS)]
        if self.frames and self.now - self.frames[-1][0] < FRAME:
            self.frames[-1] = (self.frames[-1][0], rows)
        elif not self.frames or self.frames[-1][1] != rows:
            self.frames.append((self.now, rows))

    def row(self, y):
        """A line as runs of one style: (column, text, colour, bold)."""
        runs = []
        for x in range(COLUMNS):
            cell = self.screen.buffer[y][x]
            style = ("dim" if cell.fg.startswith("bright") else cell.fg, cell.bold)
            if runs and runs[-1][2:] == style:
                runs[-1] = (runs[-1][0], runs[-1][1] + cell.data, *style)
            else:
                runs.append((x, cell.data, *style))
        return tuple(run for run in runs if run[1].strip())

    def type(self, text):
        for letter in text:
            os.write(self.file, letter.encode())
            self.now += TYPED
            self.read(0.2)                      # the terminal's echo

    def wait(self, pattern):
        until = time.monotonic() + PATIENCE
        while not re.search(pattern, "\n".join(line.rstrip() for line in self.screen.display).rstrip() + " "):
            if time.monotonic() > until or not self.read(PATIENCE):
                sys.exit(f"{pattern} did not appear:\n" + "\n".join(self.screen.display))
        self.now += PAUSE

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def orders(path):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["order_id", "qty", "note"])
        rows.writerows([1000 + n, 1 + n % 5, "leave at the door" if n % 7 == 0 else ""] for n in range(120))


def record(program):
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        orders(f"{folder}/orders.csv")
        Path(folder, "vendor.token").write_text("demo-token-4711\n")
        vendor = subprocess.Popen([sys.executable, root / "examples/recipes/orders_api.py"])
        terminal = Terminal(folder, program)
        try:
            terminal.wait(r"\$ $")
            for text, awaited in SESSION:
                terminal.type(text)
                terminal.wait(awaited)
        finally:
            terminal.close()
            vendor.kill()
            vendor.wait()
    return terminal.frames, terminal.now


def picture(frames, length, colours):
    """The screens as one column of pictures that moves past a window, a step for each."""
    lines, height = {}, ROWS * HEIGHT + 2 * EDGE
    body, steps = [], []
    for nth, (at, rows) in enumerate(frames):
        steps.append(f"{100 * at / length:.2f}%{{transform:translateY({-nth * height}px)}}")
        for y, row in enumerate(rows):
            if row:
                name = lines.setdefault(row, f"l{len(lines)}")
                body.append(f'<use href="#{name}" y="{nth * height + EDGE + y * HEIGHT}"/>')
    def run(x, text, colour, bold):
        fill = colours.get(colour, colours["default"])
        weight = ' font-weight="bold"' if bold else ""
        return (f'<text x="{EDGE + x * WIDTH:.1f}" y="{FONT}" fill="{fill}"{weight} '
                f'textLength="{len(text) * WIDTH:.1f}">{escape(text)}</text>')
    defs = "".join(f'<g id="{name}">{"".join(run(*part) for part in row)}</g>' for row, name in lines.items())
    width = COLUMNS * WIDTH + 2 * EDGE
    last = -(len(frames) - 1) * height
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">
<style>text{{white-space:pre;font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}}
#m{{animation:m {length:.1f}s steps(1,end) infinite}}@keyframes m{{{"".join(steps)}}}
@media (prefers-reduced-motion:reduce){{#m{{animation:none;transform:translateY({last}px)}}}}</style>
<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="6" fill="{colours['back']}" stroke="{colours['edge']}"/>
<defs>{defs}</defs><g id="m">{"".join(body)}</g></svg>
"""


if __name__ == "__main__":
    shutil.which("bash") or sys.exit("bash is needed")
    frames, ended = record(sys.argv[1])
    for theme, colours in THEMES.items():
        path = Path(sys.argv[2], f"run-{theme}.svg")
        path.write_text(picture(frames, ended + END, colours))
        print(f"{path}: {len(frames)} pictures, {ended + END:.0f} s, {path.stat().st_size // 1024} KiB")
