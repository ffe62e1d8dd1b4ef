#!/usr/bin/env python3
"""The page of `consensus serve` in a real browser, by Playwright: a run is begun in the form, watched to its end, opened and looked at.

    live_page.py BIN NODE_MODULES [FOLDER]

NODE_MODULES has the npm package `axe-core`. With FOLDER, screenshots are left there. The browser is the system's Chromium, and without
one the exit status is 69. Exit status 1: the page says something else, a hostile text runs, axe finds a violation, or it is too slow.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from model_server import Model, served
from openai_client import Server
from playwright.sync_api import sync_playwright

UNAVAILABLE = 69  # EX_UNAVAILABLE
WIDTHS = [1280, 800, 360]
HOSTILE = "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script>"
# Waits until a word is in the first cell of those at work. A locator would look only now and then.
APPEARS = """word => new Promise(resolve => {
  const seen = () => document.querySelector("#at-work .cell")?.textContent.includes(word);
  if (seen()) return resolve();
  const watch = new MutationObserver(() => seen() && (watch.disconnect(), resolve()));
  watch.observe(document.getElementById("view"), {subtree: true, childList: true});
})"""
TOKEN = "a-token-of-sixteen"

# The time in which an event is to be on the page, and in which 1,000 runs are to be listed, beside the time in which this browser shows
# as long a table that is written already: the machine is not the same everywhere.
EVENT_MAX = 0.6
LIST_MAX = 3.0


class Gated(Model):
    """A model whose answers wait until they are let go, and are hostile."""

    answers = threading.Semaphore(0)
    replied = []

    def said(self, _request):
        Gated.answers.acquire()
        Gated.replied.append(time.monotonic())
        return f"It follows from {HOSTILE}.\nAnswer: 4"


class Writing(Model):
    """A model whose words come one by one, for as long as a test wants."""

    is_over = threading.Event()
    # When each word was first written.
    wrote = {}

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.chunk({"content": f"It follows from {HOSTILE} "})
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            number = 0
            while not self.is_over.wait(0.02):
                self.chunk({"content": f"word{number} "})
                Writing.wrote.setdefault(number, time.monotonic())
                number += 1
            self.chunk({"content": "\nAnswer: 4"}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def chunk(self, delta, finish=None):
        value = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()


class Forms(Model):
    """A model that fills in the forms of a council."""

    def said(self, request):
        form = request.get("response_format", {}).get("json_schema", {}).get("name")
        quote = {"source": "D1", "quote": "The rent is 830 euros."}
        filled = {
            "framing": {"framing": "The rent.", "search": "rent", "reasoning": "it says so", "confidence": 0.9},
            "response": {"response": "830 euros", "citations": [quote], "reasoning": "it says so", "confidence": 0.9},
            "verification": {
                "checks": [{"claim": "830 euros", "verdict": "holds", **quote}],
                "reasoning": "it holds",
                "veto": False,
                "confidence": 0.9,
            },
        }.get(form)
        return json.dumps(filled) if filled else "I think so."


class Browser:
    """A page of a browser that remembers what went wrong on it."""

    def __init__(self, browser, axe, **more):
        self.context = browser.new_context(**more)
        self.page = self.context.new_page()
        self.axe = axe
        self.wrong = []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda why: self.wrong.append(str(why)))

    def violations(self):
        """What axe finds."""
        self.page.evaluate(self.axe)
        found = self.page.evaluate("axe.run().then(found => found.violations.map(v => [v.id, v.nodes.map(n => n.html).slice(0, 3)]))")
        return found

    def fits(self):
        """Whether nothing reaches beyond the width of the page."""
        return self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def looks(browser, axe, url, places, folder, token=None):
    """Each place at each width, light and dark."""
    for scheme in ["light", "dark"]:
        for width in WIDTHS:
            shown = Browser(browser, axe, viewport={"width": width, "height": 900}, color_scheme=scheme)
            for name, place in places.items():
                shown.page.goto(f"{url}/{place}")
                shown.page.wait_for_selector("main h1")
                assert shown.fits(), (name, width, scheme)
                assert shown.violations() == [], (name, width, scheme, shown.violations())
                if folder:
                    shown.page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
            assert shown.wrong == [], shown.wrong
            shown.context.close()


def begun_in_the_form(browser, axe, binary):
    """A run that a person begins, watches and opens, by a model whose words are hostile."""
    with Server(binary, "--base-url", served(Gated)[1], "--model", "test", "--roleset", "self_consistency,single") as server:
        url = server.url.removesuffix("/v1")
        shown = Browser(browser, axe)
        page = shown.page
        page.goto(f"{url}/#new")
        page.get_by_label("Task").fill(f"How much is 2+2? {HOSTILE}")
        page.locator("select[name=model]").select_option(label="self_consistency")
        assert page.inner_text("#about").startswith("Five blind samples"), page.inner_text("#about")
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector(".outcome.open")
        delays = []
        for count in range(1, 6):
            Gated.answers.release()
            page.locator(".round:not(#at-work) .cell").nth(count - 1).or_(page.locator("#answer")).first.wait_for()
            delays.append(time.monotonic() - Gated.replied[-1])
        Gated.answers.release(20)
        page.wait_for_selector("#answer")
        assert page.title().endswith("· consensus") and "2+2" in page.title(), page.title()
        assert page.inner_text("#answer") == "4", page.inner_text("#answer")
        assert HOSTILE in page.inner_text("main"), "a hostile text is shown as text"
        page.goto(f"{url}/#")
        page.wait_for_selector("#runs tbody tr")
        assert HOSTILE[:20] in page.inner_text("#runs"), page.inner_text("#runs")
        page.get_by_role("button", name="not agreed", exact=True).click()
        assert page.inner_text("#count") == "0 runs", page.inner_text("#count")
        page.get_by_role("button", name="agreed", exact=True).click()
        # By the keyboard alone.
        page.locator("#runs tbody tr a").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#votes")
        assert page.evaluate("document.activeElement.tagName") == "H1", "the new part is read from its heading on"
        assert page.evaluate("window.ran") is None, "nothing that a model or a task says can run"
        assert shown.wrong == [], shown.wrong
        shown.context.close()
        return delays


def written(browser, axe, binary, folder):
    """A run whose words are on the page while they come. Returns how far the page is behind the model."""
    with Server(binary, "--base-url", served(Writing)[1], "--model", "test") as server:
        url = server.url.removesuffix("/v1")
        body = {"model": "consensus/self_consistency", "messages": [{"role": "user", "content": "How much is 2+2?"}]}
        with concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as last:
            # Whatever happens, the model comes to its end.
            last.callback(Writing.is_over.set)
            asked = pool.submit(asked_of, server, body)
            shown = Browser(browser, axe, viewport={"width": 1280, "height": 900})
            page = shown.page
            page.goto(f"{url}/#")
            page.locator("#runs tbody tr a").first.click()
            delays = []
            for number in range(50, 300, 50):
                page.evaluate(APPEARS, f"word{number} ")
                delays.append(time.monotonic() - Writing.wrote[number])
            assert shown.violations() == [], shown.violations()
            assert HOSTILE in page.inner_text("#at-work"), "a hostile text is shown as text"
            if folder:
                page.screenshot(path=f"{folder}/now.png", full_page=True)
            Writing.is_over.set()
            page.wait_for_selector("#answer")
            assert page.locator("#at-work").count() == 0, "a run that has ended has nobody at work"
            assert asked.result()["consensus"]["outcome"] == "agreed"
            assert shown.wrong == [] and page.evaluate("window.ran") is None, shown.wrong
            shown.context.close()
        return delays


def asked_of(server, body):
    """The answer of a server."""
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read())


def cites(browser, axe, binary, folder):
    """An answer with a citation, which leads to its place; as a file that loads nothing."""
    folder = pathlib.Path(folder)
    document = folder / "lease.txt"
    document.write_text("The Moon is a rock.\n" * 400 + f"{HOSTILE} The rent is 830 euros.\n" + "The Moon is a rock.\n" * 400)
    words = ["run", "--quiet", "--roleset", "council_tripartite", "--runs-dir", folder / "runs", "-f", document]
    _, url = served(Forms)
    subprocess.run([binary, *words, "--base-url", url, "--model", "test", "How much is the rent?"], check=True, capture_output=True)
    words = ["show", "--runs-dir", folder / "runs", "--format", "html"]
    (folder / "run.html").write_text(subprocess.run([binary, *words], check=True, capture_output=True, text=True).stdout)
    shown = Browser(browser, axe)
    loaded = []
    shown.page.on("request", lambda request: loaded.append(request.url))
    shown.page.goto((folder / "run.html").as_uri())
    link = shown.page.locator("#citations a").first
    assert link.inner_text() == "“The rent is 830 euros.”", link.inner_text()
    link.click()
    mark = shown.page.locator("mark:target")
    assert mark.inner_text() == "The rent is 830 euros.", mark.inner_text()
    assert HOSTILE in shown.page.inner_text(".source") and shown.page.evaluate("window.ran") is None
    assert all(url.startswith("file:") for url in loaded), loaded
    assert shown.violations() == [] and shown.wrong == [], (shown.violations(), shown.wrong)
    shown.context.close()


def guarded(browser, axe, binary):
    """A server that wants a token: the page asks for it."""
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write(TOKEN + "\n")
        tokens.flush()
        with Server(binary, "--mock", "--answer", "4", "--token-file", tokens.name) as server:
            shown = Browser(browser, axe)
            shown.page.goto(server.url.removesuffix("/v1"))
            shown.page.get_by_label("Token").fill(TOKEN)
            shown.page.get_by_role("button", name="Continue").click()
            shown.page.wait_for_selector("text=There is no run yet")
            shown.page.get_by_label("Token").wait_for(state="detached")
            shown.context.close()


def many(browser, axe, binary, folder):
    """A list of 1,000 runs, and pages at each width."""
    def asked(number, roleset="solver_checker"):
        body = {"model": f"consensus/{roleset}", "messages": [{"role": "user", "content": f"How much is {number} + {4 - number}?"}]}
        return asked_of(server, body)["consensus"]["run"]

    with Server(binary, "--mock", "--answer", "4", "--queue", "2000") as server:
        url = server.url.removesuffix("/v1")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            list(pool.map(asked, range(1000)))
        shown = Browser(browser, axe)
        shown.page.goto(f"{url}/#new")
        took = []
        for _ in range(5):
            shown.page.goto(f"{url}/#new")
            shown.page.wait_for_selector("form")
            began = time.monotonic()
            shown.page.goto(f"{url}/#")
            shown.page.locator("#runs tbody tr").nth(999).wait_for(state="attached")
            took.append(time.monotonic() - began)
        shown.context.close()
    with Server(binary, "--mock", "--answer", "4") as server:
        url = server.url.removesuffix("/v1")
        rolesets = {"pair": "solver_checker", "vote": "vote_number", "panel": "panel_personas", "council": "council_tripartite"}
        runs = {name: f"#run={asked(number, roleset)}" for number, (name, roleset) in enumerate(rolesets.items())}
        places = {"list": "#", "new": "#new", **runs}
        looks(browser, axe, url, places, folder)
        return took


def shown_at_once(browser, axe):
    """The seconds in which the browser shows a table of 1,000 rows, without a server."""
    row = "<tr>" + "".join(f"<td><a href='#{cell}'>cell {cell} of the row</a></td>" for cell in range(8)) + "</tr>"
    took = []
    for _ in range(5):
        shown = Browser(browser, axe)
        began = time.monotonic()
        shown.page.set_content(f"<table id=runs><tbody>{row * 1000}</tbody></table>")
        shown.page.locator("#runs tbody tr").nth(999).wait_for(state="attached")
        took.append(time.monotonic() - began)
        shown.context.close()
    return statistics.median(took)


def main(binary, modules, folder=None):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("there is no Chromium here", file=sys.stderr)
        return UNAVAILABLE
    axe = (pathlib.Path(modules) / "axe-core/axe.min.js").read_text()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        delays = begun_in_the_form(browser, axe, binary)
        print(f"a run was begun in the form and watched to its end; its replies were on the page after {statistics.median(delays):.3f} s "
              f"at the median, {max(delays):.3f} s at most")
        behind = written(browser, axe, binary, folder)
        print(f"the words of a reply were on the page while they came, {statistics.median(behind):.2f} s behind the model at the median")
        cites(browser, axe, binary, scratch)
        print("a citation leads to its place, on a page that loads nothing")
        guarded(browser, axe, binary)
        took = many(browser, axe, binary, folder)
        print(f"1,000 runs were listed within {statistics.median(took):.2f} s at the median; axe finds nothing at {WIDTHS}, light and dark")
        table = shown_at_once(browser, axe)
        print(f"this browser shows such a table in {table:.2f} s")
        assert statistics.median(behind) < EVENT_MAX * table, (behind, table)
        assert statistics.median(delays) < EVENT_MAX * table and statistics.median(took) < LIST_MAX * table, (delays, took, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
