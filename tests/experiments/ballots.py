#!/usr/bin/env python3
"""Prints how well the judges of panels tell answers apart, and whether members answer better again, from the evaluation of a panel.

    ballots.py DIR        DIR is the folder that `consensus eval` wrote

A task's right answer is that of tasks.jsonl, and an answer is right if it is the same text or number. Only ballots on different answers are
counted. A difference is that of the means within a ballot, averaged over those ballots that tell answers apart and have answers on both
sides. Later answers are compared on the tasks whose panel answered to the end.
"""

import collections
import decimal
import json
import pathlib
import statistics
import sys


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def known(text):
    """A text as it is compared: a number by its value."""
    try:
        return decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        return text.strip()


def gap(ballot, is_on_it):
    """How many points more the scores on one side have, or nothing if all are on one side."""
    sides = collections.defaultdict(list)
    for of in ballot:
        sides[is_on_it(of)].append(of["totalScore"])
    return statistics.mean(sides[True]) - statistics.mean(sides[False]) if len(sides) == 2 else None


def told(gaps):
    gaps = [gap for gap in gaps if gap is not None]
    return f"{statistics.mean(gaps):+.1f} points ({len(gaps)} ballots)" if gaps else "unknown, in no ballot"


def main():
    folder = pathlib.Path(sys.argv[1])
    answers = {str(row["id"]): known(str(row["answer"])) for row in rows(folder / "tasks.jsonl")}
    panels = [row for row in rows(folder / "arms/results-0.jsonl") if row.get("panel")]
    last = max(row["panel"]["iterations"] for row in panels)
    ballots, reached, iterations = [], 0, 0
    of_labels, of_rights, right_in, answers_in = [], [], collections.Counter(), collections.Counter()
    for row in panels:
        panel, key = row["panel"], answers[row["task"]]
        iterations += panel["iterations"]
        given = {(of["member"], of["iteration"]): known(of["content"]) for of in panel["responses"]}
        for (_, iteration), text in given.items():
            if panel["iterations"] == last:
                answers_in[iteration] += 1
                right_in[iteration] += text == key
        by_judge, by_answer = collections.defaultdict(list), collections.defaultdict(list)
        for of in panel["evaluations"]:
            by_judge[of["evaluator"], of["iteration"]].append(of)
            by_answer[of["target"], of["iteration"]].append(of["totalScore"])
        wanted = 40 * panel["consensusThreshold"]
        reached += len({iteration for (_, iteration), scores in by_answer.items() if statistics.mean(scores) >= wanted})
        for ballot in by_judge.values():
            if len({given[of["target"], of["iteration"]] for of in ballot}) == 1:
                continue
            totals = {of["totalScore"] for of in ballot}
            ballots.append(totals)
            if len(totals) > 1:
                of_labels.append(gap(ballot, lambda of: known(of["label"]) == key))
                of_rights.append(gap(ballot, lambda of: given[of["target"], of["iteration"]] == key))
    flat = [next(iter(totals)) for totals in ballots if len(totals) == 1]
    print(f"{len(panels)} panels, {iterations} iterations; the threshold was reached in {reached}")
    print(f"{len(flat)} of {len(ballots)} ballots on different answers give all the same total: {flat.count(4)} give 4, and {flat.count(40)} give 40")
    print(f"in the others, the label of the right choice is worth {told(of_labels)}, and a right answer {told(of_rights)}")
    shares = ", ".join(f"{right_in[at]} of {answers_in[at]}" for at in sorted(answers_in))
    print(f"right answers by iteration, on the tasks with {last} of them: {shares}")


main()
