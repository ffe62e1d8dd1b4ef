#!/usr/bin/env python3
"""Opens a log of `consensus results --format inspect` with inspect_ai's own reader.

    inspect_log.py BIN

A batch of scripted votes over two seeds is written as a log. inspect_ai reads it, and finds every sample with its prompt, its target, its
score and its tokens, and the share of right answers that `consensus results` prints.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from inspect_ai.log import list_eval_logs, read_eval_log

TASKS = 30
WRONG = 7


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())

    def said(*words):
        return subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tasks = [{"id": f"s{n}", "prompt": f"How much is {n} - {n} + 4?", "answer": 5 if n < WRONG else 4, "canonical": "number",
                  "meta": {"subject": "sums"}} for n in range(TASKS)]
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        said("batch", "tasks.jsonl", "-q", "-o", "out", "--seeds", "2", "--roleset", "vote_number", "--mock", "--answer", "4")
        (folder / "logs").mkdir()
        told = said("results", "out", "--format", "inspect", "--tasks", "tasks.jsonl", "--with-transcripts")
        (folder / "logs/2026-01-01T00-00-00+00-00_votes_1.json").write_text(told)
        share = json.loads(said("results", "out", "--format", "json"))[0]["right"]["share"]
        assert [pathlib.Path(log.name).name for log in list_eval_logs(str(folder / "logs"))] == ["2026-01-01T00-00-00+00-00_votes_1.json"]
        log = read_eval_log(str(folder / "logs/2026-01-01T00-00-00+00-00_votes_1.json"))
    assert (log.version, log.status, log.eval.solver, log.eval.dataset.samples) == (2, "success", "vote_number", TASKS), log.eval
    assert abs(log.results.scores[0].metrics["accuracy"].value - share) < 1e-9, log.results
    by_id = {(sample.id, sample.epoch): sample for sample in log.samples}
    assert len(by_id) == TASKS * 2 and log.eval.config.epochs == 2, log.eval.config
    for task in tasks:
        for epoch in (1, 2):
            sample = by_id[task["id"], epoch]
            assert (sample.input, sample.target) == (task["prompt"], str(task["answer"])), sample
            assert sample.scores["right"].value == ("C" if task["answer"] == 4 else "I") and sample.scores["right"].answer == "4"
            assert sample.output.completion == "4" and sample.model_usage["mock"].output_tokens > 0
            assert sample.metadata["outcome"] == "agreed" and sample.metadata["transcript"].startswith("# "), sample.metadata
            assert sample.metadata["subject"] == "sums" and sample.total_time is not None and sample.error is None
    total = sum(sample.model_usage["mock"].total_tokens for sample in log.samples)
    assert log.stats.model_usage["mock"].total_tokens == total, log.stats
    print(f"inspect log: passed: {len(log.samples)} samples, read by inspect_ai")


main()
