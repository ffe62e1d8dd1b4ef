"""Model servers on this machine for tests, in OpenAI's form."""

import contextlib
import http.server
import json
import threading
import time


class Model(http.server.BaseHTTPRequestHandler):
    """A model that says `self.said(request)` after `server.seconds`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "test", "object": "model"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.server.seconds)
        message = {"role": "assistant", "content": self.said(request)}
        prompt, completion = self.used(request)
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        self.answer({"id": "c", "object": "chat.completion", "created": 1, "model": "test", "choices": choices, "usage": usage})

    def said(self, _request):
        return "It follows from the task.\nAnswer: 4"

    def used(self, _request):
        """The tokens of the prompt and of the reply."""
        return 100, 12

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A caller that was killed reads nothing.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def served(handler=Model, seconds=0.0):
    """A model server and its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads, server.seconds = True, seconds
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/v1"
