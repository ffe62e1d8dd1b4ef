#!/usr/bin/env python3
"""Holds the figures of `consensus eval` against independent libraries: scipy, statsmodels and pandas.

    figures.py BIN
    figures.py vectors        writes crates/statistics/cases.json

A server that answers sums with some skill, by the request alone, is evaluated with several arms. Every share, interval, p-value and point
of the curve in summary.json is computed again from the rows of the bank and of items.jsonl, by other code: intervals of Wilson and exact
tests by statsmodels, the bootstrap with scipy's, over items, Student's test over clusters, the curve by drawing subsets. items.jsonl and the CSV of
results are read with pandas. A calibration is made again from the rows of its batch, with scipy's minimum and its beta distribution. The program's own tests hold its
intervals and tests against random cases in crates/statistics/cases.json, which these libraries have computed; here they do so again.
"""

import hashlib
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy
import pandas
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from model_server import Model, served

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "crates/statistics/cases.json"

ITEMS = 150
SAMPLES = 6
ARMS = ["single", "sc@3", "vote,modes=words,program", "vote,stop=sure", "single,temperature=0"]


def lot(*parts):
    """A number from 0 to 1 that depends on the parts alone."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:12], 16) / 16**12


class Voter(Model):
    """Answers a sum rightly with a skill that depends on the sum, by the seed of the request."""

    def said(self, request):
        text, last = json.dumps(request["messages"]), json.dumps(request["messages"][-1])
        one, other = summands(text)
        draw = lot(one, other, request.get("seed"), request.get("temperature"))
        answer = one + other + (0 if draw < lot(one, other) else 1 + int(draw * 1000) % 3)
        if request.get("response_format"):
            return json.dumps({"response": "many"})
        if "Write a Python function" in last:
            return f"```python\ndef solution():\n    return {answer - other} + {other}\n```"
        return "I am not sure." if draw > 0.97 else f"I add the two.\nAnswer: {answer}"

    def used(self, request):
        text = json.dumps(request["messages"])
        return len(text) // 4, 20 + summands(text)[0]


def summands(text):
    return [int(word) for word in re.search(r"How much is (\d+) \+ (\d+)", text).groups()]


def sums(path, count):
    """Writes so many sums, and returns their rows."""
    rows = [{"id": f"s{n}", "prompt": f"How much is {n} + {n * 7 % 50}?", "answer": n + n * 7 % 50, "canonical": "number",
             "meta": {"subject": n // 5}} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def evaluated(program, folder, out, flags, server_flags):
    """Evaluates the arms, and returns the summary and the right answers."""
    rows = sums(folder / "sums.jsonl", ITEMS)
    arms = [flag for arm in ARMS for flag in ("--arm", arm)]
    command = [program, "eval", "sums.jsonl", *arms, "--samples", str(SAMPLES), "--out", out, "-q", "--format", "json", *flags]
    told = subprocess.run([*command, *server_flags], cwd=folder, check=True, capture_output=True, text=True).stdout
    return json.loads(told), {row["id"]: str(row["answer"]) for row in rows}


def banked(folder, answers):
    """The samples of each item: their answers, and the mean tokens of one."""
    samples, tokens = {}, {}
    for line in (folder / "study/bank/results-0.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["arm"] == "words":
            drawn = [sample["text"] for sample in row["vote"]["samples"]]
            samples[row["task"]] = drawn[:SAMPLES]
            tokens[row["task"]] = (row["usage"]["prompt"] + row["usage"]["completion"]) / len(drawn)
    assert set(samples) == set(answers) and all(len(drawn) == SAMPLES for drawn in samples.values())
    return samples, tokens


def majority(drawn, right):
    """The probability that the majority of these samples is right, where chance breaks a tie."""
    counts = pandas.Series([text for text in drawn if text is not None], dtype=object).value_counts()
    leaders = counts[counts == counts.max()].index if len(counts) else []
    return sum(text == right for text in leaders) / max(len(leaders), 1)


def near(one, other, margin, what):
    assert abs(one - other) <= margin, f"{what}: {one} and {other}"


def check_curve(curve, samples, tokens, answers):
    """Checks every point, and returns the curve of each item."""
    by_item = {}
    for task, drawn in samples.items():
        of = [[majority(subset, answers[task]) for subset in itertools.combinations(drawn, k)] for k in range(1, SAMPLES + 1)]
        by_item[task] = [numpy.mean(shares) for shares in of]
    for point in curve["points"]:
        k = point["samples"]
        near(point["right"], numpy.mean([shares[k - 1] for shares in by_item.values()]), 1e-9, f"the majority of {k}")
        near(point["tokens"], k * numpy.mean(list(tokens.values())), 1e-6, f"the tokens of {k}")
    any_right = numpy.mean([any(text == answers[task] for text in drawn) for task, drawn in samples.items()])
    near(curve["any_right"], any_right, 1e-9, "any sample is right")
    return by_item


def on_curve(points, samples):
    """The curve at a number of samples, which is straight between two points."""
    return numpy.interp(samples, numpy.arange(1, len(points) + 1), points)


def check_difference(arm, rows, by_item, tokens, groups):
    """Checks the difference from the curve with scipy's bootstrap over groups of items, and the exact test with statsmodels."""
    order = rows["id"].tolist()
    right = rows["right"].to_numpy(float)
    spent = (rows["prompt_tokens"] + rows["completion_tokens"]).to_numpy(float)
    points = numpy.array([by_item[task] for task in order])
    of_one = numpy.array([tokens[task] for task in order])

    def difference(at):
        bought = spent[at].sum() / of_one[at].sum()
        return right[at].mean() - on_curve(points[at].mean(axis=0), bought)

    against = arm["against"]
    near(against["difference"], difference(numpy.arange(len(order))), 1e-9, arm["name"])
    at_group = [[at for at, task in enumerate(order) if groups[task] == group] for group in sorted(set(groups.values()))]
    drawn = lambda numbers: difference(numpy.concatenate([at_group[number] for number in numbers]))
    found = stats.bootstrap((numpy.arange(len(at_group)),), drawn, n_resamples=10_000, method="percentile",
                            vectorized=False, rng=numpy.random.default_rng(1))
    error, interval = found.standard_error, found.confidence_interval
    is_clustered = len(at_group) < len(order)
    if is_clustered:
        error *= (len(at_group) / (len(at_group) - 1)) ** 0.5
        student = stats.t(len(at_group) - 1, against["difference"], error)
        interval = student.interval(0.95)
        # A small error of the error is a large one of a small probability.
        near(against["p"], max(2 * min(student.cdf(0), student.sf(0)), 1e-4), 0.02, f"{arm['name']}, p")
    # The ends of an interval over 30 clusters vary twice as much between two bootstraps as those over 150 items.
    for end, other in zip(("low", "high"), interval):
        near(against["interval"][end], other, 0.008 if is_clustered else 0.004, f"{arm['name']}, {end}")
    near(against["error"], error, 0.001, f"{arm['name']}, error")
    table = [[0, against["better"]], [against["worse"], 0]]
    near(against["exact"]["p"], mcnemar(table, exact=True).pvalue, 1e-9, f"{arm['name']}, exact test")


