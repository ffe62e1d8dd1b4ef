#!/usr/bin/env python3
"""Whether code agrees by what it does: `vote_code` against one sample, on HumanEval+ and MBPP+.

    behaviour.py tasks SET.jsonl.gz COUNT          COUNT tasks, evenly spread, as lines for `consensus batch`
    behaviour.py interpreters BIN SET.jsonl.gz...  the share of the sets' own solutions that the interpreter in `consensus` runs
    behaviour.py versions BIN PYTHON PYTHON...     programs whose results differ between versions of CPython, each the folder of a `python3`
    behaviour.py report RUNS SET.jsonl.gz...       grades every program of the runs in the folder RUNS, and compares

The files are EvalPlus's own (`HumanEvalPlus-Mini.jsonl.gz`, `MbppPlus.jsonl.gz`). A program is right if it gives what the set's own
solution gives on all inputs of the set. The programs of one run are also the samples of one model, so their mean is what one sample
alone would get, and nothing else is asked of the model. A run that agrees on nothing is wrong. Differences have the interval of a
bootstrap over tasks, 10,000 times from a fixed seed.

A program runs in a process of its own, with limits of time and memory, and with the rights of the user: run this in a container.
"""

import ast
import gzip
import json
import math
import multiprocessing
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

SECONDS = 20
MEMORY = 2 << 30


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def shaped(value, like):
    """Gives a value the tuples and sets that it lost in JSON. `like` is the value in its place in the task's own assertion."""
    if isinstance(like, (list, tuple, set)) and isinstance(value, list):
        parts = list(like)
        items = [shaped(item, parts[min(at, len(parts) - 1)]) if parts else item for at, item in enumerate(value)]
        return type(like)(items)
    return value


def assertion(row):
    """The arguments in the task's first assertion, and whether it compares sets."""
    for line in row["prompt"].splitlines():
        if not line.strip().startswith("assert "):
            continue
        tree = ast.parse(line.strip())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == row["entry_point"]:
                try:
                    return [ast.literal_eval(value) for value in node.args], "set(" in line.split(row["entry_point"])[0]
                except ValueError:
                    return None, False
    return None, False


def same(one, other, atol):
    if isinstance(one, float) or isinstance(other, float):
        try:
            return math.isclose(one, other, rel_tol=1e-7, abs_tol=max(atol, 1e-6)) or one == other
        except TypeError:
            return False
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other, [atol] * len(one)))
    return bool(one == other)


def run(row, program, queue):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    sys.stdout = sys.stderr = open("/dev/null", "w")
    like, sets = assertion(row)
    inputs = row["base_input"] + row["plus_input"] if isinstance(row["plus_input"], list) else row["base_input"]
    copy = lambda args: [shaped(value, like[at]) if like and at < len(like) else value for at, value in enumerate(json.loads(json.dumps(args)))]
    spaces = []
    for source in (row["prompt"] + row["canonical_solution"] if "HumanEval" in row["task_id"] else row["canonical_solution"], program):
        space = {"__name__": "solution"}
        if source is program and "HumanEval" in row["task_id"]:
            exec(row["prompt"] + "\n    pass\n", space)
        exec(source, space)
        spaces.append(space[row["entry_point"]])
    for args in inputs:
        expected = spaces[0](*copy(args))
        found = spaces[1](*copy(args))
        if sets:
            expected, found = set(expected), set(found)
        if not same(found, expected, row["atol"]):
            return
    queue.put(True)


def is_right(row, program):
    queue = multiprocessing.SimpleQueue()
    process = multiprocessing.Process(target=guarded, args=(row, program, queue))
    process.start()
    process.join(SECONDS + 5)
    if process.is_alive():
        process.kill()
        process.join()
    return not queue.empty()


def guarded(row, program, queue):
    try:
        run(row, program, queue)
    except BaseException:
        pass


