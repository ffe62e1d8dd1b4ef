#!/usr/bin/env python3
"""Plays published texts of real models to votes: how many answers a rule finds, and whether they are those that were published.

    answers.py texts FOLDER OUT.jsonl [--bbh N] [--mmlu-pro N]    writes a line for each text
    answers.py measure BIN TEXTS.jsonl                            prints a table, and writes different.txt beside TEXTS.jsonl

FOLDER holds clones of four repositories under their own names. What is missing is named and left out:

    git clone https://github.com/kojima-takeshi188/zero_shot_cot    log/*_zero_shot_cot.log: GSM8K, SVAMP, AQuA, CommonsenseQA
    git clone https://github.com/suzgunmirac/BIG-Bench-Hard         code-davinci-002-outputs/code-davinci-002-cot/*.json
    git clone https://github.com/TIGER-AI-Lab/MMLU-Pro              eval_results/model_outputs_*.zip of six models
    git clone https://github.com/QwenLM/Qwen2.5-Math                evaluation/data/eval_rm_maj_example/math_cot_100.jsonl

A line has the text that a voter `said`, the answer that its corpus has `published` for it, and the right one as `gold`. `kind` is
number, choice or text. `choices` are the letters or words to choose from, and `options` the texts behind letters.

- In the logs, "Therefore, the answer is" came from the experimenters, so a line `Answer:` stands there, before the model's words.
- The sentence with the answer is at the end of a longer line in BIG-Bench-Hard and MMLU-Pro. `bbh` and `mmlu_pro` have it so, and
  `bbh_line` and `mmlu_pro_line` have the last such sentence on a line of its own.
- BIG-Bench-Hard: the first N texts (60) of each task with letters, yes and no, or numbers. Its published answer is what follows
  the sentence, by which the accuracies in its files come out.
- MMLU-Pro: N texts (200) of each model, four fifths of them odd: they say several times what the answer is, or do not end in it.
  Its published answer is that of compute_accuracy.py, which guesses at the last letter where no sentence has one.

A server on this machine says the text. If it is asked for the answer in a form, it gives none, so only rules count. An answer
that is found is compared with the published one, and with what the text names last: the last number, letter, word of the choices,
or box. The second difference is no fault by itself, but a wrong answer that was not published is likely to be among these.
"""

import argparse
import collections
import decimal
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from model_server import Model, served

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The corpora and kinds of the logs, by the beginnings of their names.
LOGS = {"gsm8k": ("gsm8k", "number"), "svamp": ("svamp", "number"), "aqua": ("aqua", "choice"),
        "commonsensqa": ("commonsenseqa", "choice")}
NUMBERS = {"multistep_arithmetic_two", "object_counting"}
YES_NO = {"causal_judgement", "navigate", "sports_understanding", "web_of_lies"}
# Their answers are brackets, lists of words, or words that are neither yes nor no.
OTHERS = {"boolean_expressions", "dyck_languages", "formal_fallacies", "word_sorting"}
MODELS = ["Meta-Llama-3_1-8B-Instruct", "Phi-3-mini-4k-instruct", "gemini-1.5-flash-002", "Mistral-7B-Instruct-v0.2",
          "mathstral-7B", "c4ai-command-r-v01"]
# So many differences of one kind are listed for each corpus.
LISTED = 40

RECORD = re.compile(
    r"(?ms)^\d+st data\n1_th_sampling\nQ: (?P<question>.*?)\nA: Let's think step by step\.(?P<body>.*?)"
    r"\npred_before : (?P<words>.*?)\npred_after : (?P<published>.*?)\npred_list : .*?^GT : (?P<gold>[^\n]*)$")
TRIGGER = re.compile(r"\nTherefore, (?:the answer \(arabic numerals\)|among A through E, the answer) is:?")
# The beginning of a sentence that says the answer. In the middle of one, `then the answer is` may hang on a condition.
SENTENCE = re.compile(r"\b(?:(?:So|Therefore|Thus|Hence),? the|The) (?:correct )?answer is\b")
NUMBER = re.compile(r"[-−]?(?:(?<![\d.,])\.\d+|\d[\d,]*(?:\.\d+)?)")


def lettered(options):
    """Returns the fields of a question with these options."""
    options = [" ".join(option.split()) for option in options]
    return {"kind": "choice", "choices": list(LETTERS[:len(options)]), "options": options}


def squeezed(text):
    return re.sub(r"[\s:]", "", text)


def of_logs(folder):
    for name, (corpus, kind) in LOGS.items():
        text = (folder / f"log/{name}_zero_shot_cot.log").read_text(encoding="utf-8")
        for number, record in enumerate(RECORD.finditer(text), 1):
            body, words = record["body"], squeezed(record["words"])
            trigger = next(found for found in TRIGGER.finditer(body) if squeezed(body[found.end():]) == words)
            row = {"corpus": corpus, "id": f"{corpus}-{number}", "kind": kind}
            if kind == "choice":
                row |= lettered(re.split(r"\s*\([A-E]\)\s", record["question"].rsplit("Answer Choices:", 1)[1])[1:])
            else:
                row["question"] = record["question"].strip()
            said = f"{body[:trigger.start()]}\nAnswer:{body[trigger.end():]}".strip()
            yield row | {"said": said, "published": record["published"].strip() or None, "gold": record["gold"].strip()}