def check_share(of, counts, name):
    assert (of["count"], of["of"]) == (int(sum(counts)), len(counts)), name
    low, high = proportion_confint(sum(counts), len(counts), method="wilson")
    near(of["interval"]["low"], low, 1e-9, f"{name}, low")
    near(of["interval"]["high"], high, 1e-9, f"{name}, high")


def check_holm(summary):
    others = [arm for arm in summary["arms"] if not arm["is_primary"] and arm["p"] is not None]
    raw = [arm["against"]["p"] for arm in others]
    for arm, corrected in zip(others, multipletests(raw, method="holm")[1]):
        near(arm["p"], corrected, 1e-9, f"{arm['name']}, Holm")


def random_intervals(program, folder):
    """Intervals of Wilson on random counts, as `consensus results` prints them."""
    drawn = random.Random(5)
    for _ in range(3):
        of = drawn.randint(1, 60)
        tasks = [{"id": n, "prompt": f"{n}+1?", "answer": 4 if drawn.random() < 0.6 else 5, "canonical": "number"} for n in range(of)]
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        out = f"out{of}"
        batch = [program, "batch", "tasks.jsonl", "-q", "-o", out, "--mock", "--answer", "4", "--roleset", "vote_number"]
        subprocess.run(batch, cwd=folder, check=True, capture_output=True)
        told = subprocess.run([program, "results", out, "--format", "json"], cwd=folder, check=True, capture_output=True).stdout
        right = sum(task["answer"] == 4 for task in tasks)
        low, high = proportion_confint(right, of, method="wilson")
        share = json.loads(told)[0]["right"]
        near(share["low"], low, 1e-9, f"{right} of {of}")
        near(share["high"], high, 1e-9, f"{right} of {of}")
        table = subprocess.run([program, "results", out, "--format", "csv"], cwd=folder, check=True, stdout=subprocess.PIPE)
        (folder / "runs.csv").write_bytes(table.stdout)
        frame = pandas.read_csv(folder / "runs.csv")
        assert len(frame) == of and int(frame["right"].sum()) == right, frame


