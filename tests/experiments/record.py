#!/usr/bin/env python3
"""Records commands at a terminal as an animated SVG, which needs no script and loads nothing.

    python3 tests/experiments/record.py OUT.svg COLUMNS ROWS 'COMMAND' ['COMMAND' …]

Each command is typed and run in bash on a pseudo-terminal, one after another. What runs is shown SPEED times as fast (an environment
variable, 1 without it), and waits of more than two seconds become two seconds.
`pip install pyte` gives the terminal; it is needed for recording only.
"""

import fcntl
import html
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pyte

WAIT_MAX, FRAME_EVERY, TYPED_EVERY, END = 2.0, 0.12, 0.04, 4.0
SPEED = float(os.environ.get("SPEED", "1"))
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN = 8.4, 18, 14, 12
COLORS = {
    "default": "#d8dee9", "brightblack": "#7a8496", "black": "#7a8496", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b",
    "yellow": "#e5c07b", "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9",
    "brightblue": "#61afef", "brightmagenta": "#c678dd", "brightcyan": "#56b6c2", "brightred": "#e06c75", "brightgreen": "#98c379",
}


class Screen(pyte.Screen):
    """A screen on which dim text is grey."""

    def select_graphic_rendition(self, *codes, **more):
        super().select_graphic_rendition(*(90 if code == 2 else code for code in codes), **more)


def lines(screen):
    """Returns each row as a tuple of runs, a text with its colour and weight."""
    shown = []
    for y in range(screen.lines):
        runs = []
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            look = (COLORS.get(cell.fg, COLORS["default"]), cell.bold)
            if runs and runs[-1][1] == look:
                runs[-1] = (runs[-1][0] + cell.data, look)
            else:
                runs.append((cell.data, look))
        while runs and not runs[-1][0].strip():
            runs.pop()
        shown.append(tuple(runs))
    return tuple(shown)


class Recorder:
    """Screens over time."""

    def __init__(self, columns, rows):
        self.screen = Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.frames, self.now, self.taken = [], 0.0, -1.0

    def feed(self, data, after):
        self.now += min(after, WAIT_MAX)
        self.stream.feed(data)
        if self.now - self.taken >= FRAME_EVERY:
            self.take()

    def take(self):
        frame = lines(self.screen)
        if not self.frames or self.frames[-1][1] != frame:
            self.frames.append((self.now, frame))
        self.taken = self.now

    def run(self, command):
        self.feed(b"\x1b[1;32m$\x1b[0m ", 0.6)
        for character in command:
            self.feed(character.encode(), TYPED_EVERY)
        self.feed(b"\r\n", 0.4)
        self.take()
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", self.screen.lines, self.screen.columns, 0, 0))
        child = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                                 env={**os.environ, "TERM": "xterm-256color"})
        os.close(slave)
        last = time.monotonic()
        while True:
            ready, _, _ = select.select([master], [], [], 0.5)
            if not ready:
                continue
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            now = time.monotonic()
            self.feed(data, (now - last) / SPEED)
            last = now
        child.wait()
        self.take()


def written(runs, name):
    """Returns a row as an SVG text."""
    spans, x = [], 0
    for text, (color, bold) in runs:
        lead = len(text) - len(text.lstrip(" "))
        if text.strip():
            weight = ' font-weight="bold"' if bold else ""
            spans.append(f'<tspan x="{(x + lead) * CELL_WIDTH:.1f}" fill="{color}"{weight}>{html.escape(text.strip(" "))}</tspan>')
        x += len(text)
    return f'<text id="{name}">{"".join(spans)}</text>'


def svg(frames, columns, rows, label):
    """Returns the frames as an SVG, one below the other, of which a step of the animation shows one."""
    width, height = columns * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    total = frames[-1][0] + END
    names, texts, drawn = {}, [], []
    for at, (_, frame) in enumerate(frames):
        for y, runs in enumerate(frame):
            if not runs:
                continue
            if runs not in names:
                names[runs] = f"l{len(names)}"
                texts.append(written(runs, names[runs]))
            drawn.append(f'<use href="#{names[runs]}" y="{at * height + y * CELL_HEIGHT + FONT_SIZE:.0f}"/>')
    steps = "".join(f"{100 * begin / total:.2f}%{{transform:translateY(-{at * height:.0f}px)}}" for at, (begin, _) in enumerate(frames))
    last = (len(frames) - 1) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html.escape(label)}" '
        f'font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="{FONT_SIZE}">\n'
        f"<style>@keyframes s{{{steps}}}.s{{animation:s {total:.1f}s step-end infinite}}"
        f"@media (prefers-reduced-motion:reduce){{.s{{animation:none;transform:translateY(-{last:.0f}px)}}}}text{{white-space:pre}}</style>\n"
        f"<defs>{''.join(texts)}</defs>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#1e222a"/>\n'
        f'<svg x="{MARGIN}" y="{MARGIN}" width="{columns * CELL_WIDTH:.0f}" height="{rows * CELL_HEIGHT}"><g class="s">{"".join(drawn)}</g></svg>\n'
        "</svg>\n"
    )


def main():
    out, columns, rows, commands = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    recorder = Recorder(columns, rows)
    for command in commands:
        recorder.run(command)
    with open(out, "w", encoding="utf-8") as file:
        file.write(svg(recorder.frames, columns, rows, "A terminal: " + "; ".join(commands)))
    print(f"{out}: {len(recorder.frames)} frames, {recorder.now:.0f} s")


main()
