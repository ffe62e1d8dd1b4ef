#!/usr/bin/env python3
"""Holds `consensus` against AWS's own library: are its signatures right, and does it speak Converse as AWS does?

    bedrock.py BIN

A loopback server stands for Amazon Bedrock. It computes the signature of each request with botocore and refuses one
that differs with 403, as the service does; it answers Converse and ConverseStream. First botocore's own client calls
it, so that the server itself is known to be right. Then a panel of three runs against it: streamed and whole, with
lasting and with temporary keys, with a model's name and with an ARN, and with a wrong secret, which must fail.
"""

import http.server
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import botocore.session

REGION = "eu-central-1"
KEYS = {"AKIDLASTING": ("secret/of+lasting=keys", None), "ASIATEMPORARY": ("secret/of+temporary=keys", "session/token+1==")}
MODEL = "vendor.tiny-v1:0"
ARN = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123"


def expected_signature(handler, body, key):
    """The signature that botocore gives this request, over the headers that the request says it signed."""
    secret, token = KEYS[key]
    signed = re.search(r"SignedHeaders=([^,]+)", handler.headers["authorization"])[1].split(";")
    request = botocore.awsrequest.AWSRequest(
        "POST", f"http://{handler.headers['host']}{handler.path}", data=body,
        headers={name: handler.headers[name] for name in signed if name != "host"})
    request.context["timestamp"] = handler.headers["x-amz-date"]
    auth = botocore.auth.SigV4Auth(botocore.credentials.Credentials(key, secret, token), "bedrock", REGION)
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


def refusal(handler, body):
    """Why the service would refuse this request, if it would."""
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=(\w+)/\d{8}/([\w-]+)/bedrock/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                         handler.headers.get("authorization", ""))
    if not found:
        return "no signature"
    key, region, signed, signature = found.groups()
    must = {"host", "x-amz-date"} | ({"x-amz-security-token"} if handler.headers.get("x-amz-security-token") else set())
    if key not in KEYS or region != REGION or not must <= set(signed.split(";")):
        return f"key {key}, region {region}, signed headers {signed}"
    if handler.headers.get("x-amz-security-token") != KEYS[key][1]:
        return "another session token"
    if signature != expected_signature(handler, body, key):
        return "The request signature we calculated does not match the signature you provided."
    return None


def reply_to(request):
    """What a member of a panel says: an answer of its own, or marks for all labels."""
    form = request.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema")
    if form is None:
        return "4"
    if form["name"] == "answer":
        return json.dumps({"response": "It is 4: " + request["system"][0]["text"][:40]})
    mark = {"feedback": "Right.", "accuracy": 9, "relevance": 9, "completeness": 9, "clarity": 9}
    return json.dumps({label: mark for label in json.loads(form["schema"])["properties"]})


def frame(event, payload):
    head = b""
    for name, value in ((":event-type", event), (":content-type", "application/json"), (":message-type", "event")):
        head += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", len(head) + len(body) + 16, len(head))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + body
    return whole + struct.pack(">I", zlib.crc32(whole))


class Bedrock(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    accepted, refused = [], []

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        why = refusal(self, body)
        (self.refused if why else self.accepted).append(self.path)
        if why:
            return self.answer(403, "application/json", json.dumps({"message": why}).encode())
        text = reply_to(json.loads(body))
        usage = {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120}
        if self.path.endswith("/converse"):
            message = {"role": "assistant", "content": [{"text": text}]}
            whole = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
            return self.answer(200, "application/json", json.dumps(whole).encode())
        events = [("messageStart", {"role": "assistant"})]
        events += [("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text[at:at + 9]}}) for at in range(0, len(text), 9)]
        events += [("contentBlockStop", {"contentBlockIndex": 0}), ("messageStop", {"stopReason": "end_turn"}),
                   ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
        return self.answer(200, "application/vnd.amazon.eventstream", b"".join(frame(*event) for event in events))


def check_the_server(url):
    """botocore's own client must be understood, and a wrong secret refused."""
    session = botocore.session.get_session()
    for key, (secret, token) in KEYS.items():
        def client(with_secret):
            return session.create_client("bedrock-runtime", region_name=REGION, endpoint_url=url, aws_access_key_id=key,
                                         aws_secret_access_key=with_secret, aws_session_token=token,
                                         config=botocore.config.Config(retries={"total_max_attempts": 1}))
        words = {"modelId": ARN, "messages": [{"role": "user", "content": [{"text": "2+2?"}]}]}
        assert client(secret).converse(**words)["output"]["message"]["content"][0]["text"] == "4"
        deltas = [event["contentBlockDelta"]["delta"]["text"] for event in client(secret).converse_stream(**words)["stream"]
                  if "contentBlockDelta" in event]
        assert "".join(deltas) == "4"
        try:
            client("another").converse(**words)
            sys.exit("bedrock.py: the server takes a wrong signature")
        except botocore.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def run(binary, url, folder, key, secret, token, model, words):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CONSENSUS_", "OPENAI_"))}
    environment = {**kept, "HOME": folder, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url, "AWS_REGION": REGION,
                   "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, **({"AWS_SESSION_TOKEN": token} if token else {})}
    command = [binary, "run", "--quiet", "--roleset", "panel_personas", "--members", "analyst,pragmatist,optimist",
               "--thinking", "none", "--runs-dir", f"{folder}/runs", "--model", f"bedrock:{model}", "--prompt", "2+2?", *words]
    finished = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if finished.returncode == 0:
        subprocess.run([binary, "verify", "--last", "--runs-dir", f"{folder}/runs"], check=True, capture_output=True)
    return finished


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bedrock)
    server.handle_error = lambda *_: None  # clients that leave their connections open until they end
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    check_the_server(url)
    Bedrock.accepted.clear()
    Bedrock.refused.clear()
    with tempfile.TemporaryDirectory() as folder:
        for key, (secret, token) in KEYS.items():
            for model in (MODEL, ARN):
                for words in ([], ["--no-stream"]):
                    finished = run(binary, url, folder, key, secret, token, model, words)
                    assert finished.returncode == 0, finished.stderr
        assert not Bedrock.refused and len(Bedrock.accepted) == 8 * 6, (Bedrock.refused, len(Bedrock.accepted))
        finished = run(binary, url, folder, "AKIDLASTING", "another", None, MODEL, [])
        assert finished.returncode == 6 and "does not match the signature" in finished.stderr, finished.stderr
    print(f"bedrock: botocore {botocore.__version__} gives {len(Bedrock.accepted)} requests the same signature, and a wrong secret is refused")


main()
