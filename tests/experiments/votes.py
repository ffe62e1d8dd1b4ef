#!/usr/bin/env python3
"""Votes of a real model: what each stop is worth at equal tokens, played over one bank of samples.

    votes.py tasks KIND FILE N [--every K] >TASKS.jsonl    tasks from a public set: gsm8k, svamp or mmlu-redux
    votes.py suite KIND >TASKS.jsonl                       those of tests/experiments/tasks with an answer: number, choice, json or text
    votes.py short >TASKS.jsonl                            the 60 short questions of tests/experiments/short.jsonl
    votes.py arms BIN BANK TASKS.jsonl OUT                 plays the arms from the bank; no model is called
    votes.py report BANK TASKS.jsonl OUT                   prints accuracy, tokens, and paired differences at equal tokens
    votes.py keep BANK TASKS.jsonl >KEPT.jsonl             the samples of each task, without its question: answer, whether it is right,
                                                           and tokens
    votes.py curve KEPT.jsonl [--prompts W,P] [--tasks TASKS.jsonl]
                                                           prints majorities and stops over such samples, averaged over 100 orders of
                                                           them, and how often two samples agree; with so many tokens
                                                           of prompt for each sample in words and each program, and
                                                           for these tasks alone
    votes.py budget KEPT.jsonl [--prompts W,P] [--majority K]
                                                           prints what one budget of tokens for all tasks is worth, by several rules
                                                           for the next sample: as many tokens as the majority of K (5) takes

The majority of k samples takes the first k in words, and a tie is worth the share of its answers that are right. An arm is compared
with the majority that takes as many tokens: between two numbers of samples, their results are mixed in proportion. Intervals are
Wilson's for shares, and those of a bootstrap over tasks (10,000 draws, seed 1) for differences. `curve` works the stops out on its
own, by the formulae in docs/src/concepts/protocols/vote.md.

With one budget, each task draws two samples. In a round, each task whose leader is less certain than the threshold draws one more. A
threshold is used until no task is below it, and then the next one. `greedy` has rounds of one sample, for the least certain task. A task
is settled at 0.90, or after 12 samples. A round costs the mean of all samples before it for each of its tasks. If it does not fit into
the budget, the least certain tasks draw as long as it lasts, and that is the end. A budget is over by what its rounds cost beyond that.
"""

import argparse
import itertools
import json
import math
import pathlib
import random
import re
import subprocess
import sys

MODES = ["--modes", "words,program"]
ARMS = {
    "words": {
        "words-fast": [],
        "words-sure": ["--stop", "sure", "--samples-max", "{words}"],
    },
    "mixed": {
        "mixed-majority-4": [*MODES, "--stop", "none", "--samples-max", "4"],
        "mixed-majority-8": [*MODES, "--stop", "none", "--samples-max", "8"],
        "fast": MODES,
        "fast-without-B": [*MODES, "--threshold", "0.9", "--stop", "sure", "--samples-max", "8"],
        "sure": [*MODES, "--stop", "sure"],
        "sure-0.98": [*MODES, "--stop", "sure", "--threshold", "0.98"],
    },
}

SUITE = pathlib.Path(__file__).resolve().parent / "tasks"
# How answers of a kind are compared. The suite's other kinds, such as facts and translations, are texts.
RULES = {"number": "number", "json": "json", "choice": {"kind": "choice", "choices": list("ABCD")}, "text": "text"}


def tasks_of(kind, path, count, every):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    rows = json.loads(text) if kind == "svamp" else [json.loads(line) for line in text.splitlines()]
    for number, row in list(enumerate(rows))[::every][:count]:
        if kind == "gsm8k":
            answer = row["answer"].rsplit("#### ", 1)[1].replace(",", "")
            yield {"id": f"gsm8k-{number}", "prompt": row["question"], "answer": float(answer)}
        elif kind == "svamp":
            question = f"{row['Body'].strip().rstrip('.')}. {row['Question'].strip()}"
            yield {"id": row["ID"], "prompt": question, "answer": row["Answer"]}
        else:
            lines = [f"{letter}) {choice}" for letter, choice in zip("ABCD", row["choices"])]
            yield {"id": row["id"], "prompt": "\n".join([row["question"], *lines]), "answer": "ABCD"[row["answer"]], "canonical": RULES["choice"]}


# The signs of JSON, between which white space is no difference.
JSON_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:\s"]+')


def pattern(text, kind):
    signs = JSON_SIGN.findall(text) if kind == "json" else [text]
    return r"\s*".join(map(re.escape, signs))


