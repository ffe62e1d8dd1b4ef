#!/usr/bin/env python3
"""What each field of an envelope costs: the mean tokens of the fields in the envelopes of batches, by the tokenizer of a server.

    envelopes.py URL BATCH...       URL is that of llama.cpp's server, without /v1; BATCH is the folder of a batch

Prints, for each roleset of each batch, the tokens of an envelope as it was written, those without white space between its fields,
and the share of each field in the latter.
"""

import json
import pathlib
import sys
import urllib.request


def tokens(url, text):
    body = json.dumps({"content": text}).encode()
    request = urllib.request.Request(f"{url}/tokenize", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return len(json.load(answer)["tokens"])


def envelopes(folder):
    """Yields the roleset, the object and the tokens of each envelope."""
    rolesets = {}
    for path in sorted(pathlib.Path(folder).glob("journal-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            event = record["event"]
            if event["type"] == "opened":
                rolesets[record["run"]] = event["setup"]["roleset"]
            elif event["type"] == "replied" and ".envelope." in event["call"]:
                try:
                    said = json.loads(event["reply"]["text"])
                except ValueError:
                    continue
                if isinstance(said, dict) and "final_solution" in said:
                    yield rolesets[record["run"]], said, event["usage"]["completion"]


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main(url, folders):
    for folder in folders:
        found = {}
        for roleset, said, count in envelopes(folder):
            found.setdefault(roleset, []).append((said, count))
        for roleset, all_said in sorted(found.items()):
            of = len(all_said)
            written = sum(count for _, count in all_said) / of
            bare = sum(tokens(url, compact(said)) for said, _ in all_said) / of
            print(f"{folder}, {roleset}: {of} envelopes, {written:.0f} tokens as written, {bare:.0f} without white space")
            fields = {}
            for said, _ in all_said:
                for name, value in said.items():
                    fields[name] = fields.get(name, 0) + tokens(url, compact({name: value})[1:-1] + ",")
            for name, sum_of in sorted(fields.items(), key=lambda field: -field[1]):
                print(f"  {sum_of / of:5.1f}  {name}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1].removesuffix("/v1"), sys.argv[2:])
