#!/usr/bin/env python3
"""Opens the page of results in a real browser, headless and offline, and looks at what it draws.

    tests/live/page.py CONSENSUS_BIN

Makes a batch with scripted agents, opens its page in Chromium inside a frame, and measures every mark: nothing may be loaded,
nothing may be said on the console, no text may lie outside its drawing or on another, and names stay names. Exit status: 69 if
there is no Chromium.
"""

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

UNAVAILABLE = 69  # EX_UNAVAILABLE

# Without these the browser itself looks for hosts.
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --enable-logging=stderr --window-size=1100,2400""".split()

MEASURE = """
onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const drawings = [...page.querySelectorAll("svg")].map(svg => {
    const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
    const marks = [...svg.querySelectorAll("circle, rect, path, line")].map(box);
    const texts = [...svg.querySelectorAll("text")].map(e => [e.textContent, ...box(e)]);
    return { id: svg.id, box: box(svg), marks, texts };
  });
  const rows = [...page.querySelectorAll("tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
  const loaded = [...page.querySelectorAll("[src], [href], script, link, iframe, object, img")].length;
  document.body.textContent = "FOUND" + JSON.stringify({ title: page.title, drawings, rows, loaded }) + "END";
};
"""


def overlap(one, other):
    """Whether two boxes share more than a hair."""
    return min(one[2], other[2]) - max(one[0], other[0]) > 1 and min(one[3], other[3]) - max(one[1], other[1]) > 3


def main():
    program = str(Path(sys.argv[1]).resolve())
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("page: SKIPPED: there is no Chromium here", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tasks = [
            {"id": n, "prompt": f"How much is {n} + 1?", "answer": 4 if n % 3 else 5, "canonical": "number"}
            for n in range(30)
        ]
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        batch = [program, "batch", "-q", "tasks.jsonl", "--out", "out", "--mock", "--answer", "4", "--seeds", "3"]
        rolesets = ["--roleset", "solver_checker,writer_physicist,translator_reviewer"]
        models = ["--model", "a,<script>alert(1)</script>"]
        subprocess.run([*batch, *rolesets, *models], cwd=folder, check=True)
        told = subprocess.run([program, "results", "out", "--format", "html"], cwd=folder, check=True, capture_output=True)
        page = told.stdout.decode()
        frame = f'<iframe srcdoc="{html.escape(page)}" width="1000" height="2300"></iframe>'
        (folder / "frame.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{MEASURE}</script>{frame}")
        shown = subprocess.run(
            [browser, *QUIET, f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/frame.html"],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        found = json.loads(html.unescape(re.search(r"FOUND(\{.*\})END", shown.stdout, re.DOTALL)[1]))
        said = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]

    assert not said, said
    assert found["loaded"] == 0, f"{found['loaded']} things are loaded"
    assert "<script" not in page, "a model's name has become code"
    assert len(found["rows"]) == 6 and any("<script>" in cell for row in found["rows"] for cell in row), found["rows"]
    drawings = {drawing["id"]: drawing for drawing in found["drawings"]}
    assert list(drawings) == ["rates", "rounds", "tokens", "seconds"], list(drawings)
    for name, drawing in drawings.items():
        left, top, right, bottom = drawing["box"]
        assert right - left > 500 and bottom - top > 100, f"{name} is {drawing['box']}"
        assert len(drawing["marks"]) >= 6, f"{name} has {len(drawing['marks'])} marks"
        for box in [*drawing["marks"], *(text[1:] for text in drawing["texts"])]:
            assert left - 2 <= box[0] and box[2] <= right + 2 and top - 2 <= box[1] and box[3] <= bottom + 2, (name, box)
        texts = drawing["texts"]
        # Points that lie on each other have their numbers on each other, too.
        words = [text for text in texts if name != "tokens" or not text[0].isdigit() or len(text[0]) > 1]
        for at, one in enumerate(words):
            for other in words[:at]:
                assert not overlap(one[1:], other[1:]), f"{name}: {one} lies on {other}"
    marks = sum(len(drawing["marks"]) for drawing in drawings.values())
    print(f"page: passed: 4 drawings with {marks} marks, 6 groups, nothing loaded")


main()
