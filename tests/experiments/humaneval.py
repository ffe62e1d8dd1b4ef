#!/usr/bin/env python3
"""Makes a file of tasks, and a test of each, out of OpenAI's HumanEval.

    humaneval.py HumanEval.jsonl.gz FOLDER COUNT FROM

FOLDER then has `tasks.jsonl` with COUNT tasks from number FROM on, from 0, and `tests/` with a program for each: it takes a file with code, and
exits with 0 if the task's own assertions hold for it. A fence around the code does not count against it. The signature comes
first in each test, because a function of the prompt that the model need not repeat may be used by the assertions.
"""

import gzip
import itertools
import json
import pathlib
import sys

ORDER = (
    "Complete this Python function. The final text is the whole function with the imports that it needs: "
    "plain Python, without fences and without explanations.\n\n"
)

TEST = '''import re
import sys

source = open(sys.argv[1], encoding="utf-8").read()
fenced = re.search(r"```(?:python)?\\n(.*?)```", source, re.S)
space = {{"__name__": "solution"}}
exec({prompt!r}, space)
exec(fenced.group(1) if fenced else source, space)
exec({test!r}, space)
space["check"](space[{name!r}])
'''


def main():
    source, folder, count, first = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in itertools.islice(lines, first, first + count)]
    with open(folder / "tasks.jsonl", "w", encoding="utf-8") as out:
        for task in tasks:
            out.write(json.dumps({"id": task["task_id"], "prompt": ORDER + task["prompt"]}) + "\n")
            test = folder / "tests" / (task["task_id"] + ".py")
            test.parent.mkdir(parents=True, exist_ok=True)
            test.write_text(
                TEST.format(prompt=task["prompt"], test=task["test"], name=task["entry_point"]), encoding="utf-8")


if __name__ == "__main__":
    main()