def on_own_line(text):
    """Returns a text with its last sentence that says the answer, or else its last sentence, on a line of its own."""
    starts = [sentence.start() for sentence in SENTENCE.finditer(text)]
    starts = starts or [end.end() for end in re.finditer(r"\. ", text.rstrip())]
    return f"{text[:starts[-1]].rstrip(' ')}\n{text[starts[-1]:]}" if starts else text


def of_bbh(folder, each):
    for path in sorted((folder / "code-davinci-002-outputs/code-davinci-002-cot").glob("*.json")):
        task = path.name.split("_few_shot_template")[0]
        if task in OTHERS:
            continue
        for number, output in enumerate(json.loads(path.read_text(encoding="utf-8"))["outputs"][:each], 1):
            question, said = output["input"].rsplit("\n\nQ: ", 1)[1], output["prediction"]
            if task in NUMBERS:
                row = {"kind": "number", "question": question}
            elif task in YES_NO:
                row = {"kind": "choice", "choices": ["yes", "no"]}
            else:
                row = lettered(re.findall(r"(?m)^\([A-Z]\) (.*)$", question))
            published = said.rsplit("the answer is", 1)[1].strip().rstrip(".") if "the answer is" in said else None
            row |= {"published": published, "gold": output["target"]}
            for corpus, text in [("bbh_line", on_own_line(said)), ("bbh", said)]:
                yield {"corpus": corpus, "id": f"{corpus}-{task}-{number}"} | row | {"said": text}


def published_letter(text):
    """Returns the letter that compute_accuracy.py of MMLU-Pro reads."""
    expressions = [r"answer is \(?([A-J])\)?", r".*[aA]nswer:\s*([A-J])", r"(?s)\b([A-J])\b(?!.*\b[A-J]\b)"]
    return next((found[1] for found in (re.search(expression, text) for expression in expressions) if found), None)


