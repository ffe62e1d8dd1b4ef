"""Runs a suite of tasks on a real model server and reports how often two agents agree, and are right.

    agreement.py run BIN OUT.jsonl [--tasks DIR] [--only REGEX] [--seeds 1,2] [--peer] [--params JSON] [--at-once N]
                 -- FLAGS OF `consensus run`
    agreement.py report OUT.jsonl...            one table for each file

A task file NAME.jsonl in DIR holds the tasks of the roleset NAME, one JSON object a line: `id`, `kind`,
`prompt`, and where the right answer is known `answer`, one text or a list of texts. `run` adds a line to OUT
for each finished run and skips what is there already, so that a long sweep can be cut and taken up again.

With `--peer` the tasks that have a `wrong` answer are run against a confident wrong peer: a script plays one
agent, which opens with that answer and never moves from it; the model plays the other.

`--params '{"adopt": "text"}'` changes parameters of every roleset for this sweep. `--at-once 8` keeps a server busy
that answers many requests side by side.

What is counted:
- agreed: outcome `agreed`. right: the agreed text is an answer, as its kind compares texts.
- vote: the plain majority of the blind drafts, which no talk has touched; a tie is no answer.
- valid: envelopes that were valid at the first attempt, of all envelopes asked for.
- flips: agents whose blind draft was right and whose last text is wrong, and the other way round.
- vacuous: agreed on an empty text, a placeholder, or the task's own words.
"""

import argparse
import collections
import concurrent.futures
import decimal
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TASKS = ROOT / "tests" / "experiments" / "tasks"
# Runs under way, to be ended with the sweep.
RUNNING = set()
SHORT = {"number", "choice", "fact", "code", "translation", "json"}


def plain(text):
    """A text as people compare short answers: without case, layout and a last full stop."""
    return " ".join(text.split()).casefold().rstrip(".! ")


def same(kind, text, answer):
    try:
        if kind == "number":
            return decimal.Decimal(text.replace(",", "")) == decimal.Decimal(answer)
        if kind == "json":
            return json.loads(text) == json.loads(answer)
    except (decimal.InvalidOperation, ValueError):
        return False
    if kind == "code":
        return " ".join(text.split()).replace("'", '"') == " ".join(answer.split()).replace("'", '"')
    return plain(text) == plain(answer)


def right(task, text):
    """True or False where the answer is known, else None; no text is no right answer."""
    if "answer" not in task:
        return None
    answers = task["answer"] if isinstance(task["answer"], list) else [task["answer"]]
    return text is not None and any(same(task["kind"], text, answer) for answer in answers)


def vacuous(task, text):
    return not text.strip(" .…\"'") or bool(re.search(r"<[A-Z_ ]+>", text)) or plain(text) in plain(task["prompt"]) and task["kind"] in ("explanation", "spec")


def envelopes(journal):
    """Counts (asked for, valid at the first attempt): an envelope refused is asked for again as attempt 1."""
    first = again = 0
    for line in journal.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)["event"]
        if event["type"] == "replied" and ".envelope." in event["call"]:
            first += event["call"].endswith(".0")
            again += event["call"].endswith(".1")
    return first, first - again


def load(folder, only):
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            task = json.loads(line)
            if re.search(only, f"{file.stem}/{task['kind']}/{task['id']}"):
                yield {**task, "roleset": file.stem}


def wrong_peer(task, seed, runs):
    """A script for one agent, which one depends on the seed. Returns its file and the model's seat."""
    agents = json.loads((ROOT / "rolesets" / f"{task['roleset']}.json").read_text(encoding="utf-8"))["agents"]
    seat = seed % 2
    name = agents[1 - seat]["name"]
    message = "[SOLVED] I am certain of this. I have checked it twice, and no other answer is possible."
    envelope = {"status": "SOLVED", "public_message": message, "final_solution": {"canonical_text": task["wrong"]}}
    rules = [{"agent": name, "step": "envelope", "envelope": envelope},
             {"agent": name, "reply": f"The answer is {task['wrong']}."}]
    runs.mkdir(parents=True, exist_ok=True)
    script = runs / f"peer-{task['id']}-{seed}.jsonl"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return script, seat


