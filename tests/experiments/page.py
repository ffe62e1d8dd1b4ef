#!/usr/bin/env python3
"""Opens the pages of results and of an evaluation in a real browser, headless and offline, and looks at what they draw.

    tests/experiments/page.py CONSENSUS_BIN

Makes a batch and an evaluation with scripted agents, and opens their pages in Chromium as wide as a desktop and as narrow as a
telephone, light and dark. Nothing may be loaded, nothing may be said on the console, nothing may reach beyond the page or lie on
another text. All text must stand out from its ground, names stay names, each link leads somewhere, and a run leads to its
transcript. Exit status: 69 if there is no Chromium.
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

WIDTHS = [1280, 1000, 400, 360]

FRAMES = [(scheme, width) for scheme in ["light", "dark"] for width in WIDTHS]

# The least contrast of text that WCAG 2.2 allows at level AA.
CONTRAST_MIN = 4.5

DRAWINGS = ["rates", "differences", "rounds", "tokens", "seconds"]

EVAL_DRAWINGS = ["differences", "tokens", "risk", "grounds", "calibration", "flips-4"]

# A name that would run if it were not shown as text.
HOSTILE = "<script>alert(1)</script>"

MEASURE = """
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const seen = e => e.getClientRects().length > 0;
const channels = css => css.match(/[\\d.]+/g).map(Number);
const linear = value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const ground = e => {
  for (; e; e = e.parentElement) {
    const [r, g, b, alpha = 1] = channels(getComputedStyle(e).backgroundColor);
    if (alpha === 1) return [r, g, b];
  }
  throw "a page without a ground";
};
const contrast = e => {
  const style = getComputedStyle(e);
  const ink = luminance(channels(e.closest("svg") ? style.fill : style.color)), under = luminance(ground(e));
  return (Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05);
};
const written = e => seen(e) && [...e.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
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
    rows: [...page.querySelectorAll("table.cards tbody tr")].map(row => [...row.cells].map(cell => cell.textContent)),
    cells: [...page.querySelectorAll("td, th, h1, h3, code")].filter(seen).map(e => [e.textContent, ...box(e)]),
    headings: [...page.querySelectorAll("table.cards th")].map(th => th.title),
    loaded: [...page.querySelectorAll("[src], script, link, iframe, object, img")].length,
    outward: links.filter(href => !href.startsWith("#")),
    broken: links.filter(href => href.startsWith("#") && !page.getElementById(href.slice(1))),
    text: page.body.textContent,
    ground: luminance(ground(page.body)),
    contrasts: [...page.body.querySelectorAll("*")].filter(written).map(e => [e.textContent, contrast(e)]),
  };
};
onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  const pages = frames.map(measured);
  const page = frames[0].contentDocument;
  const say = found => { document.body.textContent = "FOUND" + JSON.stringify(found) + "END"; };
  const link = page.querySelector("td a[href^='#run-']");
  if (!link) return say({ pages });
  const transcript = page.getElementById(link.getAttribute("href").slice(1));
  const before = seen(transcript);
  frames[0].contentWindow.onhashchange = () => {
    const quotes = [...transcript.querySelectorAll("blockquote")].map(quote => quote.textContent);
    say({ pages, before, after: seen(transcript), quotes });
  };
  // In a frame with its page inside, a click would be resolved against the frame's own address.
  frames[0].contentWindow.location.hash = link.getAttribute("href");
};
"""


def overlap(one, other):
    """Whether two boxes share more than a hair."""
    return min(one[2], other[2]) - max(one[0], other[0]) > 1 and min(one[3], other[3]) - max(one[1], other[1]) > 3


def write_tasks(folder):
    tasks = [
        {"id": f"{n} {HOSTILE}", "prompt": f"How much is {n} + 1?", "answer": 4 if n % 3 else 5, "canonical": "number"} for n in range(30)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))


def results_page(program, folder):
    """Makes a batch and returns its page."""
    batch = [program, "batch", "-q", "tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--seeds", "3"]
    rolesets = ["--roleset", "solver_checker,panel_personas,writer_physicist"]
    subprocess.run([*batch, *rolesets, "--model", f"a,{HOSTILE}"], cwd=folder, check=True)
    results = [program, "results", "out", "--format", "html", "--with-transcripts", "--versus", "solver_checker,a"]
    return subprocess.run(results, cwd=folder, check=True, capture_output=True).stdout.decode()


def evaluation_page(program, folder):
    """Makes an evaluation and returns its page, and the page of an item that flips."""
    replies = [
        {"draft": 0, "step": "sample", "reply": "Answer: 5"},
        {"draft": 3, "step": "sample", "reply": f"Answer: {HOSTILE}"},
        {"policy": "honest", "answer": "4"},
    ]
    (folder / "script.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    arms = ["single", "sc@5", f"vote,modes=words,program,model={HOSTILE}", "pair:solver_checker"]
    flags = [flag for arm in arms for flag in ("--arm", arm)]
    command = [program, "eval", "-q", "tasks.jsonl", *flags, "--mock-script", "script.jsonl", "--out", "study"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    items = sorted((folder / "study/items").iterdir())
    return (folder / "study/report.html").read_text(), items[0].read_text()


def opened(browser, folder, page, drawings):
    """Opens a page in each scheme of colours at each width, and returns what was measured."""
    frames = "".join(
        f'<iframe style="color-scheme: {scheme}" srcdoc="{html.escape(page)}" width="{width}" height="2300"></iframe>'
        for scheme, width in FRAMES
    )
    script = MEASURE.replace("DRAWINGS", json.dumps(drawings))
    (folder / "frame.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{script}</script>{frames}")
    command = [browser, *QUIET, f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/frame.html"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(html.unescape(re.search(r"FOUND(\{.*\})END", ran.stdout, re.DOTALL)[1]))
    assert "<script" not in page, "a name has become code"
    said = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    for (scheme, asked), measured in zip(FRAMES, found["pages"], strict=True):
        width = measured["width"]
        assert (measured["ground"] < 0.2) == (scheme == "dark"), f"the ground is {measured['ground']} in {scheme}"
        faint = [seen for seen in measured["contrasts"] if seen[1] < CONTRAST_MIN]
        assert measured["contrasts"] and not faint, f"too faint in {scheme}: {faint}"
        assert asked - 20 <= width <= asked and measured["reach"] <= width, f"{measured['reach']} of {width}"
        assert measured["loaded"] == 0 and not measured["broken"], measured["broken"]
        assert HOSTILE in measured["text"], "a hostile name is not shown as it is"
        for text, left, _, right, _ in measured["cells"]:
            assert 0 <= left and right <= width, f"{text} reaches from {left} to {right} of {width}"
        for drawing in measured["drawings"]:
            check_drawing(drawing, width)
    return found


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
        folder = Path(folder)
        write_tasks(folder)
        found = opened(browser, folder, results_page(program, folder), DRAWINGS)
        report, item = evaluation_page(program, folder)
        evaluated = opened(browser, folder, report, EVAL_DRAWINGS)
        alone = opened(browser, folder, item, [])
    assert found["after"] and not found["before"], "a run does not lead to its transcript"
    assert any("How much is" in quote for quote in found["quotes"]), found["quotes"]
    for measured in found["pages"]:
        rows = measured["rows"]
        assert len(rows) == 6 and any("<script>" in cell for row in rows for cell in row), rows
        assert all(measured["headings"]), "a heading says nothing"
        assert "batch -q tasks.jsonl" in measured["text"] and "SHA-256 of tasks.jsonl" in measured["text"]
        assert not measured["outward"], measured["outward"]
    for measured in evaluated["pages"]:
        assert len(measured["rows"]) == 4, measured["rows"]
        assert measured["outward"] and all(href.startswith("items/") for href in measured["outward"]), measured["outward"]
        assert "The primary comparison" in measured["text"] and "SHA-256 of tasks.jsonl" in measured["text"]
    for measured in alone["pages"]:
        assert measured["outward"] == ["../report.html"] and "How much is" in measured["text"], measured["outward"]
    marks = [sum(len(plot["marks"]) for drawing in of["pages"][0]["drawings"] for plot in drawing["plots"]) for of in (found, evaluated)]
    print(f"pages: passed: {marks[0]} and {marks[1]} marks in {len(DRAWINGS) + len(EVAL_DRAWINGS)} drawings at {len(WIDTHS)} widths, light and dark, nothing loaded")


main()