def spread(rows, count):
    """Returns so many rows, evenly spread."""
    count = min(count, len(rows))
    return [rows[at * len(rows) // count] for at in range(count)]


def of_mmlu_pro(folder, each):
    for model in MODELS:
        path = folder / f"eval_results/model_outputs_{model}_5shots.zip"
        if not path.is_file():
            print(f"answers.py: {path} is missing", file=sys.stderr)
            continue
        with zipfile.ZipFile(path) as archive:
            rows = json.loads(archive.read(archive.namelist()[0]))
        several, others, regular = [], [], []
        for row in [row for row in rows if len(row["options"]) > 1]:
            row["said"] = row.get("generated_text") or row.get("model_outputs") or ""
            ends = re.search(r"[Tt]he answer is \(?[A-J]\)?\.?$", row["said"].rstrip())
            (several if row["said"].count("answer is") > 1 else regular if ends else others).append(row)
        few = spread(several, each * 2 // 5)
        odd = few + spread(others, each * 4 // 5 - len(few))
        for row in odd + spread(regular, each - len(odd)):
            task = lettered(row["options"]) | {"published": published_letter(row["said"]), "gold": row["answer"]}
            for corpus, text in [("mmlu_pro_line", on_own_line(row["said"])), ("mmlu_pro", row["said"])]:
                yield {"corpus": corpus, "id": f"{corpus}-{model}-{row['question_id']}"} | task | {"said": text}


def box(text):
    """Returns the content of the last box, as evaluation/parser.py of Qwen2.5-Math finds it before it rewrites it."""
    depth, rest = 1, text.rsplit("boxed{", 1)[-1]
    for at, sign in enumerate(rest):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return rest[:at]
    return rest


def of_math(folder):
    for line in (folder / "evaluation/data/eval_rm_maj_example/math_cot_100.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for number, said in enumerate(row["code"], 1):
            if "boxed{" not in said:
                continue
            is_number = value(row["gt"]) is not None
            yield {"corpus": "math" if is_number else "math_text", "id": f"math-{row['idx']}-{number}",
                   "kind": "number" if is_number else "text", "said": said,
                   "published": row["pred"][number - 1] if is_number else box(said), "gold": row["gt"]}


def texts(folder, path, bbh, mmlu_pro):
    corpora = {"Qwen2.5-Math": of_math, "zero_shot_cot": of_logs, "BIG-Bench-Hard": lambda place: of_bbh(place, bbh),
               "MMLU-Pro": lambda place: of_mmlu_pro(place, mmlu_pro)}
    with path.open("w", encoding="utf-8") as file:
        for name, read in corpora.items():
            if not (folder / name).is_dir():
                print(f"answers.py: {folder / name} is missing", file=sys.stderr)
                continue
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in read(folder / name))


def value(text):
    """Returns the value of a number, or None."""
    try:
        return decimal.Decimal(re.sub(r"[,$%\\\s]", "", text).replace("−", "-").rstrip("."))
    except decimal.InvalidOperation:
        return None


def is_same(kind, one, other):
    """Returns whether two answers are one."""
    if kind == "number" and None not in (value(one), value(other)):
        return value(one) == value(other)
    plain = lambda text: re.sub(r"\s", "", text).strip("().").casefold()
    return plain(one) == plain(other)


def named_last(row):
    """Returns the last thing in a text that could be its answer."""
    said = row["said"]
    if row["kind"] == "text":
        return box(said)
    if row["kind"] == "number":
        found = NUMBER.findall(said)
    else:
        found = re.findall(rf"\b(?:{'|'.join(row['choices'])})\b", said, 0 if "options" in row else re.IGNORECASE)
    return found[-1] if found else None


class Writer(Model):
    """Says the text that a request names, and nothing useful in a form."""

    rows = []

    def said(self, request):
        messages = request["messages"]
        if request.get("response_format") or any(message["role"] == "assistant" for message in messages):
            return "I have said it."
        return self.rows[int(re.search(r"Text (\d+):", json.dumps(messages))[1])]["said"]


def task(number, row):
    """Returns a line of a batch. `below` keeps options in their order, so that a letter stays that of the text."""
    if "options" in row:
        lines = [f"{letter}) {option}" for letter, option in zip(row["choices"], row["options"])]
        question = "\n".join(["Which of the options below is right?", *lines])
    else:
        # A number may have a unit that its question names.
        question = "Yes or no?" if row["kind"] == "choice" else row.get("question", "What is its answer?")
    rule = {"kind": "choice", "choices": row["choices"]} if row["kind"] == "choice" else row["kind"]
    return {"id": str(number), "prompt": f"Text {number}: {question}", "canonical": rule}


def samples(program, rows):
    """Returns the sample that a vote took from each text."""
    Writer.rows = rows
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task(number, row)) + "\n" for number, row in enumerate(rows)))
        words = ["--roleset", "single", "--base-url", served(Writer)[1], "--no-stream", "--threads", "1"]
        subprocess.run([program, "batch", "tasks.jsonl", "-q", "-o", "out", *words], cwd=folder, check=True)
        results = map(json.loads, (folder / "out/results-0.jsonl").read_text().splitlines())
        found = {int(result["task"]): result["vote"]["samples"][0] for result in results}
    assert len(found) == len(rows), f"{len(rows) - len(found)} texts have no result"
    return [found[number] for number in range(len(rows))]


def measure(program, path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counts, listed, rules = collections.defaultdict(collections.Counter), collections.defaultdict(list), collections.Counter()
    for row, sample in zip(rows, samples(program, rows)):
        assert sample["order"] in (None, row.get("choices")), f"{row['id']}: its options were shown in another order"
        corpus, found, published, last = row["corpus"], sample["text"], row["published"], named_last(row)
        counts[corpus]["texts"] += 1
        if found is None:
            continue
        same = lambda other: other is not None and is_same(row["kind"], found, other)
        rules[corpus, sample["found_by"]] += 1
        counted = ["found", "equal" if same(published) else "different" if published else "unpublished"]
        counted += ["right"] * same(row["gold"]) + ["not last"] * (not same(last))
        counts[corpus].update(counted)
        for why in {"different", "unpublished", "not last"}.intersection(counted):
            listed[corpus, why].append(f"{row['id']}: found {found!r} by {sample['found_by']}, published {published!r}, "
                                       f"named last {last!r}, right {row['gold']!r}\n    …{row['said'][-300:]!r}\n")
    columns = ["texts", "found", "equal", "different", "unpublished", "not last", "right"]
    counts["all"] = sum(counts.values(), collections.Counter())
    print(f"{'corpus':14}" + "".join(f"{column:>12}" for column in columns) + "  found by")
    for corpus, count in counts.items():
        by = ", ".join(f"{rule} {number}" for (of, rule), number in sorted(rules.items()) if of == corpus)
        print(f"{corpus:14}" + "".join(f"{count[column]:12}" for column in columns) + f"  {by}".rstrip())
    with path.with_name("different.txt").open("w", encoding="utf-8") as file:
        for (corpus, why), lines in sorted(listed.items()):
            file.write(f"== {corpus}, {why}: {len(lines)}, of which {min(LISTED, len(lines))} follow\n\n")
            file.write("\n".join(lines[:LISTED]) + "\n")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = words.add_subparsers(dest="what", required=True)
    reading = what.add_parser("texts")
    reading.add_argument("folder", type=pathlib.Path)
    reading.add_argument("out", type=pathlib.Path)
    reading.add_argument("--bbh", type=int, default=60)
    reading.add_argument("--mmlu-pro", type=int, default=200)
    measuring = what.add_parser("measure")
    measuring.add_argument("binary", type=pathlib.Path)
    measuring.add_argument("texts", type=pathlib.Path)
    given = words.parse_args()
    if given.what == "texts":
        texts(given.folder, given.out, given.bbh, given.mmlu_pro)
    else:
        measure(given.binary.resolve(), given.texts)


if __name__ == "__main__":
    main()