def suite(kind):
    for path in sorted(SUITE.glob("*.jsonl")):
        for row in read(path):
            if "answer" not in row or kind != (row["kind"] if row["kind"] in RULES else "text"):
                continue
            task = {"id": row["id"], "prompt": row["prompt"], "answer": row["answer"], "canonical": RULES[kind]}
            if isinstance(row["answer"], list):
                task |= {"answer": "^(?:" + "|".join(pattern(answer, kind) for answer in row["answer"]) + ")$", "grader": "regex"}
            yield task


def word(answer):
    """Returns a pattern of this answer as a word of its own. The case counts in a symbol such as Na, and in nothing longer."""
    text = re.escape(answer)
    return rf"\b{text}\b" if len(answer) <= 2 else rf"(?i:\b{text}\b)"


def short():
    """Yields short questions whose right answers are listed. An answer may stand in a sentence."""
    for row in read(SUITE.parent / "short.jsonl"):
        expression = "|".join(map(word, row["answer"]))
        if re.search(expression, row["prompt"]):
            sys.exit(f"votes.py: {row['id']}: an answer is a word of the question, so that a repeated question would be right")
        yield row | {"answer": expression, "grader": "regex", "canonical": RULES["text"]}


def read(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line]


def results(folder):
    """Returns the last row of each run of a batch."""
    rows = {}
    for path in sorted(pathlib.Path(folder).glob("results-*.jsonl")):
        for row in read(path):
            rows[row["run"]] = row
    return list(rows.values())


def is_right(text, answer):
    if isinstance(answer, str):
        return text == answer
    try:
        return math.isclose(float(text.replace(",", "")), answer, rel_tol=1e-9)
    except ValueError:
        return False


def samples(bank, answers):
    """Returns the samples of each of these tasks by method, in their order: the answer, or None, whether it is right, the tokens."""
    drawn, texts = {}, {}
    for row in [row for row in results(bank) if row["task"] in answers]:
        for sample in row["vote"]["samples"]:
            by_method = drawn.setdefault(row["task"], {"words": [], "program": []})
            # `51` and `51.0` have one digest, and are one answer.
            text = sample["text"] and texts.setdefault(sample["sha256"], sample["text"])
            right = text is not None and is_right(text, answers[row["task"]])
            by_method[sample["method"]].append((text, right, sample["tokens"]))
    return drawn


def leaders(votes):
    """Returns whether each of the answers with the most votes is right."""
    counts = {}
    for text, right in votes:
        if text is not None:
            counts[text, right] = counts.get((text, right), 0) + 1
    return [right for (_, right), count in counts.items() if count == max(counts.values())]


def worth(votes):
    """Returns what the majority of these answers is worth: 1, 0, or the right share of a tie."""
    top = leaders(votes)
    return sum(top) / len(top) if top else 0.0


def majority(drawn, method, k):
    """Returns worth and tokens of the majority of the first k samples by a method, by task."""
    found = {}
    for task, by_method in drawn.items():
        some = by_method[method][:k]
        if len(some) == k:
            found[task] = (worth([(text, right) for text, right, _ in some]), sum(tokens for _, _, tokens in some))
    return found


def pairs(drawn, methods):
    """Prints how often two samples by these methods agree, and how often they are right then."""
    alike, right, of = 0, 0, 0
    for by_method in drawn.values():
        first, second = (by_method[method] for method in methods)
        together = itertools.product(first, second) if methods[0] != methods[1] else itertools.combinations(first, 2)
        for one, other in together:
            agree = one[0] is not None and one[0] == other[0]
            alike, right, of = alike + agree, right + (agree and one[1]), of + 1
    if of:
        print(f"{' and '.join(methods):18} agree on {100 * alike / of:.1f} % of {of} pairs, and are right in {100 * right / max(1, alike):.1f} % then")


def wilson(right, of):
    if of == 0:
        return 0.0, 0.0
    z, p = 1.959964, right / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def bootstrap(values):
    draw = random.Random(1)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(10_000))
    return means[249], means[9749]


def at_tokens(curve, tokens, tasks):
    """Returns the worth of the majority that takes so many tokens on average, by task."""
    mean = {k: sum(found[task][1] for task in tasks) / len(tasks) for k, found in curve.items()}
    below = max([k for k in curve if mean[k] <= tokens], default=min(curve))
    above = min([k for k in curve if mean[k] > tokens], default=below)
    share = (tokens - mean[below]) / (mean[above] - mean[below]) if above != below else 0.0
    mixed = {task: (1 - share) * curve[below][task][0] + share * curve[above][task][0] for task in tasks}
    return mixed, below + share * (above - below)


