"""Measures a council on a real model server: how well a veto tells wrong answers from right ones, and what its confidence is worth.

    council.py veto BIN OUT.jsonl [--only REGEX] [--at-once N] -- FLAGS OF `consensus run`
    council.py calibration BIN OUT.jsonl [--only REGEX] [--at-once N] -- FLAGS OF `consensus run`
    council.py report OUT.jsonl...

`veto` gives Ethos answers that are labelled in tests/experiments/council/veto.jsonl: each task once with an answer that keeps
what the task demands, and once with one that breaks it. Pathos and Logos are scripts, Ethos is the model, and there is
one round, so that nothing but Ethos is measured. A veto counts only with words that stand in their source.

`calibration` runs the tasks of tests/experiments/tasks that have a known answer through a whole council, and holds the last
aggregate confidence against whether the answer is right: the Brier score (mean squared error; 0.25 is a coin that says
one half), and ten bins of confidence with the share that was right in each.
"""

import argparse
import json
import pathlib
import re
import sys

import agreement

ROOT = agreement.ROOT
LABELLED = ROOT / "tests" / "experiments" / "council" / "veto.jsonl"
# How the final text of each kind of task is compared; a choice is a letter, as in the roleset of these tasks.
KINDS = {"number": ["--canonical", "number"], "json": ["--canonical", "json"], "choice": ["--choices", "A,B,C,D"],
         "fact": ["--canonical", "text"]}


def script_for(task, runs):
    """A file in which Pathos and Logos are played, sure of what they say."""
    framing = {"framing": "The user wants an answer that keeps every demand of the task.", "search": "", "reasoning": "It says so.",
               "confidence": 0.9}
    response = {"response": task["answer"], "citations": [], "reasoning": "It follows from the task.", "confidence": 0.9}
    rules = []
    for agent, form in (("Pathos", framing), ("Logos", response)):
        rules += [{"agent": agent, "step": "think", "reply": "It is clear."}, {"agent": agent, "step": "envelope", "envelope": form}]
    runs.mkdir(parents=True, exist_ok=True)
    script = runs / f"{task['id']}.script"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return script


def run_council(binary, prompt, flags, runs, words):
    command = [binary, "run", "--quiet", "--format", "json", "--roleset", "council_tripartite", "--seed", "1",
               "--runs-dir", str(runs), "--prompt", prompt, *words, *flags]
    return agreement.result_of(command, {0, 3, 4})


def veto(binary, task, flags, runs):
    result, seconds = run_council(binary, task["prompt"], flags, runs,
                                  ["--max-rounds", "1", "--mock-script", str(script_for(task, runs))])
    verification = result["council"]["rounds"][-1]["verification"] or {"veto": None, "confidence": None}
    return {"task": task["id"], "label": task["label"], "outcome": result["outcome"], "said": verification["veto"],
            "confidence": verification["confidence"], "degraded": [d["kind"] for d in result["degraded"]], "seconds": seconds}


def calibration(binary, task, flags, runs):
    result, seconds = run_council(binary, task["prompt"], flags, runs, KINDS[task["kind"]])
    council = result["council"]
    last = council["rounds"][-1]["confidences"]
    sure = sum(council["weights"][name] * last[name] for name in last)
    return {"task": task["id"], "outcome": result["outcome"], "sure": round(sure, 4), "text": council["content"],
            "right": agreement.right(task, council["content"]), "blind_right": agreement.right(task, result["blind_vote"]["text"]),
            "rounds": result["rounds"], "seconds": seconds}


def report_veto(rows):
    print("| veto | precision | recall |\n|---|---|---|")
    for name, is_veto in (("with words that stand in their source", lambda r: r["outcome"] == "vetoed"),
                          ("said, whatever it rests on", lambda r: r["said"] is True)):
        hits = [r["label"] == "veto" for r in rows if is_veto(r)]
        wanted = [is_veto(r) for r in rows if r["label"] == "veto"]
        print(f"| {name} | {agreement.share(sum(hits), len(hits))} | {agreement.share(sum(wanted), len(wanted))} |")
    for label in ("pass", "veto"):
        sure = [r["confidence"] for r in rows if r["label"] == label and r["confidence"] is not None]
        print(f"- Ethos's mean confidence where the answer is {'right' if label == 'pass' else 'wrong'}: {sum(sure) / max(len(sure), 1):.2f}")


def report_calibration(rows):
    brier = sum((r["sure"] - r["right"]) ** 2 for r in rows) / len(rows)
    rate = sum(r["right"] for r in rows) / len(rows)
    print(f"{len(rows)} answers, {sum(r['right'] for r in rows)} right ({sum(bool(r['blind_right']) for r in rows)} before the council met); "
          f"Brier score {brier:.3f} (always saying {rate:.2f}: {rate * (1 - rate):.3f})\n")
    print("| confidence | answers | mean confidence | right |\n|---|---|---|---|")
    for low in range(10):
        part = [r for r in rows if min(int(r["sure"] * 10), 9) == low]
        if part:
            print(f"| {low / 10:.1f} to {(low + 1) / 10:.1f} | {len(part)} | {sum(r['sure'] for r in part) / len(part):.2f} | "
                  f"{sum(r['right'] for r in part) / len(part):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("veto", "calibration"):
        sweep = commands.add_parser(name)
        sweep.add_argument("binary")
        sweep.add_argument("out", type=pathlib.Path)
        sweep.add_argument("--only", default="", help="a regular expression on the task's id")
        sweep.add_argument("--at-once", type=int, default=1, metavar="N", help="runs side by side")
    tables = commands.add_parser("report")
    tables.add_argument("out", nargs="+", type=pathlib.Path)
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    flags = words[cut + 1:]
    if args.command == "report":
        for path in args.out:
            rows = agreement.read(path)
            print(f"\n### {path.stem}: {len(rows)} runs\n")
            (report_veto if "label" in rows[0] else report_calibration)(rows)
        return
    if args.command == "veto":
        tasks = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    else:
        tasks = [task for task in agreement.load(agreement.TASKS, "") if "answer" in task and task["kind"] in KINDS]
    tasks = [{**task, "task": task["id"]} for task in tasks if re.search(args.only, task["id"])]
    measure = {"veto": veto, "calibration": calibration}[args.command]
    runs = args.out.with_suffix(".runs")
    agreement.sweep(args.out, tasks, args.at_once, lambda task: task["task"],
                    lambda task: measure(args.binary, task, flags, runs), json.dumps)


if __name__ == "__main__":
    main()
