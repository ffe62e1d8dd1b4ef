"""Measures how much of a growing prompt a model server reuses, from the third turn on.

Usage: prefix_cache.py BIN SERVER_URL RUNS_DIR MIN_PERCENT     (exit status 1 if the share is lower)

Small models do not talk as long as one would like. So a relay stands between the program and the real
server: it passes every prompt on, has the server compute it (one token of reply), keeps the server's own
count of reused tokens, and hands back an envelope that keeps the talk going. The server has not written
that envelope, so it counts as new in the next prompt: the share is a lower bound. The short comparisons of two
texts, which grow from no conversation, pass through the server too, but are not counted.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import threading
import urllib.request

ROUNDS = 12  # the default of `max_rounds`
FIRST_ROUND = 4  # the opening is round 1, so the third turn is round 4


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = ""

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        form = request.get("response_format")
        request["max_tokens"] = 1
        body = json.dumps(request).encode()
        ask = urllib.request.Request(self.upstream + "/chat/completions", body, {"content-type": "application/json"})
        with urllib.request.urlopen(ask, timeout=600) as reply:
            usage = json.load(reply)["usage"]
        text = self.envelope(form, len(request["messages"])) if form else "Answer: Both"
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        answer = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    @staticmethod
    def envelope(form, count):
        shape = form["json_schema"]["schema"]["anyOf"][0]["properties"]
        role = shape["role"]["enum"][0]
        return json.dumps({
            "role": role,
            "domain": shape["domain"]["enum"][0],
            "task_understanding": "Find a name for a cat.",
            "meta": {"change": {"by": "objection", "detail": "the name before was taken already"}},
            "public_message": "I have thought of another name, which nobody has put forward so far.",
            "artifact": {"type": "results", "content": {"summary": "names that were put forward"}},
            "needs_from_peer": [],
            "handoff_to": "",
            "status": "PROPOSED",
            "final_solution": {"canonical_text": f"{role} names the cat number {count}."},
        })


def main() -> int:
    binary, Relay.upstream, runs, least = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), float(sys.argv[4])
    relay = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    threading.Thread(target=relay.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{relay.server_address[1]}/v1"
    arguments = ["--model", "any", "--base-url", url, "--runs-dir", str(runs), "--seed", "1", "--no-stream", "-q"]
    talk = ["--roleset", "writer_physicist", "--thinking", "none", "--max-rounds", str(ROUNDS)]
    run = subprocess.run([binary, "run", *arguments, *talk, "--prompt", "Find a name for a cat."], check=False)
    if run.returncode != 3:  # the talk never agrees
        print(f"the talk ended with exit code {run.returncode}", file=sys.stderr)
        return 1
    prompt = cached = calls = 0
    for line in (max(runs.iterdir()) / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)["event"]
        is_turn = event["type"] == "replied" and ".envelope." in event["call"]
        if is_turn and int(event["call"].split(".")[0][1:]) >= FIRST_ROUND:
            prompt += event["usage"]["prompt"]
            cached += event["usage"]["cached"]
            calls += 1
    share = 100 * cached / prompt if prompt else 0.0
    print(f"prefix cache: {cached} of {prompt} prompt tokens reused in {calls} turns from the third on, {share:.0f} %")
    return 0 if share >= least else 1


if __name__ == "__main__":
    sys.exit(main())