def vectors():
    """Random cases with their values by scipy and statsmodels."""
    drawn = random.Random(17)
    told = {"wilson": [], "clopper_pearson_upper": [], "mcnemar": []}
    for _ in range(200):
        of = drawn.randint(1, 2000)
        count = drawn.choice([0, of, drawn.randint(0, of)])
        low, high = proportion_confint(count, of, method="wilson")
        told["wilson"].append([count, of, float(low), float(high)])
        doubt = drawn.choice([0.01, 0.05, 0.1])
        upper = 1.0 if count == of else float(proportion_confint(count, of, alpha=2 * doubt, method="beta")[1])
        told["clopper_pearson_upper"].append([count, of, doubt, upper])
        better, worse = drawn.randint(0, 60), drawn.randint(0, 60)
        p = float(mcnemar([[0, better], [worse, 0]], exact=True).pvalue)
        even = stats.binom(better + worse, 0.5)
        mid = min(1.0, 2 * even.cdf(min(better, worse)) - even.pmf(min(better, worse)))
        told["mcnemar"].append([better, worse, p, float(mid)])
    return told


def check_vectors():
    for name, cases in vectors().items():
        known = json.loads(VECTORS.read_text())[name]
        assert len(known) == len(cases), name
        for own, other in zip(known, cases):
            assert numpy.allclose(own, other, rtol=0, atol=1e-12), f"{name}: {own} and {other}"


def features(row, classes):
    """The numbers of an answer that a calibration is fitted to."""
    vote, tally = row["vote"], row["blind_vote"]["tally"]
    drafts = sum(one["votes"] for one in tally) + row["blind_vote"]["missing"]
    support = sum(one["votes"] for one in tally if one["sha256"] == row["sha256"])
    methods = {sample["method"] for sample in vote["samples"] if sample["counts"] and sample["sha256"] == row["sha256"]}
    numbers = [1, support / drafts, drafts / 16, len(tally) / 16, len(methods) / 2, float("program" in methods)]
    return numbers + [float(vote["class"] == name) for name in classes[1:]]


def threshold(steps, risk, doubt=0.05):
    """The last of the steps that hold a risk, from the surest one that is likely to; None if that one does not."""
    enough = [step for step in steps if step[1] >= numpy.ceil(numpy.log(doubt) / numpy.log(1 - risk))]
    bound = lambda errors, answered: stats.beta.ppf(1 - doubt, errors + 1, answered - errors) if errors < answered else 1.0
    if not enough:
        return None
    most = [max(k for k in range(answered) if bound(k, answered) <= risk) for _, answered, _, _ in enough]
    likely = [stats.binom.cdf(k, answered, expected / answered) for k, (_, answered, _, expected) in zip(most, enough)]
    first = next((at for at, value in enumerate(likely) if value >= 0.95), int(numpy.argmax(likely)))
    held = None
    for step in enough[first:]:
        if bound(step[2], step[1]) > risk:
            break
        held = step
    return held


