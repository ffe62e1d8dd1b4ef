"""A model server on this machine that answers `4` after a while."""

import contextlib
import http.server
import json
import threading
import time


class Slow(http.server.BaseHTTPRequestHandler):
    """A model that answers after `server.seconds`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "slow", "object": "model"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.seconds)
        message = {"role": "assistant", "content": "It follows from the task.\nAnswer: 4"}
        usage = {"prompt_tokens": 100, "completion_tokens": 12, "total_tokens": 112}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        self.answer({"id": "c", "object": "chat.completion", "created": 1, "model": "slow", "choices": choices, "usage": usage})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def slow_model(seconds):
    """A model that answers after so many seconds, and its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads, server.seconds = True, seconds
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/v1"