def tasks(path, count):
    rows = load(path)
    for at in range(count):
        row = rows[at * len(rows) // count]
        print(json.dumps({"id": row["task_id"].replace("/", "-"), "prompt": row["prompt"].strip()}))


def interpreters(binary, paths):
    for path in paths:
        rows, same, lacking = load(path), 0, 0
        for row in rows:
            source = row["prompt"] + row["canonical_solution"] if "HumanEval" in row["task_id"] else row["canonical_solution"]
            inputs = (row["base_input"] or row["plus_input"])[:3]
            source += "".join(f"\nprint(repr({row['entry_point']}(*{args!r})))" for args in inputs) + "\n"
            python = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
            own = subprocess.run([binary, "interpret"], input=source, capture_output=True, text=True, timeout=60)
            lacking += python.returncode != 0
            same += python.returncode == 0 and python.stdout == own.stdout
        print(f"{pathlib.Path(path).name}: {same} of {len(rows) - lacking} that CPython runs print the same")


def versions(binary, pythons):
    """Tries each program of the test of unlike programs once by each version. The sandbox may read the folder above each `python3`."""
    source = pathlib.Path(__file__).resolve().parent.parent / "it" / "run" / "unlike_programs.jsonl"
    programs = sorted({pair[side] for pair in map(json.loads, source.open(encoding="utf-8")) for side in ("one", "other")})
    seen = []
    for python in pythons:
        marks = []
        for program in programs:
            with tempfile.TemporaryDirectory() as folder:
                rules = [{"step": "think", "reply": "f(1)\nf(2)\nf(3)"}, {"reply": f"```python\n{program}\n```"}]
                pathlib.Path(folder, "script.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
                words = [binary, "run", "--prompt", "Write a function `f(x)`.", "--mock-script", "script.jsonl", "--roleset", "vote_code",
                         "--stop", "none", "--samples-max", "1", "--interpreter", "python3", "--format", "json",
                         "--sandbox-read", str(pathlib.Path(python).parent)]
                path = f"{python}:{os.environ['PATH']}"
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path})
                marks.append(json.loads(done.stdout)["vote"]["samples"][0].get("behaviour"))
        seen.append(marks)
        print(f"{python}: {sum(mark is not None for mark in marks)} of {len(programs)} programs have a fingerprint")
    for at, program in enumerate(programs):
        if len({marks[at] for marks in seen}) > 1:
            print(f"differs: {program!r}")


def interval(differences):
    draw = random.Random(1)
    means = sorted(sum(draw.choices(differences, k=len(differences))) / len(differences) for _ in range(10_000))
    return means[249], means[9749]


def programs(folder):
    """The programs of each run's samples, in their order, with their tokens; None for a reply without one program."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("journal-*.jsonl")):
        for line in path.open(encoding="utf-8"):
            entry = json.loads(line)
            event = entry["event"]
            if event["type"] == "replied" and ".sample." in event["call"]:
                blocks = re.findall(r"```[a-z]*\n(.*?)(?:```|\Z)", event["reply"]["text"], re.S) or [event["reply"]["text"]]
                draft = int(event["call"].split(".")[2][1:])
                found.setdefault(entry["run"], {})[draft] = (blocks, event["usage"]["completion"])
    return {run: [drafts[at] for at in sorted(drafts)] for run, drafts in found.items()}


def report(folder, paths):
    rows = {row["task_id"].replace("/", "-"): row for path in paths for row in load(path)}
    written = programs(folder)
    kinds, classes = {}, {}
    for path in sorted(pathlib.Path(folder).glob("results-*.jsonl")):
        for line in path.open(encoding="utf-8"):
            result = json.loads(line)
            row = rows[result["task"]]
            graded = [any(is_right(row, block) for block in blocks) for blocks, _ in written[result["run"]]]
            answers = result["vote"]["answers"]
            lead = bool(answers) and is_right(row, answers[0]["text"])
            agreed = result["outcome"] == "agreed"
            if answers:
                classes.setdefault(answers[0]["votes"], []).append(lead)
            tokens = [tokens for _, tokens in written[result["run"]]]
            one = {
                "one": sum(graded) / len(graded), "agreed": agreed, "right": agreed and lead, "lead": lead, "some": any(graded),
                "sample": sum(tokens) / len(tokens), "tokens": result["usage"]["completion"],
            }
            for kind in (row["task_id"].split("/")[0], "both"):
                kinds.setdefault(kind, []).append(one)
    print("| set | tasks | one sample | vote_code answers | right of all | difference in points | by its leader | some sample right | tokens of one sample | tokens of a run |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, ones in kinds.items():
        mean = lambda key: sum(one[key] for one in ones) / len(ones)
        low, high = interval([one["right"] - one["one"] for one in ones])
        llow, lhigh = interval([one["lead"] - one["one"] for one in ones])
        print(f"| {name} | {len(ones)} | {100 * mean('one'):.1f} % | {100 * mean('agreed'):.0f} % | {100 * mean('right'):.1f} % | "
              f"{100 * (mean('right') - mean('one')):+.1f} ({100 * low:+.1f} to {100 * high:+.1f}) | {100 * mean('lead'):.1f} %, "
              f"{100 * (mean('lead') - mean('one')):+.1f} ({100 * llow:+.1f} to {100 * lhigh:+.1f}) | {100 * mean('some'):.1f} % | "
              f"{mean('sample'):.0f} | {mean('tokens'):.0f} |")
    print("\n| votes of the leading class | runs | right |\n|---|---|---|")
    for votes, rights in sorted(classes.items()):
        print(f"| {votes} | {len(rights)} | {sum(rights)} |")


def main():
    if sys.argv[1:2] == ["tasks"] and len(sys.argv) == 4:
        tasks(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["interpreters"] and len(sys.argv) > 3:
        interpreters(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["versions"] and len(sys.argv) > 4:
        versions(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["report"] and len(sys.argv) > 3:
        report(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
