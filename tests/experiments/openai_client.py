#!/usr/bin/env python3
"""OpenAI's own clients against `consensus serve`, Python's here and the one for Node beside it.

    openai_client.py BIN mock NODE_MODULES     scripted agents; NODE_MODULES has the npm package `openai`
    openai_client.py BIN real URL              agents on the model server at URL, one question

Each answer and each chunk must be valid by the types that the client declares. Exit status 1: one is not, or says something else.
"""

import pathlib
import subprocess
import sys
import tempfile

import openai
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How much is 2+2?"}]


class Server:
    """A running server; it ends with the block."""

    def __init__(self, binary, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.runs = pathlib.Path(self.folder.name) / "served"
        command = [binary, "serve", "--quiet", "--listen", "127.0.0.1:0", "--output", str(self.runs), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        status = self.process.wait()
        assert status == 0, f"the server ended with {status}"


def refused(kind, call):
    """The error of this kind that a call must raise."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def streamed(client, **more):
    """The text, the reasoning, the end and the usage of a stream."""
    text, reasoning, end, usage = "", "", None, None
    stream = client.chat.completions.create(messages=QUESTION, stream=True, stream_options={"include_usage": True}, **more)
    for chunk in stream:
        ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            end = choice.finish_reason or end
    return text, reasoning, end, usage


def responses(client):
    """The newer of the two forms, whole and streamed."""
    ask = {"model": "consensus/solver_checker", "instructions": "Be brief.", "input": "How much is 2+2?"}
    said = client.responses.create(**ask)
    Response.model_validate(said.model_dump(), strict=True)
    assert (said.output_text, said.status) == ("4", "completed"), said
    events = list(client.responses.create(stream=True, **ask))
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event.model_dump(), strict=True)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    story = "".join(event.delta for event in events if event.type == "response.reasoning_summary_text.delta")
    assert text == "4" and "wrote a draft" in story, (text, story)
    assert events[-1].response.output_text == "4", events[-1]


def mock(binary, modules):
    with Server(binary, "--mock", "--answer", "4") as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, _strict_response_validation=True)
        models = [Model.model_validate(model.model_dump(), strict=True).id for model in client.models.list()]
        assert "consensus/vote_number" in models, models
        assert client.models.retrieve("consensus/vote_number").owned_by == "consensus"

        said = client.chat.completions.create(model="consensus/solver_checker", messages=QUESTION, seed=7, temperature=0.3)
        ChatCompletion.model_validate(said.model_dump(), strict=True)
        assert (said.choices[0].message.content, said.choices[0].finish_reason) == ("4", "stop"), said
        assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens
        assert said.model_extra["consensus"]["how"] == "independent", said.model_extra

        text, reasoning, end, usage = streamed(client, model="consensus/vote_number")
        assert (text, end) == ("4", "stop") and "gave a sample" in reasoning and usage.total_tokens > 0, reasoning

        choice = client.chat.completions.create(model="consensus/mcq_reasoner_auditor", messages=QUESTION,
                                                extra_body={"consensus": {"choices": ["3", "4"]}})
        assert choice.choices[0].message.content == "4", choice

        responses(client)

        def key(content):
            return client.chat.completions.create(model="consensus/solver_checker", extra_headers={"Idempotency-Key": "k"},
                                                  messages=[{"role": "user", "content": content}])
        assert key("How much is 2+2?").id == key("How much is 2+2?").id
        refused(openai.UnprocessableEntityError, lambda: key("How much is 3+3?"))
        refused(openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-5", messages=QUESTION))
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        why = refused(openai.BadRequestError, lambda: client.chat.completions.create(
            model="consensus/solver_checker", messages=QUESTION, tools=tools))
        assert why.param == "tools" and "single model" in why.message, why
        script = pathlib.Path(__file__).with_name("openai_client.mjs")
        subprocess.run(["node", str(script), server.url, modules], check=True)
    subprocess.run([binary, "verify", str(server.runs)], check=True, stdout=subprocess.DEVNULL)
    print(f"openai {openai.__version__} and the client for Node: each answer, chunk and error is one that they know")


def real(binary, url):
    with Server(binary, "--base-url", url) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=1800, _strict_response_validation=True)
        text, reasoning, end, usage = streamed(client, model="consensus/vote_number")
        print(f"{reasoning}answer: {text!r} ({end}); {usage.total_tokens} tokens")
        assert end == "stop" and usage.total_tokens > 0
    subprocess.run([binary, "verify", str(server.runs)], check=True)


if __name__ == "__main__":
    {"mock": mock, "real": real}[sys.argv[2]](sys.argv[1], sys.argv[3])
