#!/usr/bin/env python3
"""Compares the ways that count blind answers first with plain majorities at equal tokens, on numbers, choices and short texts.

    differing.py run BIN OUT NUMBERS.jsonl CHOICES.jsonl [--items 60] [--samples 12] [-- FLAGS OF `consensus eval`]
    differing.py report OUT            one table of differences by set, and one of all sets together

NUMBERS.jsonl and CHOICES.jsonl are made by `votes.py tasks`; of each, the first 60 tasks are taken. The short texts are the 60 questions of
tests/experiments/short.jsonl. For each set, `consensus eval` draws a bank of 12 samples a task, and plays a vote from it. A pair, a panel
and a council with `talk: differing` have prompts of their own, so their replies are drawn as well. OUT has a folder for each set.

The same command continues what was interrupted, and calls no model for what is there.

Every way answers with its leader where its samples do not settle, as a majority does. A run without any answer counts as wrong. The
difference of a way and the majority at its tokens, its standard error and its interval are those of `consensus eval`. Over all sets, the
mean weighs each set by its tasks. Its interval takes the sets as independent, and the mean as normal.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import votes

# The pair of each set. The other ways have one roleset for all sets.
PAIRS = {"numbers": "solver_checker", "choices": "mcq_reasoner_auditor", "short": "generalist_critic"}
WAYS = ["vote", "pair", "panel", "council"]


def arms(name):
    leader = "on_disagreement=leader"
    return ["vote", f"pair:{PAIRS[name]},talk=differing,{leader}", f"panel:panel_agree,{leader}", f"council:council_agree,{leader}"]


def run(given):
    out = pathlib.Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    short = out / "short.jsonl"
    short.write_text("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in votes.short()), encoding="utf-8")
    for name, tasks in [("numbers", given.numbers), ("choices", given.choices), ("short", short)]:
        command = [given.bin, "eval", str(tasks), "--out", str(out / name), "--limit", str(given.items), "--samples", str(given.samples)]
        for arm in arms(name):
            command += ["--arm", arm]
        code = subprocess.run(command + given.flags, check=False).returncode
        if code != 0:
            sys.exit(f"differing.py: the evaluation of {name} ended with exit code {code}; the same command continues it")


def row(names, right, of, tokens, difference, low, high, note=""):
    least, most = (max(0.0, end) for end in votes.wilson(right, of))
    print(f"| {' | '.join(names)} | {100 * right / of:.1f} ({100 * least:.1f} to {100 * most:.1f}) | {tokens:,.0f} "
          f"| {100 * difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){note} |")


def report(given):
    found = {}
    for name in PAIRS:
        path = pathlib.Path(given.out) / name / "summary.json"
        if not path.is_file():
            sys.exit(f"differing.py: there is no {path}; `differing.py run` makes it")
        summary = json.loads(path.read_text(encoding="utf-8"))
        if summary["items"] < summary["planned"]:
            sys.exit(f"differing.py: {name} has {summary['items']} of {summary['planned']} tasks; `differing.py run` continues it")
        for way, arm in zip(WAYS, arms(name)):
            found[name, way] = next(one for one in summary["arms"] if one["name"] == arm)
    heads = "right, % | tokens a task | against the majority at these tokens, points |"
    print(f"| set | way | {heads}\n|---|---|---|---|---|")
    for (name, way), arm in found.items():
        note = ", dearer than all samples" if arm["against"]["is_dearer"] else ""
        right, against = arm["right"], arm["against"]
        ends = against["interval"]
        row([name, way], right["count"], right["of"], arm["cost"]["tokens"], against["difference"], ends["low"], ends["high"], note)
    print(f"\n| all sets | {heads}\n|---|---|---|---|")
    for way in WAYS:
        own = [found[name, way] for name in PAIRS]
        of = sum(arm["right"]["of"] for arm in own)
        weights = [arm["right"]["of"] / of for arm in own]
        difference = sum(weight * arm["against"]["difference"] for weight, arm in zip(weights, own))
        error = math.sqrt(sum((weight * arm["against"]["error"]) ** 2 for weight, arm in zip(weights, own)))
        tokens = sum(weight * arm["cost"]["tokens"] for weight, arm in zip(weights, own))
        right = sum(arm["right"]["count"] for arm in own)
        row([way], right, of, tokens, difference, difference - 1.959964 * error, difference + 1.959964 * error)


def main():
    words, flags = sys.argv[1:], []
    if "--" in words:
        cut = words.index("--")
        words, flags = words[:cut], words[cut + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True)
    of_run = what.add_parser("run")
    for place in ["bin", "out", "numbers", "choices"]:
        of_run.add_argument(place)
    of_run.add_argument("--items", type=int, default=60)
    of_run.add_argument("--samples", type=int, default=12)
    of_run.set_defaults(work=run)
    of_report = what.add_parser("report")
    of_report.add_argument("out")
    of_report.set_defaults(work=report)
    given = parser.parse_args(words)
    given.flags = flags
    given.work(given)


if __name__ == "__main__":
    main()
