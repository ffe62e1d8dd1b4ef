#!/usr/bin/env python3
"""A batch on a real model server, beside a bare loader that sends the same requests in as many conversations.

    loader.py BIN URL MODEL SLOTS N     N questions by a vote of four samples each, SLOTS calls at once

A first batch runs through a recorder, which passes each request on and keeps its body. Then the loader and the batch take turns, three
times each, and the best of each counts: tokens of replies a second. The loader sends the bodies in their order, each as soon as one
before it has its reply, and reads nothing but the usage.
"""

import http.server
import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TURNS = 3


def ask(url, body):
    """One reply, as JSON."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return answer.read()


def recorder(url, bodies):
    """A server that passes on what it gets, and keeps the bodies of chats."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            if self.path.endswith("/chat/completions"):
                bodies.append(body)
            request = urllib.request.Request(url.removesuffix("/v1") + self.path, body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=600) as answer:
                    status, said, kind = answer.status, answer.read(), answer.headers["Content-Type"]
            except urllib.error.HTTPError as error:
                status, said, kind = error.code, error.read(), error.headers["Content-Type"]
            self.send_response(status)
            self.send_header("Content-Type", kind or "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = pass_on

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def batch(binary, url, model, slots, tasks):
    """The tokens of replies a second of a batch, and the share of its prompts that the server had in its cache."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = [binary, "batch", str(tasks), "--output", str(out), "--roleset", "vote_number", "--samples-max", "4", "--stop", "none",
                   "--base-url", url, "--model", model, "--calls-at-once", str(slots), "--runs-at-once", str(slots), "--no-stream", "--quiet"]
        began = time.monotonic()
        subprocess.run(command, check=True)
        took = time.monotonic() - began
        usages = [json.loads(line)["usage"] for line in (out / "results-0.jsonl").read_text(encoding="utf-8").splitlines()]
    total = {part: sum(usage[part] or 0 for usage in usages) for part in ("prompt", "cached", "completion")}
    return total["completion"] / took, total["cached"] / total["prompt"]


def load(url, bodies, slots):
    """The same two of the bare loader."""
    waiting, usages = queue.SimpleQueue(), []
    for body in bodies:
        waiting.put(body)

    def work():
        while True:
            try:
                body = waiting.get_nowait()
            except queue.Empty:
                return
            usages.append(json.loads(ask(url + "/chat/completions", body))["usage"])

    began = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    cached = sum((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for usage in usages)
    return sum(usage["completion_tokens"] for usage in usages) / took, cached / sum(usage["prompt_tokens"] for usage in usages)


def main(binary, url, model, slots, count):
    slots, bodies = int(slots), []
    with tempfile.TemporaryDirectory() as folder:
        tasks = pathlib.Path(folder) / "tasks.jsonl"
        questions = (f"How much is {n + 13} + {n + 5}?" for n in range(int(count)))
        tasks.write_text("".join(json.dumps({"id": f"t{n}", "prompt": question}) + "\n" for n, question in enumerate(questions)), encoding="utf-8")
        batch(binary, recorder(url, bodies), model, slots, tasks)
        ours, bare = [], []
        for _ in range(TURNS):
            bare.append(load(url, bodies, slots))
            ours.append(batch(binary, url, model, slots, tasks))
            for name, (speed, cached) in (("loader", bare[-1]), ("batch", ours[-1])):
                print(f"{name}: {speed:.1f} tokens/s, {100 * cached:.0f} % of its prompts were in the server's cache", flush=True)
    share = max(ours)[0] / max(bare)[0]
    print(f"{len(bodies)} requests, {slots} at once: the batch has {100 * share:.0f} % of the loader's tokens a second")


if __name__ == "__main__":
    main(*sys.argv[1:])
