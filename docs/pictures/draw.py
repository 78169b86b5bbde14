#!/usr/bin/env python3
"""Draws the pictures of the README as SVG on standard output, from measured data.

usage: docs/pictures/draw.py trace run.perfetto > docs/pictures/trace.svg
       docs/pictures/draw.py machine machine.json > docs/pictures/machine.svg

    vm-run --module=examples/elementwise_mul.vmasm --function=mul --input=8xf32=3 --input=8xf32=2 \\
           --device=local-task --trace=run.perfetto
    ./dev bench machine --json > machine.json
"""
import json
import pathlib
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from perfetto import Trace  # noqa: E402

WIDTH = 960
LABELS = 150  # pixels on the left
ROW = 20
COLOURS = {"phase": "#c9ced6", "machine": "#7fb2e5", "import": "#9ad1a5", "device": "#f2b366", "wait": "#e7e2f3",
           "queue": "#c8a2d6", "memory": "#999999"}


class Picture:
    def __init__(self):
        self.parts = []
        self.height = 0

    def text(self, x, y, text, size=11, anchor="start", colour="#333"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
                          f"{escape(text)}</text>")

    def box(self, x, y, width, height, colour, title):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.6):.1f}" height="{height}" fill="{colour}" '
                          f'stroke="#fff" stroke-width="0.5"><title>{escape(title)}</title></rect>')

    def arrow(self, x1, y1, x2, y2):
        bend = max(12, abs(x2 - x1) / 2)
        self.parts.append(f'<path d="M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}" '
                          'fill="none" stroke="#c0392b" stroke-width="1.2" marker-end="url(#head)"/>')

    def write(self):
        print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
              f'viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif">')
        print('<defs><marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
              '<path d="M0 0 L6 3 L0 6 z" fill="#c0392b"/></marker></defs>')
        print(f'<rect width="{WIDTH}" height="{self.height}" fill="#fff"/>')
        print("\n".join(self.parts))
        print("</svg>")


def shortened(text, pixels):
    room = int(pixels / 6.2)
    return text if len(text) <= room else "" if room < 5 else text[: room - 1] + "…"


def draw_trace(path):
    """The call alone: what came before it was done once."""
    trace = Trace(path)
    slices = trace.slices()
    call = next(s for s in slices if s.category == "phase" and s.name == "call")
    shown = [s for s in slices if s.begin >= call.begin and s.end <= call.end and s.category != "phase"]
    begin, end = min(s.begin for s in shown), max(s.end for s in shown)

    def x(time):
        return LABELS + (time - begin) / (end - begin) * (WIDTH - LABELS - 10)

    picture = Picture()
    top, rows = 8, {}
    order = {"thread": 0, "track": 1}
    tracks = sorted({s.track for s in shown}, key=lambda t: (order[trace.tracks[t].kind], t))
    for track in tracks:
        of_track = [s for s in shown if s.track == track]
        lowest = min(s.depth for s in of_track)
        described = trace.tracks[track]
        label = f"thread {described.name}" if described.kind == "thread" else trace.tracks[described.parent].name
        picture.text(LABELS - 8, top + 14, label, anchor="end")
        for s in of_track:
            y = top + (s.depth - lowest) * ROW
            rows[id(s)] = y
            picture.box(x(s.begin), y, x(s.end) - x(s.begin), ROW - 1, COLOURS[s.category],
                        f"{s.name}: {(s.end - s.begin) / 1000:.1f} us")
            picture.text(x(s.begin) + 3, y + 14, shortened(s.name, x(s.end) - x(s.begin) - 4), 10)
        rows[track] = top
        top += (max(s.depth for s in of_track) - lowest + 1) * ROW + 8
    for number in {flow for event in trace.events for flow in event.flows}:
        steps = [event for event in trace.flow(number) if begin <= event.time <= end and event.track in rows]
        for first, second in zip(steps, steps[1:]):
            picture.arrow(x(first.time), rows[first.track] + ROW / 2, x(second.time), rows[second.track] + ROW / 2)
    picture.text(LABELS, top + 12, f"one call of {(end - begin) / 1000:.0f} us; arrows are submissions and fences", 11,
                 colour="#777")
    left = WIDTH - 10
    for category in ("device", "queue", "wait", "import", "machine"):
        left -= 9 * len(category) + 18
        picture.box(left, top + 3, 10, 10, COLOURS[category], category)
        picture.text(left + 14, top + 12, category)
    picture.height = top + 22
    picture.write()


def draw_machine(path):
    with open(path) as file:
        rows = json.load(file)["programs"]
    picture = Picture()
    top = 26
    longest = max(1.0, max(row["over_lua"] for row in rows))
    scale = (WIDTH - LABELS - 90) / longest
    picture.text(LABELS, 16, "time, as a share of what Lua 5.4 takes for the same program (shorter is faster)")
    for row in rows:
        picture.text(LABELS - 8, top + 14, row["name"], anchor="end")
        picture.box(LABELS, top, row["over_lua"] * scale, ROW - 3, COLOURS["machine"], row["name"])
        picture.text(LABELS + row["over_lua"] * scale + 6, top + 13, f"{row['over_lua']:.2f}")
        top += ROW
    picture.parts.append(f'<path d="M{LABELS + scale:.1f} 24 V{top}" stroke="#c0392b" stroke-dasharray="4 3"/>')
    picture.text(LABELS + scale + 4, top + 12, "Lua 5.4", colour="#c0392b")
    picture.height = top + 20
    picture.write()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("trace", "machine"):
        sys.exit(__doc__)
    {"trace": draw_trace, "machine": draw_machine}[sys.argv[1]](sys.argv[2])
