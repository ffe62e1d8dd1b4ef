#!/usr/bin/env python3
"""Measures how often a model tells a right answer from a wrong one by a single letter.

    judge.py ask URL MODEL OUT.jsonl --tasks TASKS.jsonl --bank KEPT.jsonl [--at-once N]
                                        asks about a pair of answers of each task, twice; URL ends in /v1
    judge.py report OUT.jsonl --bank KEPT.jsonl --prompt TOKENS
                                        prints how many pairs are judged rightly, beside the share at which a judge of ties begins to pay

TASKS.jsonl and KEPT.jsonl are made by `votes.py tasks` and `votes.py keep`. A pair is the right answer and the wrong one that most samples
of a task have found in words; of equal ones, those that came first. A task without both is left out. Where a question has lettered options,
the judge sees the texts of the two options and none of the others, so that its letters are those of the pair alone.

The judge sees the question and the two answers without any solution, and replies with A or B: at most one token, at temperature 0. It is
asked in both orders. Where the server reports the probabilities of first tokens, that of A is taken beside that of B. Otherwise the letter
counts as 1, and a reply that is neither letter as one half for each. A pair is right if both orders together prefer the right answer, and
counts one half if they prefer neither.

OUT.jsonl gets a line for each pair, and pairs that are there already are skipped.

What a judge of ties is worth is worked out from the same bank, whose samples have prompts of so many TOKENS. It decides where two answers
lead with equally many of two or five samples; a tie of more is left to chance. With it, the vote is compared with the majority that takes
as many tokens, those of the judge included. A judge pays if it is right on more pairs than the share at which both are right equally often.
A prompt token has the price of a reply token, or a fifth of it.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import sys
import urllib.error
import urllib.request

import votes
from votes import read, wilson

OPTION = re.compile(r"(?m)^\s*\(?([A-Z])[).:]\s+(.*\S)\s*$")


def common(samples, is_right):
    """Returns the answer on one side that most samples have found, or nothing."""
    counts = {}
    for text, right, _ in samples:
        if text is not None and right == is_right:
            counts[text] = counts.get(text, 0) + 1
    return max(counts, key=counts.get, default=None)


def question_and_answers(prompt, answers):
    """Returns the question and the answers as the judge sees them: of lettered options, the texts of these answers alone."""
    options = dict(OPTION.findall(prompt))
    if not all(answer in options for answer in answers):
        return prompt, answers
    return OPTION.sub("", prompt).strip(), [options[answer] for answer in answers]


def pairs(tasks, bank):
    prompts = {task["id"]: task["prompt"] for task in read(tasks)}
    for row in read(bank):
        both = common(row["words"], True), common(row["words"], False)
        if row["task"] in prompts and None not in both:
            question, (right, wrong) = question_and_answers(prompts[row["task"]], both)
            yield {"task": row["task"], "question": question, "right": right, "wrong": wrong}


def request(question, first, second):
    return (f"{question}\n\nTwo people have answered, and one of them is right.\nA: {first}\nB: {second}\n\n"
            "Which answer is right? Reply with the letter A or B, and nothing else.")


def call(url, body):
    asked = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as reply:
        return json.load(reply)


def complete(url, model, prompt):
    """Returns a reply of one token, with the probabilities of first tokens if the server gives them."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0, "max_tokens": 1}
    try:
        return call(url, body | {"logprobs": True, "top_logprobs": 20})
    except urllib.error.HTTPError as refused:
        # Some servers refuse what they do not know.
        if refused.code not in (400, 422):
            raise
        return call(url, body)


def share_of_first(reply):
    """Returns how much a reply prefers A to B, from 0 to 1, and whether that is by probabilities."""
    choice = reply["choices"][0]
    shares = {"A": 0.0, "B": 0.0}
    for token in ((choice.get("logprobs") or {}).get("content") or [{}])[0].get("top_logprobs") or []:
        letter = token["token"].strip()
        if letter in shares:
            shares[letter] += math.exp(token["logprob"])
    if sum(shares.values()) > 0:
        return shares["A"] / sum(shares.values()), True
    return {"A": 1.0, "B": 0.0}.get((choice["message"]["content"] or "").strip()[:1], 0.5), False


