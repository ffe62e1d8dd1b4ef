#!/usr/bin/env python3
"""The Model Context Protocol's own client for Python against `consensus mcp` and the `/mcp` of `consensus serve`.

    mcp_client.py BIN [SECONDS]     scripted agents, and a run of SECONDS seconds by a client that waits for 60; 50 by default

The client checks each result against the schema of its tool. Exit status 1: one is not valid, or says something else.
"""

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from model_server import served
from openai_client import Server

MOCK = ["--mock", "--answer", "4"]
TOOLS = ["run", "start", "status", "result", "cancel", "plan", "verify", "review_change"]
QUESTION = {"task": "How much is 2+2?", "canonical": "number"}
CHANGE = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"

# The calls of a long run, one after another. A server that says nothing for five minutes is given up.
CALLS = 5

# Clients give up a call after this time, unless they are told otherwise.
PATIENCE = 60


def one_by_one(url):
    """The flags of a server whose runs make their calls one after another."""
    return ["--roleset", "self_consistency", "--calls-at-once", "1", "--base-url", url, "--model", "slow"]


@contextlib.asynccontextmanager
async def stdio(binary, *words):
    """A session with a server that the client starts and ends."""
    server = StdioServerParameters(command=binary, args=["mcp", "--quiet", *words])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def over_http(url):
    """A session with a server that serves many clients."""
    async with streamable_http_client(url.removesuffix("/v1") + "/mcp") as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


async def called(session, tool, /, **arguments):
    """The report of a tool."""
    result = await asyncio.wait_for(session.call_tool(tool, arguments), PATIENCE)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def every_tool(session):
    """All that the server offers, once."""
    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS, tools
    notices = []

    async def notice(progress, _total, message):
        notices.append((progress, message))

    ran = (await session.call_tool("run", QUESTION, progress_callback=notice)).structured_content
    assert (ran["status"], ran["outcome"], ran["how"], ran["text"]) == ("ended", "agreed", "voted", "4"), ran
    assert "Solver gave a sample" in str(notices) and notices == sorted(notices), notices
    run = ran["run"]
    assert await called(session, "status", run=run) == await called(session, "result", run=run) == ran
    verified = await called(session, "verify", run=run)
    assert (verified["verified"], verified["journal_head"]) == (True, ran["journal_head"]), verified
    planned = await called(session, "plan", **QUESTION)
    assert planned["at_once"]["calls"] == 3 and planned["roleset"] == "vote_number", planned
    reviewed = await called(session, "review_change", diff=CHANGE)
    assert "4 of 4 reviewers approved" in reviewed["text"], reviewed
    wrong = await session.call_tool("run", {"task": "2+2", "roleset": "gpt-5"})
    assert wrong.is_error and "there is no roleset `gpt-5`; the rolesets are: " in wrong.content[0].text, wrong
    await resources_and_prompts(session, run)


async def resources_and_prompts(session, run):
    """The parts of a run, and a roleset by hand."""
    templates = (await session.list_resource_templates()).resource_templates
    for template in templates:
        read = await session.read_resource(template.uri_template.replace("{run}", run))
        text, kind = read.contents[0].text, read.contents[0].mime_type
        assert run in text and kind == template.mime_type, (template, text[:200])
    listed = (await session.list_resources()).resources
    assert f"consensus://runs/{run}/result" in [str(resource.uri) for resource in listed], listed
    names = [prompt.name for prompt in (await session.list_prompts()).prompts]
    assert "vote_number" in names and "reviewers_f1" not in names, names
    prompt = await session.get_prompt("vote_number", {"task": "How much is 6*7?"})
    assert "vote_number" in prompt.messages[0].content.text and "6*7" in prompt.messages[0].content.text, prompt


async def outlives(binary, seconds):
    """A run that is longer than the patience of its client, or than its client and its server live."""
    with tempfile.TemporaryDirectory() as folder:
        model, url = served(seconds=seconds / CALLS)
        words = [*one_by_one(url), "-o", folder]
        began = time.monotonic()
        async with stdio(binary, *words) as session:
            ran = await called(session, "run", task="How much is 2+2?")
            calls = 1
            while ran["status"] == "running":
                ran = await called(session, "result", run=ran["run"])
                calls += 1
            took = time.monotonic() - began
            assert (ran["status"], ran["text"]) == ("ended", "4") and took >= seconds, ran
            stopped = await called(session, "start", task="How much is 3+1?")
            cancelled = await called(session, "cancel", run=stopped["run"])
            assert cancelled["status"] == "stopping", cancelled
        model.seconds = 0.1
        async with stdio(binary, *words) as session:
            left = await called(session, "start", task="How much is 1+3?")
        # The client has gone, and the server with it.
        async with stdio(binary, *words) as session:
            ended = await called(session, "result", run=left["run"])
            assert (ended["status"], ended["text"]) == ("ended", "4"), ended
            gone = await session.call_tool("status", {"run": stopped["run"]})
            assert gone.is_error or gone.structured_content["status"] == "cancelled", gone
    print(f"a run of {took:.0f} s came to its end within {calls} calls of less than {PATIENCE} s; one outlived its client and its server")


def as_task(binary, seconds):
    """A long run as the task of a client that knows tasks, written by hand: neither Python's client nor Node's knows them."""
    with tempfile.TemporaryDirectory() as folder:
        _, url = served(seconds=seconds / CALLS)
        command = [binary, "mcp", "--quiet", *one_by_one(url), "-o", folder]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        numbers = itertools.count()

        def say(**message):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        def ask(method, **params):
            say(id=next(numbers), method=method, params=params)
            answer = json.loads(server.stdout.readline())
            assert "result" in answer, answer
            return answer["result"]

        about = {"name": "by hand", "version": "1"}
        knows = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        ask("initialize", protocolVersion="2025-11-25", capabilities=knows, clientInfo=about)
        say(method="notifications/initialized")
        began = ask("tools/call", name="run", arguments={"task": "How much is 2+2?"})
        assert (began["resultType"], began["status"]) == ("task", "working"), began
        task = ask("tasks/get", taskId=began["taskId"])
        while task["status"] == "working":
            time.sleep(task["pollIntervalMs"] / 1000)
            task = ask("tasks/get", taskId=began["taskId"])
        assert task["status"] == "completed" and task["result"]["structuredContent"]["text"] == "4", task
        second = ask("tools/call", name="start", arguments={"task": "How much is 3+1?"})["structuredContent"]["run"]
        ask("tasks/cancel", taskId=second)
        while task["status"] != "cancelled":
            task = ask("tasks/get", taskId=second)
        server.stdin.close()
        assert server.wait() == 0, server.returncode
    print("a run came to its end as a task, and another one was cancelled as one")


async def main(binary, seconds):
    with tempfile.TemporaryDirectory() as folder:
        async with stdio(binary, *MOCK, "-o", folder) as session:
            await every_tool(session)
    print("standard input and output: every tool, resource and prompt")
    with Server(binary, *MOCK) as server:
        async with over_http(server.url) as session:
            await every_tool(session)
    print("HTTP: every tool, resource and prompt")
    await asyncio.gather(outlives(binary, seconds), asyncio.to_thread(as_task, binary, seconds))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 50.0))