def arm_rows(rows, answers):
    """Returns worth, tokens, and whether it is sure, by task; an arm prints its leader in any case."""
    found = {}
    for row in rows:
        vote, answer = row["vote"], answers[row["task"]]
        votes = [(text["text"], is_right(text["text"], answer)) for text in vote["answers"] for _ in range(text["votes"])]
        found[row["task"]] = (worth(votes), row["usage"]["completion"], vote["class"])
    return found


def line(name, found, curve):
    tasks = sorted(found)
    right = sum(found[task][0] for task in tasks)
    tokens = sum(found[task][1] for task in tasks) / len(tasks)
    low, high = wilson(right, len(tasks))
    text = f"{name:18} {100 * right / len(tasks):5.1f} [{100 * low:4.1f}, {100 * high:4.1f}]  {tokens:7.0f}"
    if any(len(found[task]) > 2 and found[task][2] for task in tasks):
        sure = [task for task in tasks if found[task][2] in ("A", "B", "C")]
        well = sum(found[task][0] for task in sure)
        low, high = wilson(well, len(sure))
        text += f"  {len(sure):3} sure, {100 * well / max(1, len(sure)):5.1f} [{100 * low:4.1f}, {100 * high:5.1f}] right"
        for name in "ABC":
            of = [task for task in sure if found[task][2] == name]
            text += f"  {name} {sum(found[task][0] for task in of):.0f}/{len(of)}"
    whole = {k: rows for k, rows in curve.items() if all(task in rows for task in tasks)}
    if whole:
        base, k = at_tokens(whole, tokens, tasks)
        differences = [found[task][0] - base[task] for task in tasks]
        low, high = bootstrap(differences)
        mean = sum(differences) / len(differences)
        spread = math.sqrt(sum((d - mean) ** 2 for d in differences) / max(1, len(differences) - 1))
        needed = math.ceil((1.96 * spread / 0.03) ** 2)
        text += f"\n{'':18} {100 * mean:+5.1f} [{100 * low:+.1f}, {100 * high:+.1f}] points against the majority of {k:.1f}"
        if len(found[tasks[0]]) > 2:
            text += f"; ±3 points need {needed} tasks"
    print(text)


def certainty(leader, runner_up):
    """Returns the probability that the leader of so many votes is the more frequent of two answers."""
    tosses = leader + runner_up + 1
    return sum(math.comb(tosses, k) for k in range(leader + 1)) / 2 ** tosses


def stopped(turns, voters, threshold, stops_at_two):
    """Returns worth, tokens and class of a vote over samples in this order, in which so many voters take turns."""
    counts, finders, tokens = {}, {}, 0
    for number, (text, right, cost) in enumerate(turns):
        tokens += cost
        if text is None:
            continue
        answer = text, right
        counts[answer] = counts.get(answer, 0) + 1
        finders.setdefault(answer, set()).add(number % voters)
        (leader, first), (_, second) = (sorted(counts.items(), key=lambda item: -item[1]) + [(None, 0)])[:2]
        if stops_at_two and number == 1 and first == 2:
            return float(leader[1]), tokens, "B"
        if certainty(first, second) >= threshold:
            return float(leader[1]), tokens, "A" if len(finders[leader]) > 1 else "C"
    return worth([answer for answer, count in counts.items() for _ in range(count)]), tokens, "D"


STOPS = {
    "words-fast": (["words"], 8, 0.90, False),
    "words-sure": (["words"], 12, 0.95, False),
    "fast": (["words", "program"], 8, 0.90, True),
    "fast-without-B": (["words", "program"], 8, 0.90, False),
    "sure": (["words", "program"], 16, 0.95, False),
    "sure-0.98": (["words", "program"], 16, 0.98, False),
}


def shuffled(drawn, arm, orders=100):
    """Returns worth and tokens by task, each the mean over orders of the samples that are drawn anew for each task."""
    draw = random.Random(1)
    found = {}
    for task, by_method in drawn.items():
        each = []
        for _ in range(orders):
            each.append(arm({method: draw.sample(by_method[method], len(by_method[method])) for method in ["words", "program"]})[:2])
        found[task] = tuple(sum(values) / orders for values in zip(*each))
    return found


def vote(some, arm):
    """Returns worth, tokens and class of a vote with this stop over the samples of one task. The methods take turns."""
    methods, most, threshold, stops_at_two = STOPS[arm]
    turns = [sample for turn in zip(*(some[method] for method in methods)) for sample in turn]
    return stopped(turns[:most], len(methods), threshold, stops_at_two)


