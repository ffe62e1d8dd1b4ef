#!/usr/bin/env python3
"""The runs of `tests/experiments/run.sh code` as rows, and what they say together.

    code_rows.py add ROWS.csv < results.csv     rows of `consensus results --format csv`; those of a run that is there are replaced
    code_rows.py report ROWS.csv                the table, over the tasks that ended both ways

A small model needs hours for thirty tasks on two cores, so they are measured in parts, on one machine or on several, and the rows of
all parts are kept. A row has no text of the task or of the answer. Shares have Wilson's interval; a difference has that of a bootstrap
over tasks, 10,000 times from a fixed seed.
"""

import csv
import math
import pathlib
import random
import sys

NAMES = ["task", "arm", "model", "outcome", "how", "right", "rounds", "calls", "prompt_tokens", "cached_tokens", "completion_tokens"]
ARMS = ["plain", "checked"]
Z = 1.959963984540054


def rows_of(source):
    return [{name: row[name] for name in NAMES} for row in csv.DictReader(source)]


def add(path):
    known = {}
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            known = {(row["task"], row["arm"]): row for row in rows_of(file)}
    known.update({(row["task"], row["arm"]): row for row in rows_of(sys.stdin)})
    number = lambda key: (int(key[0].split("/")[1]), ARMS.index(key[1]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, NAMES, lineterminator="\n")
        out.writeheader()
        out.writerows(known[key] for key in sorted(known, key=number))


def wilson(count, of):
    share = count / of
    middle = (share + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z / (1 + Z * Z / of) * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))
    return f"{count} of {of}, {100 * share:.0f} % ({100 * (middle - half):.0f} to {100 * (middle + half):.0f})"


def interval(differences):
    draw = random.Random(1)
    means = sorted(sum(draw.choices(differences, k=len(differences))) / len(differences) for _ in range(10_000))
    return means[249], means[9749]


def report(path):
    with open(path, encoding="utf-8", newline="") as file:
        runs = {(row["task"], row["arm"]): row for row in rows_of(file)}
    tasks = sorted({task for task, _ in runs if all((task, arm) in runs for arm in ARMS)})
    of = {arm: [runs[task, arm] for task in tasks] for arm in ARMS}
    passed = {arm: [row["right"] == "true" for row in of[arm]] for arm in ARMS}
    print(f"{len(tasks)} tasks\n\n| quantity | plain | checked | difference |\n|---|---|---|---|")

    def line(name, shown, values, unit=1, digits=0):
        differences = [unit * (b - a) for a, b in zip(*(values[arm] for arm in ARMS))]
        low, high = interval(differences)
        mean = sum(differences) / len(differences)
        print(f"| {name} | {shown['plain']} | {shown['checked']} | {mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f}) |")

    line("passes the task's tests, points", {arm: wilson(sum(passed[arm]), len(tasks)) for arm in ARMS}, passed, 100)
    agreed = {arm: [row["outcome"] == "agreed" for row in of[arm]] for arm in ARMS}
    line("agreed, points", {arm: wilson(sum(agreed[arm]), len(tasks)) for arm in ARMS}, agreed, 100)
    both = {arm: sum(a and p for a, p in zip(agreed[arm], passed[arm])) for arm in ARMS}
    print(f"| passes, if agreed | {' | '.join(f'{both[arm]} of {sum(agreed[arm])}' for arm in ARMS)} | |")
    for name, column, digits in [("rounds", "rounds", 1), ("tokens of replies", "completion_tokens", 0), ("tokens of prompts", "prompt_tokens", 0)]:
        values = {arm: [int(row[column]) for row in of[arm]] for arm in ARMS}
        line(name, {arm: f"{sum(values[arm]) / len(tasks):,.{digits}f}" for arm in ARMS}, values, 1, digits)


if __name__ == "__main__":
    {"add": add, "report": report}[sys.argv[1]](pathlib.Path(sys.argv[2]))