def check_calibration(program, folder, server_flags):
    """Makes a calibration of many votes, and makes it again from their rows."""
    sums(folder / "many.jsonl", 500)
    vote = ["--roleset", "vote_number", "--modes", "words,program", "--stop", "sure", "--on-disagreement", "leader"]
    subprocess.run([program, "batch", "many.jsonl", "-q", "-o", "many", *vote, *server_flags], cwd=folder, check=True, capture_output=True)
    command = [program, "calibrate", "many", "--risk", "0.3", "--format", "json"]
    told = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)
    made = json.loads((folder / "many/calibration.json").read_text())
    rows = [json.loads(line) for line in (folder / "many/results-0.jsonl").read_text().splitlines()]
    rows.sort(key=lambda row: row["made_of"])
    fitted, certifying = ([row for row in half if row["text"] is not None] for half in (rows[::2], rows[1::2]))
    classes = sorted({row["vote"]["class"] for row in fitted})
    assert made["fit"]["classes"] == classes and made["items"]["fitted"] == len(fitted), made["fit"]
    table = numpy.array([features(row, classes) for row in fitted])
    table = numpy.vstack([table, table.mean(axis=0), table.mean(axis=0)])
    right = numpy.array([row["right"] for row in fitted] + [True, False], float)

    def loss(weights):
        told = table @ weights
        return numpy.sum(numpy.logaddexp(0, told) - right * told) + 0.05 * numpy.sum(weights[1:] ** 2)

    weights = optimize.minimize(loss, numpy.zeros(table.shape[1]), method="BFGS", options={"gtol": 1e-7}).x
    for name, (own, other) in enumerate(zip(made["fit"]["weights"], weights)):
        near(own, other, 1e-3, f"weight {name}")
    values = {}
    for row in certifying:
        value = numpy.floor(1e4 / (1 + numpy.exp(-numpy.dot(features(row, classes), made["fit"]["weights"]))) + 1e-9) / 1e4
        values.setdefault(value, []).append(row["right"])
    steps, answered, errors, expected = [], 0, 0, 0.0
    for value in sorted(values, reverse=True):
        answered, errors = answered + len(values[value]), errors + values[value].count(False)
        expected += len(values[value]) * (1 - value)
        steps.append((value, answered, errors, expected))
    assert [step[:3] for step in steps] == [(step["from"], step["answered"], step["errors"]) for step in made["steps"]]
    for row in told["risks"]:
        held = threshold(steps, row["risk"])
        found = None if row["threshold"] is None else (row["threshold"], row["answered"], row["errors"])
        assert found == (held and held[:3]), f"{row} and {held}"
    assert any(row["threshold"] is not None for row in told["risks"])


def main():
    if sys.argv[1] == "vectors":
        kinds = [f'"{name}": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]" for name, cases in vectors().items()]
        VECTORS.write_text("{\n" + ",\n".join(kinds) + "\n}\n")
        return
    check_vectors()
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        _, url = served(Voter)
        server_flags = ["--base-url", url, "--model", "m", "--no-stream"]
        summary, answers = evaluated(program, folder, "study", [], server_flags)
        samples, tokens = banked(folder, answers)
        by_item = check_curve(summary["curves"][0], samples, tokens, answers)
        frame = pandas.read_json(folder / "study/items.jsonl", lines=True, dtype={"id": str})
        for arm in summary["arms"]:
            rows = frame[frame["arm"] == arm["name"]]
            assert len(rows) == ITEMS, arm["name"]
            check_share(arm["right"], rows["right"], arm["name"])
            check_share(arm["answered"], rows["answer"].notna(), arm["name"])
            check_difference(arm, rows, by_item, tokens, {task: task for task in answers})
        check_holm(summary)
        clustered, _ = evaluated(program, folder, "clustered", ["--cluster", "subject", "--reuse", "study"], server_flags)
        subjects = {f"s{n}": n // 5 for n in range(ITEMS)}
        for arm in clustered["arms"]:
            check_difference(arm, frame[frame["arm"] == arm["name"]], by_item, tokens, subjects)
        random_intervals(program, folder)
        check_calibration(program, folder, server_flags)
    print(f"figures: passed: {len(ARMS)} arms on {ITEMS} items agree with scipy and statsmodels; pandas reads the tables")


main()