def again(drawn, arm, rows):
    """Holds the runs of an arm against the same stop, worked out here."""
    for task, some in drawn.items():
        mine, theirs = vote(some, arm), rows[task]
        if mine != theirs:
            sys.exit(f"votes.py: {arm}, {task}: {mine} is worked out, and the run says {theirs}")


def majorities(drawn):
    """Returns worth and tokens of the majority of every number of samples in words, by task, over orders of the samples."""
    most = min(len(some["words"]) for some in drawn.values())
    return {k: shuffled(drawn, lambda some: (worth([sample[:2] for sample in some["words"][:k]]), sum(s[2] for s in some["words"][:k])))
            for k in range(1, most + 1)}


def orders(drawn):
    print(f"{len(drawn)} tasks, 100 orders; accuracy with its interval, tokens of replies a task")
    curve = majorities(drawn)
    for k, found in curve.items():
        line(f"{k} words", found, {})
    stops = [name for name, (methods, *_) in STOPS.items() if all(some[method] for some in drawn.values() for method in methods)]
    for name in stops:
        line(name, shuffled(drawn, lambda some: vote(some, name)), curve)
    print("in the order in which they were drawn:")
    drawn_curve = {k: majority(drawn, "words", k) for k in curve}
    for name in stops:
        line(name, {task: vote(some, name) for task, some in drawn.items()}, drawn_curve)
    for methods in [("words", "words"), ("program", "program"), ("words", "program")]:
        pairs(drawn, methods)


# The thresholds of one budget, by the name of their list; without thresholds, each round is one sample.
BUDGETS = {
    "greedy": None,
    "0.90 alone": [0.90],
    "0.76, 0.90": [0.76, 0.90],
    "0.66, 0.76, 0.90": [0.66, 0.76, 0.90],
    "hundredths": [number / 100 for number in range(51, 101)],
}
SETTLED, MOST = 0.90, 12


class Task:
    """A task under a budget, with its samples in the order in which it draws them."""

    def __init__(self, name, samples):
        self.name, self.samples, self.number, self.tokens = name, samples, 0, 0

    def draw(self):
        self.tokens += self.samples[self.number][2]
        self.number += 1
        counts = {}
        for text, right, _ in self.samples[:self.number]:
            if text is not None:
                counts[text, right] = counts.get((text, right), 0) + 1
        self.certainty = certainty(*sorted([0, 0, *counts.values()], reverse=True)[:2])
        self.worth = worth([sample[:2] for sample in self.samples[:self.number]])

    def waits(self, threshold):
        return self.certainty < min(threshold, SETTLED) and self.number < min(MOST, len(self.samples))


