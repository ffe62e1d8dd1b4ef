#!/usr/bin/env python3
"""Opens the page of results in a real browser, headless and offline, and looks at what it draws.

    tests/live/page.py CONSENSUS_BIN

Makes a batch with scripted agents, and opens its page in Chromium as wide as a desktop and as narrow as a telephone. Nothing may
be loaded, nothing may be said on the console, nothing may reach beyond the page or lie on another text, names stay names, each link
leads somewhere, and a run leads to its transcript. Exit status: 69 if there is no Chromium.
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
--disable-component-update --disable-sync --enable-logging=stderr --window-size=1300,2400
--virtual-time-budget=10000""".split()

WIDTHS = [1000, 400, 360]

DRAWINGS = ["rates", "differences", "rounds", "tokens", "seconds"]

MEASURE = """
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const seen = e => e.getClientRects().length > 0;
const measured = frame => {
  const page = frame.contentDocument;
  const drawings = DRAWINGS.map(id => {
    const drawing = page.getElementById(id);
    const plots = [...drawing.querySelectorAll("svg")].filter(svg => !svg.parentElement.closest("svg")).filter(seen);
    return {
      id,
      plots: plots.map(svg => ({
        box: box(svg),
        marks: [...svg.querySelectorAll("circle, rect, path, line")].map(box),
        texts: [...svg.querySelectorAll("text")].filter(seen).map(e => [e.textContent, ...box(e)]),
      })),
      labels: [...drawing.querySelectorAll(".label")].map(e => [e.textContent, ...box(e)]),
    };
  });
  const root = page.documentElement;
  const links = [...page.querySelectorAll("a")].map(a => a.getAttribute("href"));
  return {
    width: root.clientWidth, reach: root.scrollWidth, drawings,
    rows: [...page.querySelectorAll("#groups tbody tr")].map(row => [...row.cells].map(cell => cell.textContent)),
    cells: [...page.querySelectorAll("td, th, h1, h3, code")].filter(seen).map(e => [e.textContent, ...box(e)]),
    headings: [...page.querySelectorAll("#groups th")].map(th => th.title),
    loaded: [...page.querySelectorAll("[src], script, link, iframe, object, img")].length,
    outward: links.filter(href => !href.startsWith("#")),
    broken: links.filter(href => !page.getElementById(href.slice(1))),
    origin: page.getElementById("origin").nextElementSibling.nextElementSibling.textContent,
  };
};
onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  const pages = frames.map(measured);
  const page = frames[0].contentDocument;
  const link = page.querySelector("td a[href^='#run-']");
  const transcript = page.getElementById(link.getAttribute("href").slice(1));
  const before = seen(transcript);
  frames[0].contentWindow.onhashchange = () => {
    const quotes = [...transcript.querySelectorAll("blockquote")].map(quote => quote.textContent);
    const found = { pages, before, after: seen(transcript), quotes };
    document.body.textContent = "FOUND" + JSON.stringify(found) + "END";
  };
  // In a frame with its page inside, a click would be resolved against the frame's own address.
  frames[0].contentWindow.location.hash = link.getAttribute("href");
};
"""


def overlap(one, other):
    """Whether two boxes share more than a hair."""
    return min(one[2], other[2]) - max(one[0], other[0]) > 1 and min(one[3], other[3]) - max(one[1], other[1]) > 3


def shown(program, browser, folder):
    """Makes a batch and its page, opens it at each width, and returns the page, what was measured, and what the browser said."""
    tasks = [
        {"id": n, "prompt": f"How much is {n} + 1?", "answer": 4 if n % 3 else 5, "canonical": "number"} for n in range(30)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    batch = [program, "batch", "-q", "tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--seeds", "3"]
    rolesets = ["--roleset", "solver_checker,panel_personas,translator_reviewer"]
    models = ["--model", "a,<script>alert(1)</script>"]
    subprocess.run([*batch, *rolesets, *models], cwd=folder, check=True)
    results = [program, "results", "out", "--format", "html", "--with-transcripts", "--versus", "solver_checker,a"]
    page = subprocess.run(results, cwd=folder, check=True, capture_output=True).stdout.decode()
    frames = "".join(f'<iframe srcdoc="{html.escape(page)}" width="{width}" height="2300"></iframe>' for width in WIDTHS)
    script = MEASURE.replace("DRAWINGS", json.dumps(DRAWINGS))
    (folder / "frame.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{script}</script>{frames}")
    command = [browser, *QUIET, f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/frame.html"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(html.unescape(re.search(r"FOUND(\{.*\})END", ran.stdout, re.DOTALL)[1]))
    return page, found, [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


def check_drawing(drawing, width):
    """Checks that a drawing has its marks, and that each of its words can be read."""
    name, plots = drawing["id"], drawing["plots"]
    assert sum(len(plot["marks"]) for plot in plots) >= 6, f"{name} has few marks at {width}"
    axis = [text[0] for text in plots[-1]["texts"]]
    assert sum(any(c.isdigit() for c in text) for text in axis) >= 2, f"{name} has no scale at {width}: {axis}"
    for left, top, right, bottom in (plot["box"] for plot in plots):
        assert right - left > width * (0.5 if width > 640 else 0.7), f"{name} is narrow at {width}: {left} to {right}"
    for plot in plots:
        left, top, right, bottom = plot["box"]
        for box in plot["marks"]:
            assert left - 7 <= box[0] and box[2] <= right + 7 and top - 7 <= box[1] and box[3] <= bottom + 7, (name, box)
        for text in plot["texts"]:
            assert 11 <= text[4] - text[2] <= 20, f"{name}: {text} is {text[4] - text[2]} high at {width}"
            assert 0 <= text[1] and text[3] <= width, f"{name}: {text} is beyond {width}"
        for at, one in enumerate(plot["texts"]):
            for other in plot["texts"][:at]:
                assert not overlap(one[1:], other[1:]), f"{name}: {one} lies on {other} at {width}"


def main():
    program = str(Path(sys.argv[1]).resolve())
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("page: SKIPPED: there is no Chromium here", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    with tempfile.TemporaryDirectory() as folder:
        page, found, said = shown(program, browser, Path(folder))
    assert not said, said
    assert "<script" not in page, "a model's name has become code"
    assert found["after"] and not found["before"], "a run does not lead to its transcript"
    assert any("How much is" in quote for quote in found["quotes"]), found["quotes"]
    for asked, measured in zip(WIDTHS, found["pages"]):
        width = measured["width"]
        assert asked - 20 <= width <= asked and measured["reach"] <= width, f"{measured['reach']} of {width}"
        assert measured["loaded"] == 0 and not measured["outward"] and not measured["broken"], measured["broken"]
        rows = measured["rows"]
        assert len(rows) == 6 and any("<script>" in cell for row in rows for cell in row), rows
        assert all(measured["headings"]), "a heading says nothing"
        assert "batch -q tasks.jsonl" in measured["origin"] and "SHA-256 of tasks.jsonl" in measured["origin"]
        for text, left, _, right, _ in measured["cells"]:
            assert 0 <= left and right <= width, f"{text} reaches from {left} to {right} of {width}"
        for drawing in measured["drawings"]:
            check_drawing(drawing, width)
    marks = sum(len(plot["marks"]) for drawing in found["pages"][0]["drawings"] for plot in drawing["plots"])
    print(f"page: passed: {len(DRAWINGS)} drawings with {marks} marks at {len(WIDTHS)} widths, 6 groups, nothing loaded")


main()
