#!/usr/bin/env python3
"""What a task demands in plain words: how much of it is found, and what checking it is worth, on IFEval.

    demands.py rules BIN IFEVAL.jsonl                   the rules that are found, beside those that IFEval states; no model
    demands.py prose BIN TEXT...                        the rules that are found in texts that state none; no model
    demands.py tasks IFEVAL.jsonl                       the prompts as lines for `consensus batch`
    demands.py plain URL MODEL IFEVAL.jsonl OUT.jsonl   one plain call for each prompt
    demands.py texts RUNS                               the text of each run in a folder of `consensus batch`, as it is printed

IFEVAL.jsonl has the lines of google-research's `instruction_following_eval/data/input_data.jsonl`. The last two write lines with `key`
and `response`, which the set's own scorer grades. A run without agreement answers with its leading draft.
"""

import collections
import json
import pathlib
import subprocess
import sys
import urllib.request

KINDS = {
    "number_words": "words", "number_sentences": "sentences", "number_bullet_lists": "bullets", "frequency": "mentions",
    "forbidden_words": "mentions", "existence": "mentions", "english_lowercase": "letters", "english_capital": "letters",
    "number_paragraphs": "paragraphs", "quotation": "quoted", "end_checker": "ends_with", "no_comma": "excludes",
    "response_language": "language", "json_format": "json",
}
LANGUAGES = {
    "kn": "kan", "mr": "mar", "vi": "vie", "ru": "rus", "hi": "hin", "bg": "bul", "gu": "guj", "te": "tel", "ko": "kor", "fi": "fin",
    "ta": "tam", "bn": "ben", "th": "tha", "ur": "urd", "fa": "pes", "pa": "pan", "ne": "nep", "de": "deu", "pt": "por", "it": "ita",
    "ar": "ara", "sw": "swh",
}


def load(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def found_rules(binary, prompt):
    words = [binary, "run", "--dry-run", "--format", "json", "--mock", "--answer", "x", f"--prompt={prompt}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["constraints"]


def states(name, wanted, rule):
    """Whether a rule that was found is this one of IFEval. A bound may be stricter by one, since "less than" excludes it."""
    low, high = rule.get("min"), rule.get("max")
    if KINDS.get(name) != rule["kind"]:
        return False
    if "relation" in wanted:
        count = wanted.get("num_words") or wanted.get("num_sentences") or wanted.get("frequency")
        same = "keyword" not in wanted or rule["text"].lower() == wanted["keyword"].lower()
        if wanted["relation"] == "at least":
            return same and low is not None and low in (count, count + 1)
        return same and high is not None and high in (count, count - 1)
    if name in ("number_bullet_lists", "number_paragraphs"):
        return low == high == (wanted.get("num_bullets") or wanted.get("num_paragraphs"))
    if name == "forbidden_words":
        return high == 0 and rule["text"].lower() in [word.lower() for word in wanted["forbidden_words"]]
    if name == "existence":
        return bool(low) and rule["text"].lower() in [word.lower() for word in wanted["keywords"]]
    if name in ("english_lowercase", "english_capital"):
        return rule["case"] == ("lower" if name == "english_lowercase" else "upper")
    if name == "response_language":
        return rule["code"] == LANGUAGES.get(wanted["language"])
    if name == "end_checker":
        return rule["text"].lower() == wanted["end_phrase"].lower()
    return True


def rules(binary, path):
    stated, hit, wrong = collections.Counter(), collections.Counter(), []
    for row in load(path):
        found, used = found_rules(binary, row["prompt"]), set()
        for full, given in zip(row["instruction_id_list"], row["kwargs"]):
            name = full.split(":")[1]
            if name not in KINDS:
                continue
            wanted = {key: value for key, value in given.items() if value is not None}
            same = [at for at, rule in enumerate(found) if states(name, wanted, rule)]
            used.update(same)
            needed = len(set(wanted.get("forbidden_words") or wanted.get("keywords") or [0]))
            stated[name] += 1
            hit[name] += len(same) >= needed
        wrong += [(row["key"], rule) for at, rule in enumerate(found) if at not in used]
    print("| rule of IFEval | stated | found |\n|---|---|---|")
    for name in sorted(stated):
        print(f"| `{name}` | {stated[name]} | {hit[name]} |")
    print(f"| all | {sum(stated.values())} | {sum(hit.values())} |\n\n{len(wrong)} rules were found that IFEval does not state:")
    for key, rule in wrong:
        print(f"  {key}: {json.dumps(rule, ensure_ascii=False)}")


def prose(binary, paths):
    lines = [line for path in paths for line in pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    hits = [(line, found) for line in lines if (found := found_rules(binary, line.replace("\0", " ")))]
    print(f"{len(lines)} lines, {len(hits)} with a rule")
    for line, found in hits:
        print(f"  {line[:200]!r}: {json.dumps(found, ensure_ascii=False)}")


def tasks(path):
    for row in load(path):
        print(json.dumps({"id": str(row["key"]), "prompt": row["prompt"]}, ensure_ascii=False))


def plain(url, model, path, out):
    done = {row["key"] for row in load(out)} if pathlib.Path(out).exists() else set()
    for row in load(path):
        if row["key"] in done:
            continue
        body = {"model": model, "messages": [{"role": "user", "content": row["prompt"]}], "temperature": 0.7, "seed": 1, "max_tokens": 800}
        request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply = json.load(urllib.request.urlopen(request, timeout=900))
        text, tokens = reply["choices"][0]["message"]["content"], reply["usage"]["completion_tokens"]
        with open(out, "a", encoding="utf-8") as file:
            file.write(json.dumps({"key": row["key"], "response": text, "tokens": tokens}, ensure_ascii=False) + "\n")


def texts(folder):
    for path in sorted(pathlib.Path(folder).glob("results-*.jsonl")):
        for result in load(path):
            answers = result["vote"]["answers"]
            text = result["text"] or (answers[0]["text"] if answers else "")
            row = {"key": int(result["task"]), "response": text, "tokens": result["usage"]["completion"], "outcome": result["outcome"]}
            print(json.dumps(row, ensure_ascii=False))


def main():
    commands = {"rules": (rules, 2), "tasks": (tasks, 1), "plain": (plain, 4), "texts": (texts, 1)}
    name, words = sys.argv[1:2], sys.argv[2:]
    if name == ["prose"] and len(words) > 1:
        return prose(words[0], words[1:])
    command, count = commands.get(name[0] if name else "", (None, 0))
    if command is None or len(words) != count:
        sys.exit(__doc__)
    return command(*words)


if __name__ == "__main__":
    main()