def spend(tasks, budget, thresholds):
    """Draws samples of these tasks until the budget is spent or every task is settled."""
    for task in tasks * 2:
        task.draw()
    for threshold in thresholds or [SETTLED]:
        while waiting := sorted((task for task in tasks if task.waits(threshold)), key=lambda task: (task.certainty, task.number, task.name)):
            if thresholds is None:
                waiting = waiting[:1]
            spent, number = sum(task.tokens for task in tasks), sum(task.number for task in tasks)
            fitting = min(len(waiting), max(0, budget - spent) * number // spent)
            for task in waiting[:fitting]:
                task.draw()
            if fitting < len(waiting):
                return


def budgets(drawn, samples, orders=100):
    """Prints what the same tokens are worth, spent by each rule and by the majority, over the same orders of the samples."""
    draw = random.Random(1)
    drawn = [{task: draw.sample(some["words"], len(some["words"])) for task, some in sorted(drawn.items())} for _ in range(orders)]
    tasks, curve = sorted(drawn[0]), {}
    for k in range(1, min(len(some) for some in drawn[0].values()) + 1):
        each = {task: [(worth([sample[:2] for sample in some[task][:k]]), sum(sample[2] for sample in some[task][:k])) for some in drawn] for task in tasks}
        curve[k] = {task: tuple(sum(values) / orders for values in zip(*each[task])) for task in tasks}
    budget = int(sum(curve[samples][task][1] for task in tasks))
    print(f"{len(tasks)} tasks, {orders} orders, {budget} tokens for all; accuracy with its interval, tokens a task")
    line(f"{samples} words", curve[samples], {})
    for name, thresholds in BUDGETS.items():
        found, strict = ({task: (0.0, 0.0) for task in tasks} for _ in range(2))
        most = 0.0
        for some in drawn:
            under = [Task(task, some[task]) for task in tasks]
            spend(under, budget, thresholds)
            most = max(most, sum(task.tokens for task in under) / budget)
            for of, is_strict in [(found, False), (strict, True)]:
                for task in under:
                    right, tokens = of[task.name]
                    of[task.name] = (right + (task.worth == 1.0 if is_strict else task.worth) / orders, tokens + task.tokens / orders)
        line(name, found, curve)
        line("  a tie is wrong", strict, curve)
        print(f"{'':18} at most {100 * most - 100:.1f} % over the budget")


def curves(drawn):
    """Prints the majority of every number of samples, by method; returns those in words."""
    print(f"{len(drawn)} tasks; accuracy with its interval, tokens of replies a task")
    by_method = {}
    for method in ["words", "program"]:
        most = max(len(some[method]) for some in drawn.values())
        by_method[method] = {k: majority(drawn, method, k) for k in range(1, most + 1)}
        for k, found in by_method[method].items():
            line(f"{k} {method}", found, {})
    return by_method["words"]


def report(bank, path, out):
    answers = {task["id"]: task["answer"] for task in read(path)}
    drawn = samples(bank, answers)
    curve = curves(drawn)
    by_arm = {}
    for row in results(out):
        by_arm.setdefault(row["arm"], []).append(row)
    for arm, rows in by_arm.items():
        line(arm, arm_rows(rows, answers), curve)
        if arm in STOPS:
            again(drawn, arm, arm_rows(rows, answers))


def arms(binary, bank, path, out):
    drawn = samples(bank, {task["id"]: task["answer"] for task in read(path)})
    roleset = results(bank)[0]["roleset"]
    words = min(len(by_method["words"]) for by_method in drawn.values())
    has_programs = any(by_method["program"] for by_method in drawn.values())
    kinds = ["words", "mixed"] if has_programs else ["words"]
    for name, flags in [pair for kind in kinds for pair in ARMS[kind].items()]:
        flags = [flag.format(words=words) for flag in flags]
        subprocess.run([binary, "batch", path, "--from-bank", bank, "--output", out, "--roleset", roleset, "--arm", name,
                        "--on-disagreement", "leader", *flags], check=True)
    subprocess.run([binary, "verify", out], check=True)


def keep(bank, path):
    answers = {task["id"]: task["answer"] for task in read(path)}
    for task, by_method in sorted(samples(bank, answers).items()):
        print(json.dumps({"task": task, **by_method}, separators=(",", ":")))


def kept(path, prompts, only):
    """Returns the samples of each task by method, with the tokens of their prompts added."""
    more = dict(zip(["words", "program"], prompts))
    return {row["task"]: {method: [(text, right, tokens + more[method]) for text, right, tokens in row[method]] for method in more}
            for row in read(path) if only is None or row["task"] in only}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = words.add_subparsers(dest="what", required=True)
    tasks = what.add_parser("tasks")
    tasks.add_argument("kind", choices=["gsm8k", "svamp", "mmlu-redux"])
    tasks.add_argument("file")
    tasks.add_argument("count", type=int)
    tasks.add_argument("--every", type=int, default=1)
    what.add_parser("suite").add_argument("kind", choices=RULES)
    what.add_parser("short")
    rest = {"arms": ["binary", "bank", "tasks", "out"], "report": ["bank", "tasks", "out"], "keep": ["bank", "tasks"], "curve": ["kept"],
            "budget": ["kept"]}
    for name, places in rest.items():
        parser = what.add_parser(name)
        for place in places:
            parser.add_argument(place)
        if name in ("curve", "budget"):
            parser.add_argument("--prompts", default="0,0")
        if name == "curve":
            parser.add_argument("--tasks")
        if name == "budget":
            parser.add_argument("--majority", type=int, default=5)
    given = words.parse_args()
    if given.what in ("tasks", "suite", "short"):
        tasks = short() if given.what == "short" else suite(given.kind) if given.what == "suite" else tasks_of(given.kind, given.file, given.count, given.every)
        for task in tasks:
            print(json.dumps(task, ensure_ascii=False))
    elif given.what == "arms":
        arms(given.binary, given.bank, given.tasks, given.out)
    elif given.what == "curve":
        only = {task["id"] for task in read(given.tasks)} if given.tasks else None
        orders(kept(given.kept, [int(tokens) for tokens in given.prompts.split(",")], only))
    elif given.what == "budget":
        budgets(kept(given.kept, [int(tokens) for tokens in given.prompts.split(",")], None), given.majority)
    elif given.what == "report":
        report(given.bank, given.tasks, given.out)
    else:
        keep(given.bank, given.tasks)


if __name__ == "__main__":
    sys.exit(main())
