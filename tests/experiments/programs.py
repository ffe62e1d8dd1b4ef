#!/usr/bin/env python3
"""Programs of a real model: which share of those that CPython runs the embedded interpreter runs too, with the same output.

    programs.py draw BIN URL QUESTIONS.jsonl OUT.jsonl [--count N] [--at-once N]     draws programs; a second call draws the rest
    programs.py report BIN OUT.jsonl                                                 runs each by both interpreters

QUESTIONS.jsonl has a `question` and an `answer` in each line, as GSM8K has. The prompt is the one that `consensus run` sends to
the second agent of `solver_programmer`: it is taken from a run against a server in this process.
"""

import argparse
import concurrent.futures
import http.server
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PLACE = "THE QUESTION STANDS HERE"


def prompt_of(binary):
    """Returns the messages of a request for a program, with PLACE where the question stands."""
    caught = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            caught.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(400)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "run", "-q", "--roleset", "solver_programmer", "--model", "m", "--no-model-check", "--no-stream",
                        "--runs-dir", folder, "--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--prompt", PLACE],
                       capture_output=True, check=False)
    server.shutdown()
    asked = [request for request in caught if "solution()" in request["messages"][-1]["content"]]
    return asked[0]


def ask(url, template, question, seed):
    text = json.dumps(template).replace(json.dumps(PLACE)[1:-1], json.dumps(question)[1:-1])
    request = {**json.loads(text), "seed": seed, "stream": False}
    body = json.dumps(request).encode()
    made = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(made, timeout=1800) as answer:
        said = json.load(answer)
    return said["choices"][0]["message"]["content"], said["usage"]["completion_tokens"]


def draw(args):
    out = pathlib.Path(args.out)
    done = {json.loads(line)["id"] for line in out.read_text().splitlines()} if out.exists() else set()
    questions = [json.loads(line) for line in pathlib.Path(args.questions).read_text().splitlines()]
    template = prompt_of(args.binary)
    wanted = [(f"{at % len(questions)}-{at // len(questions)}", questions[at % len(questions)]) for at in range(args.count)]
    lock = threading.Lock()

    def one(item):
        number, question = item
        reply, tokens = ask(args.url, template, question["question"], hash_of(number))
        answer = re.sub(r".*####\s*", "", question["answer"], flags=re.S).strip().replace(",", "")
        with lock, out.open("a") as file:
            file.write(json.dumps({"id": number, "reply": reply, "tokens": tokens, "answer": answer}) + "\n")

    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(one, [item for item in wanted if item[0] not in done]))


def hash_of(number):
    return int.from_bytes(number.encode(), "big") % 2**31


def source_of(reply):
    """Returns the program as `consensus` runs it, or nothing. This follows crates/protocol/src/text/program.rs, without its refusals."""
    blocks = [block for block in re.findall(r"```[^\n]*\n(.*?)(?:```|\Z)", reply, re.S) if block.strip()]
    if len(blocks) > 1:
        return None
    code = (blocks[0] if blocks else reply).rstrip()
    outside = re.sub(r"^def .*?(?=^\S|\Z)", "", code, flags=re.S | re.M)
    if "print(" in outside:
        return code + "\n"
    return f"{code}\nprint(solution())\n" if re.search(r"^def solution\(", code, re.M) else None


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def value(text):
    """Returns what counts of an output: its last line, and of a number with a fraction 12 significant digits."""
    line = last_line(text)
    try:
        return f"{float(line):.12g}" if re.search(r"[.e]", line) else line
    except ValueError:
        return line


def policy(read, interprets):
    """Returns the policy of a wall, because nothing that a model wrote runs without one."""
    return json.dumps({"read": read, "write": [], "scratch": None, "net": False, "interprets": interprets,
                       "limits": {"cpu_s": 10, "memory": 512 << 20, "file": 0, "processes": 64}})


def run_both(binary, source):
    python = [sys.executable, "-I", "-c", source]
    wall = [binary, "wall", "--policy", policy([sys.prefix, sys.base_prefix], False), "--", *python]
    try:
        own = subprocess.run(wall, capture_output=True, text=True, timeout=10, check=False, cwd="/")
        cpython = (own.returncode == 0, own.stdout)
    except subprocess.TimeoutExpired:
        cpython = (False, "")
    began = time.perf_counter()
    command = [binary, "interpret", "--policy", policy([], True)]
    ours = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    embedded = (ours.stderr.strip() == '{"exit":0}', ours.stdout)
    return cpython, embedded, took


def report(args):
    lines = [json.loads(line) for line in pathlib.Path(args.out).read_text().splitlines()]
    counts = {"drawn": len(lines), "programs": 0, "cpython": 0, "both": 0, "same": 0, "right": 0}
    times, unlike = [], []
    for line in lines:
        source = source_of(line["reply"])
        if source is None:
            continue
        counts["programs"] += 1
        (good, said), (ran, printed), took = run_both(args.binary, source)
        times.append(took)
        counts["cpython"] += good
        counts["both"] += good and ran
        counts["same"] += good and ran and value(said) == value(printed)
        try:
            counts["right"] += good and abs(float(last_line(said)) - float(line["answer"])) < 1e-6
        except ValueError:
            pass
        if good and not (ran and value(said) == value(printed)):
            unlike.append(f"{line['id']}: CPython {last_line(said)!r}, embedded {last_line(printed)!r}")
    print(json.dumps(counts))
    print(f"tokens a program: {statistics.mean(line['tokens'] for line in lines):.0f}")
    share = counts["same"] / max(counts["cpython"], 1)
    print(f"of those that CPython runs, the embedded interpreter runs {share:.1%} with the same output")
    print(f"a program, ms: median {1000 * statistics.median(times):.1f}, highest {1000 * max(times):.1f}")
    print("\n".join(unlike))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = parser.add_subparsers(required=True)
    drawing = words.add_parser("draw")
    for name in ["binary", "url", "questions", "out"]:
        drawing.add_argument(name)
    drawing.add_argument("--count", type=int, default=200)
    drawing.add_argument("--at-once", type=int, default=2)
    drawing.set_defaults(does=draw)
    reporting = words.add_parser("report")
    for name in ["binary", "out"]:
        reporting.add_argument(name)
    reporting.set_defaults(does=report)
    args = parser.parse_args()
    args.does(args)


if __name__ == "__main__":
    main()
