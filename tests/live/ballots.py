#!/usr/bin/env python3
"""Prints how well the judges of panels tell answers apart, from the evaluation of a panel.

    ballots.py DIR        DIR is the folder that `consensus eval` wrote

A task's right answer is that of tasks.jsonl, and an answer is right if it is the same word or number. The points of a label are the mean
difference, within each ballot that tells answers apart, between the answers under the label of the right choice and the others; those of the
right answer are found in the same way.
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


def gap(marks):
    """The mean of the marked deviations less that of the others."""
    with_it, without = ([value for is_it, value in marks if is_it == wanted] for wanted in (True, False))
    return statistics.mean(with_it) - statistics.mean(without) if with_it and without else 0.0


def main():
    folder = pathlib.Path(sys.argv[1])
    answers = {str(row["id"]): known(str(row["answer"])) for row in rows(folder / "tasks.jsonl")}
    panels = [row for row in rows(folder / "arms/results-0.jsonl") if row.get("panel")]
    ballots, flat, reached, iterations = 0, 0, 0, 0
    labels, rights, right_in, answers_in = [], [], collections.Counter(), collections.Counter()
    for row in panels:
        panel, key = row["panel"], answers[row["task"]]
        iterations += panel["iterations"]
        given = {(of["member"], of["iteration"]): known(of["content"]) for of in panel["responses"]}
        for (_, iteration), text in given.items():
            if panel["iterations"] > 1:
                answers_in[iteration] += 1
                right_in[iteration] += text == key
        by_judge, by_answer = collections.defaultdict(list), collections.defaultdict(list)
        for of in panel["evaluations"]:
            by_judge[of["evaluator"], of["iteration"]].append(of)
            by_answer[of["target"], of["iteration"]].append(of["totalScore"])
        wanted = 40 * panel["consensusThreshold"]
        reached += len({iteration for (_, iteration), scores in by_answer.items() if statistics.mean(scores) >= wanted})
        for of_judge in by_judge.values():
            scores = [of["totalScore"] for of in of_judge]
            ballots += 1
            flat += len(set(scores)) == 1
            if len(set(scores)) > 1:
                deviations = [(of, of["totalScore"] - statistics.mean(scores)) for of in of_judge]
                labels += [(known(of["label"]) == key, value) for of, value in deviations]
                rights += [(given[of["target"], of["iteration"]] == key, value) for of, value in deviations]
    print(f"{len(panels)} panels, {iterations} iterations; the threshold was reached in {reached}")
    print(f"{flat} of {ballots} ballots give the same total to every answer")
    print(f"in the others, the label of the right choice is worth {gap(labels):+.1f} points, and a right answer {gap(rights):+.1f}")
    shares = ", ".join(f"{right_in[at]} of {answers_in[at]}" for at in sorted(answers_in))
    print(f"right answers by iteration, where there were several: {shares}")


main()
