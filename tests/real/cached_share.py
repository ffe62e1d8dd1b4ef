"""Prints the share of prompt tokens that the server reused from the third turn on, from a journal.

Usage: cached_share.py JOURNAL MIN_PERCENT     (exit status 1 if the share is lower)
A turn is one agent's move after the blind opening; the third turn is round 4.
"""

import json
import sys

FIRST_ROUND = 4  # the opening is round 1


def main() -> int:
    path, least = sys.argv[1], float(sys.argv[2])
    prompt = cached = calls = 0
    with open(path, encoding="utf-8") as journal:
        for line in journal:
            event = json.loads(line)["event"]
            if event["type"] == "replied" and int(event["call"].split(".")[0][1:]) >= FIRST_ROUND:
                prompt += event["usage"]["prompt"]
                cached += event["usage"]["cached"]
                calls += 1
    share = 100 * cached / prompt if prompt else 0.0
    print(f"prefix cache: {cached} of {prompt} prompt tokens reused in {calls} calls from the third turn on, {share:.0f} %")
    return 0 if share >= least else 1


if __name__ == "__main__":
    sys.exit(main())
