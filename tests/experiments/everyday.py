"""Asks everyday questions on a real model server: what people type first, and what comes back.

    everyday.py run BIN OUT.jsonl [--only REGEX] [--seed N] [--deadline SECONDS] [-- FLAGS OF `consensus run`]
    everyday.py plain URL MODEL OUT.jsonl [--only REGEX] [--seed N]     one plain call of the same model for each question
    everyday.py report OUT.jsonl... [--plain PLAIN.jsonl] [--answers]   one table for each file, with tokens beside those of plain calls

`run` asks each question of tests/experiments/everyday.jsonl with the default roleset, unless FLAGS name one. It adds a line to OUT for each
question and skips those that are there already, so that a long sweep can be cut and taken up again.

What is counted:
- answered: the run agreed on a text; for a plain call, the reply is not empty.
- right: the text matches the pattern of the question, where a right answer is known.
- shown right: the same, and for a run without agreement the text that it prints as the nearest or the leading one.
- leaks: the text has six words in a row of the packs, the rules or the names of its run that the question does not have, or a word of
  the protocol (a handle, `envelope`, `canonical_text`, `[SOLVED]`, a peer's text).
- said back: replies that were refused because they repeat the task, to questions whose right answer is short. Read each in its
  transcript: a right one must not be among them.
"""

import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
QUESTIONS = [json.loads(line) for line in (HERE / "everyday.jsonl").read_text(encoding="utf-8").splitlines()]
PROTOCOL = re.compile(
    r"\bP[1-9]\b|\benvelope\b|canonical_text|\[SOLVED\]|\[CONTACT\]|needs_from_peer|public_message|\bpeer's (text|answer)|"
    r"\byour peer\b|\bmy peer\b|\bother agent\b",
    re.IGNORECASE,
)
WORDS_IN_A_ROW = 6


def chosen(pattern, done):
    return [q for q in QUESTIONS if re.search(pattern or "", q["id"]) and q["id"] not in done]


def done_in(out):
    path = pathlib.Path(out)
    return {json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()} if path.exists() else set()


def add(out, row):
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{row['id']}: {row['how']}, {row['calls']} calls, {row['seconds']} s: {(row['text'] or '')[:100]!r}", file=sys.stderr, flush=True)


def words(text):
    return re.findall(r"\w+", text.lower())


def grams(text):
    found = words(text)
    return {tuple(found[i : i + WORDS_IN_A_ROW]) for i in range(len(found) - WORDS_IN_A_ROW + 1)}


def instructions(folder):
    """Everything that the record says the agents were told, besides the question."""
    first = json.loads((folder / "journal.jsonl").read_text(encoding="utf-8").split("\n", 1)[0])["event"]["setup"]
    agents = first["agents"] + ([first["arbiter"]] if first.get("arbiter") else [])
    return [first["rules"]] + [text for agent in agents for text in agent.values() if isinstance(text, str)]


def leaks(text, question, told):
    own = set().union(*map(grams, told)) if told else set()
    echoed = (grams(text) & own) - grams(question)
    named = PROTOCOL.search(text)
    return bool(echoed) or bool(named and not PROTOCOL.search(question))


def right(question, text):
    if "right" not in question:
        return None
    return bool(text and re.search(question["right"], text, re.IGNORECASE | re.DOTALL))


def shown(result):
    """The text that a person reads: the agreed one, else the one nearest to the other drafts, else the one with most votes."""
    if result["outcome"] == "agreed":
        return result["text"]
    vote = result.get("vote") or {}
    answers = vote.get("answers") or [{"text": None}]
    return vote["texts"]["nearest"] if "texts" in vote else answers[0]["text"]


def said_back(folder, question):
    """Replies to a question with a short answer that were refused because they repeat the task."""
    if not question.get("short"):
        return 0
    return sum("it repeats the task" in line for line in (folder / "transcript.md").read_text(encoding="utf-8").splitlines())


