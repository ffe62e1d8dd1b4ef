#!/usr/bin/env python3
"""Holds the program's grades and figures against the answers to GSM8K that OpenAI has graded, and against statsmodels.

    graded.py BIN FILE        FILE is example_model_solutions.jsonl of github.com/openai/grade-school-math

The solutions of four models are the replies of four arms. Each must be graded as OpenAI did, and each arm's share of right answers must
have the interval that statsmodels gives. So must the difference between two arms, with its exact test. The four solutions of a question
are then four votes: the file says how often an answer is right on which all agree, and the program must find the same. A solution ends
with a line such as `A: 18`, which is put into the words that the program asks for.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from model_server import Model, served

MODELS = ["6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"]


class Solver(Model):
    """Answers a question with the solution of the model that is asked; `all` answers with those of all models in turn."""

    rows = []
    asked = {}
    lock = threading.Lock()

    def said(self, request):
        number = int(re.search(r"Question (\d+):", json.dumps(request["messages"])).group(1))
        model = request["model"]
        if request.get("response_format"):
            # A solution without an answer stays without one.
            return json.dumps({"response": "none"})
        if model == "all":
            with self.lock:
                model = MODELS[self.asked.setdefault(number, 0) % len(MODELS)]
                self.asked[number] += 1
        return re.sub(r"(?m)^A: ", "Answer: ", self.rows[number][model]["solution"])


def answer(solution):
    """The last line of a solution, as the file marks it."""
    found = re.findall(r"(?m)^A: (.*)$", solution)
    return found[-1].strip().replace(",", "") if found else None


def told(program, folder, words):
    return subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    rows = [json.loads(line) for line in pathlib.Path(sys.argv[2]).read_text().splitlines()]
    Solver.rows = rows
    url = ["--base-url", served(Solver)[1], "--no-stream"]
    vote = ["--roleset", "vote_number", "--stop", "none", "--on-disagreement", "leader"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tasks = [{"id": number, "prompt": f"Question {number}: {row['question']}", "answer": row["ground_truth"].rsplit("A: ", 1)[1].strip(),
                  "canonical": "number"} for number, row in enumerate(rows)]
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        for model in MODELS:
            told(program, folder, ["batch", "tasks.jsonl", "-q", "-o", "out", "--arm", model, "--model", model, "--samples-max", "1", *vote, *url])
        graded = [json.loads(line) for line in (folder / "out/results-0.jsonl").read_text().splitlines()]
        assert len(graded) == len(rows) * len(MODELS), len(graded)
        other = [row for row in graded if row["right"] != rows[int(row["task"])][row["arm"]]["is_correct"]]
        assert not other, f"{len(other)} are graded otherwise, such as {other[0]['task']} of {other[0]['arm']}"
        for group in json.loads(told(program, folder, ["results", "out", "--by", "arm", "--format", "json"])):
            right, model = group["right"], group["of"]["arm"]
            count = sum(row[model]["is_correct"] for row in rows)
            low, high = proportion_confint(count, len(rows), method="wilson")
            assert (right["count"], right["of"]) == (count, len(rows)), group
            assert abs(right["low"] - low) < 1e-9 and abs(right["high"] - high) < 1e-9, group
        compared = json.loads(told(program, folder, ["results", "out", "--by", "arm", "--versus", MODELS[-1], "--format", "json"]))
        assert len(compared["versus"]) == len(MODELS) - 1, compared["versus"]
        for found in compared["versus"]:
            pairs = [(row[found["of"]]["is_correct"], row[MODELS[-1]]["is_correct"]) for row in rows]
            better, worse = pairs.count((True, False)), pairs.count((False, True))
            assert (found["better"], found["worse"], found["tasks"]) == (better, worse, len(rows)), found
            assert abs(found["p"] - mcnemar([[0, better], [worse, 0]], exact=True).pvalue) < 1e-9, found
            low, high = DescrStatsW([one - other for one, other in pairs]).tconfint_mean()
            assert abs(found["low"] - low) < 1e-6 and abs(found["high"] - high) < 1e-6, found
        words = ["batch", "tasks.jsonl", "-q", "-o", "all", "--model", "all", "--samples-max", "4", *vote, *url]
        told(program, folder, words)
        voted = [json.loads(line) for line in (folder / "all/results-0.jsonl").read_text().splitlines()]
    same = lambda row: len(row["blind_vote"]["tally"]) == 1 and not row["blind_vote"]["missing"]
    unanimous, others = [row for row in voted if same(row)], [row for row in voted if not same(row)]
    wanted = [row for row in rows if len({answer(row[model]["solution"]) for model in MODELS}) == 1]
    right = sum(row["right"] for row in unanimous)
    assert (len(unanimous), right) == (len(wanted), sum(row[MODELS[0]]["is_correct"] for row in wanted)), (len(unanimous), right, len(wanted))
    share = lambda rows: f"{100 * sum(row['right'] for row in rows) / len(rows):.1f} % of {len(rows)}"
    print(f"graded: passed: {len(graded)} solutions are graded as OpenAI did, and {len(MODELS)} models differ as statsmodels says")
    print(f"right are {share(unanimous)} unanimous votes and {share(others)} others")


main()