def judge(url, model, pair):
    rights, tokens, measured = [], 0, []
    for answers in [(pair["right"], pair["wrong"]), (pair["wrong"], pair["right"])]:
        reply = complete(url, model, request(pair["question"], *answers))
        first, is_measured = share_of_first(reply)
        rights.append(first if answers[0] == pair["right"] else 1 - first)
        measured.append(is_measured)
        usage = reply.get("usage") or {}
        tokens += usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    return {"task": pair["task"], "right": pair["right"], "wrong": pair["wrong"], "right_first": rights[0], "right_second": rights[1],
            "measured": all(measured), "tokens": tokens}


def ask(given):
    out = pathlib.Path(given.out)
    done = {row["task"] for row in read(out)} if out.exists() else set()
    missing = [pair for pair in pairs(given.tasks, given.bank) if pair["task"] not in done]
    with concurrent.futures.ThreadPoolExecutor(given.at_once) as pool, out.open("a", encoding="utf-8") as file:
        for row in pool.map(lambda pair: judge(given.url.rstrip("/"), given.model, pair), missing):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()


def worth(row):
    both = row["right_first"] + row["right_second"]
    return 0.5 if math.isclose(both, 1.0, abs_tol=1e-12) else float(both > 1.0)


def report(given):
    rows = read(given.out)
    if not rows:
        sys.exit(f"judge.py: {given.out} has no pairs; `judge.py ask` adds them")
    right = sum(map(worth, rows))
    low, high = wilson(right, len(rows))
    measured = sum(row["measured"] for row in rows)
    tokens = sum(row["tokens"] for row in rows) / len(rows)
    print(f"{len(rows)} pairs, {measured} of them by probabilities; {tokens:.0f} tokens a pair in both orders")
    print(f"right {100 * right / len(rows):.1f} % [{100 * low:.1f}, {100 * high:.1f}]; {sum(worth(row) == 0.5 for row in rows)} prefer neither")
    for name in ["right_first", "right_second"]:
        single = sum(1.0 if row[name] > 0.5 else 0.5 if row[name] == 0.5 else 0.0 for row in rows)
        print(f"{name.replace('_', ' '):12} {100 * single / len(rows):.1f} % by that order alone")
    firsts = [share for row in rows for share in (row["right_first"], 1 - row["right_second"])]
    print(f"position     A has {100 * sum(firsts) / len(firsts):.1f} % of the preference; 50 % is no bias")
    for price in [1.0, 0.2]:
        drawn = votes.kept(given.bank, [price * given.prompt, 0], None)
        curve = votes.majorities(drawn)
        for samples in [2, 5]:
            least, gain = worth_of_judge(drawn, curve, samples, price * tokens, right / len(rows))
            verdict = "pays" if low > least else "does not pay" if high < least else "open"
            print(f"after {samples} samples, prompt tokens at {price:.1f}: a judge pays above {100 * least:.1f} %: {verdict}; this one {100 * gain:+.1f} points")


def worth_of_judge(drawn, curve, samples, tokens, share):
    """Returns the share of pairs on which a judge of ties must be right to pay, and what it adds if it is right on `share`."""
    def tie(some):
        top = votes.leaders([sample[:2] for sample in some["words"][:samples]])
        return len(top) == 2, len(top) == 2 and sum(top) == 1

    tasks = sorted(drawn)
    mean = lambda values: sum(values) / len(tasks)
    ties = votes.shuffled(drawn, tie)
    asked, contested = (mean(ties[task][at] for task in tasks) for at in range(2))
    plain, cost = (mean(curve[samples][task][at] for task in tasks) for at in range(2))
    against = mean(votes.at_tokens(curve, cost + asked * tokens, tasks)[0].values())
    return 0.5 + (against - plain) / contested, plain + contested * (share - 0.5) - against


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = words.add_subparsers(required=True)
    of_ask = what.add_parser("ask")
    for place in ["url", "model", "out"]:
        of_ask.add_argument(place)
    of_ask.add_argument("--tasks", required=True)
    of_ask.add_argument("--bank", required=True)
    of_ask.add_argument("--at-once", type=int, default=2)
    of_ask.set_defaults(work=ask)
    of_report = what.add_parser("report")
    of_report.add_argument("out")
    of_report.add_argument("--bank", required=True)
    of_report.add_argument("--prompt", type=int, required=True)
    of_report.set_defaults(work=report)
    given = words.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