def run(args):
    runs = pathlib.Path(args.out).with_suffix(".runs")
    for question in chosen(args.only, done_in(args.out)):
        began = time.monotonic()
        command = [args.bin, "run", "--quiet", "--format", "json", "--runs-dir", str(runs), "--seed", str(args.seed), "--deadline", f"{args.deadline}s"]
        finished = subprocess.run(command + ["--prompt", question["prompt"]] + args.flags, capture_output=True, text=True, check=False)
        seconds = round(time.monotonic() - began, 1)
        try:
            result = json.loads(finished.stdout)
            usage = result["usage"]
        except (json.JSONDecodeError, KeyError):
            sys.exit(f"{question['id']}: exit code {finished.returncode}\n{finished.stdout}{finished.stderr}")
        folder = runs / result["run"]
        text = result["text"] if result["outcome"] == "agreed" else None
        add(args.out, {
            "id": question["id"], "code": finished.returncode, "outcome": result["outcome"], "how": result.get("how") or result["outcome"], "text": text,
            "right": right(question, text), "shown_right": right(question, shown(result)), "blind": result.get("blind_vote", {}).get("text"),
            "leaks": bool(text) and leaks(text, question["prompt"], instructions(folder)), "said_back": said_back(folder, question),
            "calls": usage["calls"], "prompt": usage["prompt"], "completion": usage["completion"], "seconds": seconds, "run": result["run"],
        })


def plain(args):
    for question in chosen(args.only, done_in(args.out)):
        body = {"model": args.model, "messages": [{"role": "user", "content": question["prompt"]}], "temperature": 0.7, "seed": args.seed, "max_tokens": 700}
        request = urllib.request.Request(args.url + "/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        began = time.monotonic()
        with urllib.request.urlopen(request) as reply:
            reply = json.load(reply)
        text = reply["choices"][0]["message"]["content"]
        add(args.out, {
            "id": question["id"], "outcome": "agreed" if text.strip() else "no_agreement", "how": "plain", "text": text, "right": right(question, text),
            "shown_right": right(question, text), "leaks": False, "said_back": 0, "calls": 1, "prompt": reply["usage"]["prompt_tokens"], "completion": reply["usage"]["completion_tokens"],
            "seconds": round(time.monotonic() - began, 1),
        })


def report(args):
    for path in args.files:
        rows = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
        known = [row for row in rows if row["right"] is not None]
        answered = [row for row in rows if row["outcome"] == "agreed"]
        total = lambda field: sum(row[field] for row in rows)
        middle = lambda field: sorted(row[field] for row in rows)[len(rows) // 2]
        print(f"\n{path}\n\n| questions | answered | right of known | shown right | leaks | said back | calls | median calls | prompt tokens | completion tokens | seconds | median seconds |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        print(f"| {len(rows)} | {len(answered)} | {sum(row['right'] for row in known)} of {len(known)} | {sum(row['shown_right'] for row in known)} "
              f"| {total('leaks')} | {total('said_back')} | {total('calls')} | {middle('calls')} | {total('prompt')} | {total('completion')} | {round(total('seconds'))} | {middle('seconds')} |")
        if args.plain:
            tokens = lambda row: row["prompt"] + row["completion"]
            of_plain = {row["id"]: tokens(row) for row in map(json.loads, pathlib.Path(args.plain).read_text(encoding="utf-8").splitlines())}
            shares = sorted(tokens(row) / of_plain[row["id"]] for row in rows)
            print(f"\n{shares[len(shares) // 2]:.1f} times the tokens of a plain call in the median of the questions")
        if args.answers:
            for row in rows:
                print(f"- {row['id']} ({row['how']}, {row['calls']} calls, right: {row['right']}): {(row['text'] or '')[:160]!r}")


def main():
    # A run under way ends with this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    of_run = commands.add_parser("run")
    of_run.add_argument("bin")
    of_run.add_argument("out")
    of_run.add_argument("--only")
    of_run.add_argument("--seed", type=int, default=1)
    of_run.add_argument("--deadline", type=int, default=900)
    of_run.set_defaults(work=run)
    of_plain = commands.add_parser("plain")
    of_plain.add_argument("url")
    of_plain.add_argument("model")
    of_plain.add_argument("out")
    of_plain.add_argument("--only")
    of_plain.add_argument("--seed", type=int, default=1)
    of_plain.set_defaults(work=plain)
    of_report = commands.add_parser("report")
    of_report.add_argument("files", nargs="+")
    of_report.add_argument("--plain")
    of_report.add_argument("--answers", action="store_true")
    of_report.set_defaults(work=report)
    words_of_run = sys.argv[1:]
    flags = []
    if "--" in words_of_run:
        cut = words_of_run.index("--")
        words_of_run, flags = words_of_run[:cut], words_of_run[cut + 1 :]
    args = parser.parse_args(words_of_run)
    args.flags = flags
    args.work(args)


if __name__ == "__main__":
    main()
