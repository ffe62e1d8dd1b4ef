#!/usr/bin/env python3
"""Traces of runs, received by a collector with OpenTelemetry's own protobuf package.

    otlp.py BIN

A run is killed and resumed, a batch runs, and a server answers. Each span must come once, with the ids that the same records always give.
Exit status 1: a span is missing, comes twice, has another parent, or has a text that was not wanted.
"""

import collections
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from model_server import served
from openai_client import Server
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


class Receiver(http.server.BaseHTTPRequestHandler):
    """A collector. Its first answer to each request is that it is busy."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_busy = body not in self.server.seen
        self.server.seen.add(body)
        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf", self.path
        assert self.headers["api-key"] == "a secret", self.headers
        if not is_busy:
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans.extend(scope.spans)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(503 if is_busy else 200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.daemon_threads = True
    server.seen, server.spans = set(), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def attributes(span):
    return {pair.key: pair.value for pair in span.attributes}


def checked(spans, agents, calls):
    """The spans of one run: each once, with its parent, its time and its names."""
    ids = collections.Counter(span.span_id for span in spans)
    assert set(ids.values()) == {1} and len({span.trace_id for span in spans}) == 1, ids
    kinds = collections.Counter(attributes(span)["gen_ai.operation.name"].string_value for span in spans)
    assert kinds == {"invoke_workflow": 1, "invoke_agent": agents, "chat": calls}, kinds
    known = {span.span_id: span for span in spans}
    for span in spans:
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
        if span.parent_span_id:
            parent = known[span.parent_span_id]
            assert parent.start_time_unix_nano <= span.start_time_unix_nano, span
            assert span.end_time_unix_nano <= parent.end_time_unix_nano, span
    root = next(span for span in spans if not span.parent_span_id)
    assert attributes(root)["consensus.outcome"].string_value == "agreed", root
    assert [event.name for event in root.events][-1] == "gen_ai.evaluation.result", root
    for span in spans:
        if span.name.startswith("chat"):
            about = attributes(span)
            assert about["gen_ai.usage.input_tokens"].int_value > 0 and about["gen_ai.request.model"].string_value, span
            assert list(value.string_value for value in about["gen_ai.response.finish_reasons"].array_value.values) == ["stop"]
    return root


def texts(spans):
    """All texts in spans, as one."""
    return " ".join(str(span) for span in spans)


def killed_and_resumed(binary, folder, collector, url):
    """A run that dies in the middle and goes on: each span comes once."""
    model, base = served(seconds=0.3)
    flags = ["--otlp", url, "--runs-dir", f"{folder}/runs", "--quiet"]
    words = [binary, "run", *flags, "--roleset", "self_consistency", "--base-url", base, "--model", "slow"]
    run = subprocess.Popen([*words, "How much is 2+2?"], stdout=subprocess.DEVNULL)
    replies = 0
    while replies < 2:
        files = list(pathlib.Path(folder, "runs").glob("*/journal.jsonl"))
        replies = files[0].read_text().count('"type":"replied"') if files else 0
        assert run.poll() is None, "it is still under way"
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert collector.spans == [], "nothing is sent before the end"
    model.seconds = 0
    subprocess.run([binary, "resume", *flags, "--last"], check=True, stdout=subprocess.DEVNULL)
    root = checked(collector.spans, 1, 5)
    assert "consensus.resumed" in [event.name for event in root.events], root
    assert "2+2" not in texts(collector.spans), "no text without --otlp-content"
    subprocess.run([binary, "resume", *flags, "--last"], check=True, stdout=subprocess.DEVNULL)
    assert len(collector.spans) == 7, "a run that had ended sends nothing"


def with_content(binary, folder, collector, url):
    collector.spans.clear()
    words = [binary, "run", "--quiet", "--otlp", url, "--otlp-content", "--runs-dir", f"{folder}/content", "--mock", "--answer", "4"]
    subprocess.run([*words, "--roleset", "solver_checker", "How much is 2+2?"], check=True, stdout=subprocess.DEVNULL)
    checked(collector.spans, 2, 4)
    said = texts(collector.spans)
    assert "gen_ai.input.messages" in said and "How much is 2+2?" in said and "gen_ai.output.messages" in said, said


def many(binary, folder, collector, url):
    """A batch and a server send the spans of each of their runs once."""
    collector.spans.clear()
    tasks = pathlib.Path(folder, "tasks.jsonl")
    tasks.write_text("".join(json.dumps({"id": n, "prompt": f"How much is {n}+1?"}) + "\n" for n in range(20)))
    words = [binary, "batch", tasks, "--quiet", "--output", f"{folder}/out", "--otlp", url, "--mock", "--answer", "4", "--roleset", "solver_checker"]
    for _ in range(2):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    runs = collections.defaultdict(list)
    for span in collector.spans:
        runs[span.trace_id].append(span)
    assert len(runs) == 20, len(runs)
    for spans in runs.values():
        checked(spans, 2, 4)
    collector.spans.clear()
    with Server(binary, "--mock", "--answer", "4", "--otlp", url) as server:
        body = {"model": "consensus/solver_checker", "messages": [{"role": "user", "content": "How much is 2+2?"}]}
        request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        run = json.loads(urllib.request.urlopen(request).read())["consensus"]["run"]
    root = checked(collector.spans, 2, 4)
    assert attributes(root)["consensus.run"].string_value == run, root


def unreachable(binary, folder):
    """A collector that is not there is worth a warning."""
    words = [binary, "run", "--otlp", "http://127.0.0.1:9", "--runs-dir", f"{folder}/none", "--mock", "--answer", "4", "2+2"]
    began = time.monotonic()
    run = subprocess.run(words, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "4" and "did not take the spans" in run.stderr, run
    assert "a secret" not in run.stderr and time.monotonic() - began < 30, run.stderr


def main(binary):
    os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "api-key=a%20secret"
    collector, url = receiver()
    with tempfile.TemporaryDirectory() as folder:
        killed_and_resumed(binary, folder, collector, url)
        with_content(binary, folder, collector, url)
        many(binary, folder, collector, url)
        unreachable(binary, folder)
    print("each span came once: of a run that was killed and resumed, of a batch that was started twice, and of a server")


if __name__ == "__main__":
    main(sys.argv[1])
