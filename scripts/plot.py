#!/usr/bin/env python3
"""Draws the output of the growth bench as SVG, one picture per dimension.

Usage: plot.py growth.txt DIRECTORY. Lines are `what<TAB>how many<TAB>value<TAB>unit`; others are left out.
"""

import math
import pathlib
import sys

WIDTH, HEIGHT = 480, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 28, 40


def read(path):
    """The points of each picture, by what grew and the unit."""
    pictures = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 4:
            what, how_many, value, unit = fields
            pictures.setdefault((what, unit), []).append((float(how_many), float(value)))
    return pictures


def short(number):
    """A number as people write it: 10k, 1M, 0.25."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{sign}"
    return f"{number:g}"


def picture(what, unit, points):
    """Logarithmic below, from zero upwards."""
    low, high = (math.log10(edge(point[0] for point in points)) for edge in (min, max))
    top = nice(max(value for _, value in points))

    def x(how_many):
        return LEFT + (math.log10(how_many) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="16" font-weight="bold">{unit}, by number of {what}</text>',
    ]
    for part in range(5):
        value = top * part / 4
        out.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{short(value)}</text>')
    path = " ".join(f"{x(how_many):.1f},{y(value):.1f}" for how_many, value in points)
    out.append(f'<polyline points="{path}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    for how_many, value in points:
        out.append(f'<circle cx="{x(how_many):.1f}" cy="{y(value):.1f}" r="3" fill="#1f6feb"/>')
        out.append(
            f'<text x="{x(how_many):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(how_many)}</text>'
        )
        out.append(
            f'<text x="{x(how_many):.1f}" y="{y(value) - 7:.1f}" text-anchor="middle" fill="#555">{short(round(value, 2))}</text>'
        )
    out.append("</svg>\n")
    return "\n".join(out)


def nice(number):
    """The next round number above."""
    size = 10 ** math.floor(math.log10(max(number, 1e-9)))
    return next(size * step for step in (1, 2, 2.5, 5, 10) if size * step >= number * 1.1 or step == 10)


def main():
    source, directory = sys.argv[1:3]
    target = pathlib.Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for (what, unit), points in read(source).items():
        name = f"{what}-{unit.split()[0].lower()}.svg" if what == "items" else f"{what}.svg"
        (target / name).write_text(picture(what, unit, sorted(points)), encoding="utf-8")
        print(target / name)


if __name__ == "__main__":
    main()