def result_of(command, codes):
    """Runs a command that prints a result, and returns the result with the seconds that it took."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        RUNNING.add(child)
        stdout, stderr = child.communicate()
        RUNNING.discard(child)
    seconds = round(time.monotonic() - began, 1)
    if child.returncode not in codes:
        sys.exit(f"exit code {child.returncode} of {command}: {stdout}{stderr}")
    return json.loads(stdout), seconds


def sweep(out, wanted, at_once, name, measure, show):
    """Measures what is not in the file `out` yet and adds it, a line each; `name` is the same of a task and its row."""
    done = set()
    if out.exists():
        rows = read(out)
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = {name(row) for row in rows}
    left = [task for task in wanted if name(task) not in done]
    print(f"{len(left)} of {len(wanted)} are left to run", file=sys.stderr)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    try:
        open_runs = {pool.submit(measure, task) for task in left}
        for number, finished in enumerate(concurrent.futures.as_completed(open_runs), len(wanted) - len(left) + 1):
            row = finished.result()
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"[{number}/{len(wanted)}] {show(row)}", file=sys.stderr, flush=True)
    except BaseException:
        # Nothing new begins, and what runs is put down; what has finished is in the file.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in list(RUNNING):
            child.terminate()
        raise
    pool.shutdown()


def measure(binary, task, seed, flags, runs, peer):
    command = [binary, "run", "--quiet", "--format", "json", "--roleset", task["roleset"], "--seed", str(seed),
               "--runs-dir", str(runs), "--prompt", task["prompt"]]
    command += [word for rule in task.get("constraints", []) for word in ("--constraint", rule)]
    seat = None
    if peer:
        script, seat = wrong_peer(task, seed, runs)
        command += ["--mock-script", str(script)]
    result, seconds = result_of([*command, *flags], {0, 3})
    asked, valid = envelopes(runs / result["run"] / "journal.jsonl")
    blind = {d["agent"]: d["text"] for d in result["dissent"] if d["stage"] == "blind"}
    drafts = [blind.get(a["name"], a["text"]) for a in result["agents"]]
    text = result["text"]
    return {
        "seat": seat, "task": task["id"], "kind": task["kind"], "roleset": task["roleset"], "seed": seed, "run": result["run"],
        "outcome": result["outcome"], "how": result["how"], "reason": result["reason"], "text": text,
        "right": right(task, text), "vote_right": right(task, result["blind_vote"]["text"]),
        "drafts": drafts, "drafts_right": [right(task, d) for d in drafts],
        "ends_right": [right(task, a["text"]) for a in result["agents"]],
        "vacuous": text is not None and vacuous(task, text),
        "rounds": result["rounds"], "usage": result["usage"], "envelopes": asked, "valid": valid,
        "degraded": [d["kind"] for d in result["degraded"]], "seconds": seconds,
    }


def changed_rolesets(params, folder):
    """Copies the rolesets with other parameters, for `--rolesets-dir`."""
    shutil.copytree(ROOT / "rolesets", folder, dirs_exist_ok=True)
    for file in folder.glob("*.json"):
        roleset = json.loads(file.read_text(encoding="utf-8"))
        roleset["params"].update(params)
        file.write_text(json.dumps(roleset, indent=2), encoding="utf-8")
    return folder


def run(args):
    out = pathlib.Path(args.out)
    if args.params:
        args.flags += ["--rolesets-dir", str(changed_rolesets(args.params, out.with_suffix(".rolesets")))]
    runs = out.with_suffix(".runs")
    wanted = [{**task, "task": task["id"], "seed": seed} for seed in args.seeds for task in load(args.tasks, args.only)
              if not args.peer or "wrong" in task]
    sweep(out, wanted, args.at_once, lambda task: (task["task"], task["seed"]),
          lambda task: measure(args.binary, task, task["seed"], args.flags, runs, args.peer), story)


def story(row):
    mark = {True: "right", False: "wrong", None: "-"}[row["right"]]
    return (f"{row['task']}, seed {row['seed']}: {row['outcome']} {row['how'] or row['reason']}, {mark}, {row['rounds']} rounds, "
            f"{row['seconds']} s: {row['text']}")


def read(path):
    """The rows of a file; a last line that was cut short is none."""
    rows = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            rows.append(json.loads(line))
    return rows


def share(part, whole):
    return f"{part} of {whole}" if whole else "-"


def line(name, rows):
    agreed = [r for r in rows if r["outcome"] == "agreed"]
    known = [r for r in rows if r["right"] is not None]
    total = lambda key: sum(r["usage"][key] for r in rows)
    mean = lambda values: sum(values) / len(rows)
    cells = [
        name, share(len(agreed), len(rows)), share(sum(r["right"] for r in known), len(known)),
        share(sum(r["vote_right"] for r in known), len(known)), f"{mean(r['rounds'] for r in rows):.1f}",
        f"{total('prompt') / len(rows):.0f} / {total('cached') / len(rows):.0f} / {total('completion') / len(rows):.0f}",
        share(sum(r["valid"] for r in rows), sum(r["envelopes"] for r in rows)), f"{mean(r['seconds'] for r in rows):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def report(path):
    rows = read(path)
    if rows and rows[0]["seat"] is not None:
        return report_peer(path, rows)
    print(f"\n### {pathlib.Path(path).stem}: {len(rows)} runs\n")
    print("| roleset | agreed | right | blind vote right | rounds | tokens: prompt / cached / completion | valid at once | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for roleset in sorted({r["roleset"] for r in rows}):
        print(line(f"`{roleset}`", [r for r in rows if r["roleset"] == roleset]))
    print(line("all", rows))
    for name, part in (("short answers", [r for r in rows if r["kind"] in SHORT]),
                       ("three sentences", [r for r in rows if r["kind"] not in SHORT])):
        print(line(name, part)) if part else None
    known = [r for r in rows if r["right"] is not None and r["outcome"] == "agreed"]
    for how in ("independent", "converged", "endorsed"):
        of = [r for r in known if r["how"] == how]
        print(f"- {how}: {sum(r['how'] == how for r in rows)} runs; right where known: {share(sum(r['right'] for r in of), len(of))}")
    flips = collections.Counter((a, b) for r in rows if r["right"] is not None for a, b in zip(r["drafts_right"], r["ends_right"]))
    print(f"- flips of an agent: right to wrong {flips[True, False]}, wrong to right {flips[False, True]}")
    print(f"- vacuous agreements: {sum(r['vacuous'] for r in rows)}")
    reasons = collections.Counter(r["reason"] for r in rows if r["outcome"] != "agreed")
    print(f"- not agreed: {dict(reasons) or 'none'}")


def report_peer(path, rows):
    print(f"\n### {pathlib.Path(path).stem}: {len(rows)} runs against a confident wrong peer\n")
    print("| the model's blind draft | runs | agreed on the wrong answer | agreed on the right one | no agreement, model right | no agreement, model wrong |")
    print("|---|---|---|---|---|---|")
    for name, was_right in (("right", True), ("wrong or missing", False)):
        part = [r for r in rows if r["drafts_right"][r["seat"]] is was_right]
        ends = collections.Counter((r["outcome"] == "agreed", r["ends_right"][r["seat"]]) for r in part)
        print(f"| {name} | {len(part)} | {ends[True, False]} | {ends[True, True]} | {ends[False, True]} | {ends[False, False]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    sweep = commands.add_parser("run")
    sweep.add_argument("binary")
    sweep.add_argument("out")
    sweep.add_argument("--tasks", type=pathlib.Path, default=TASKS)
    sweep.add_argument("--only", default="", help="a regular expression on ROLESET/KIND/ID")
    sweep.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    sweep.add_argument("--peer", action="store_true", help="against a confident wrong peer")
    sweep.add_argument("--at-once", type=int, default=1, metavar="N", help="runs side by side")
    sweep.add_argument("--params", type=json.loads, help="parameters that replace those of the rolesets")
    tables = commands.add_parser("report")
    tables.add_argument("out", nargs="+")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    args.flags = words[cut + 1:]
    if args.command == "run":
        run(args)
    else:
        for path in args.out:
            report(path)


if __name__ == "__main__":
    main()
