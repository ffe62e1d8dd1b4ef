#!/usr/bin/env python3
"""Three clients from PyPI against `consensus serve` with scripted agents: LangChain, LiteLLM and inspect_ai.

    clients.py BIN

Each client must find the agreed text, the reason why it ended, the tokens of all calls of the run, and the server's own words about an
unknown model. Exit status 1: a client finds something else.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

# LiteLLM otherwise fetches a list of prices from GitHub when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import inspect_ai
import litellm
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from langchain_core.exceptions import ModelNotFoundError
from langchain_openai import ChatOpenAI
from openai_client import Server, refused

QUESTION = "How much is 2+2?"
UNKNOWN = "there is no model `gpt-5`; GET /v1/models lists all"
ITEMS = 10

litellm.suppress_debug_info = True


def tokens(url, answer):
    """The tokens of all calls of the run behind the id of an answer, by the server's row of results."""
    with urllib.request.urlopen(f"{url}/runs/{answer.removeprefix('chatcmpl-')}") as response:
        usage = json.load(response)["usage"]
    assert usage["calls"] > 1, usage
    return usage["prompt"] + usage["completion"]


def langchain(url):
    def model(name):
        return ChatOpenAI(model=name, base_url=url, api_key="none", timeout=1800, max_retries=0, stream_usage=True)

    chat = model("consensus/vote_number")
    keyed = chat.bind(extra_headers={"Idempotency-Key": "langchain"})
    said, again = keyed.invoke(QUESTION), keyed.invoke(QUESTION)
    assert (said.content, said.response_metadata["finish_reason"]) == ("4", "stop"), said
    assert said.usage_metadata["total_tokens"] == tokens(url, said.response_metadata["id"]), said
    assert again.response_metadata == said.response_metadata, again

    chunks = list(chat.stream([("system", "Be brief."), ("human", QUESTION)]))
    whole = sum(chunks[1:], chunks[0])
    assert (whole.content, whole.response_metadata["finish_reason"]) == ("4", "stop"), whole
    assert whole.usage_metadata["total_tokens"] > said.usage_metadata["total_tokens"], whole

    why = refused(ModelNotFoundError, lambda: model("gpt-5").invoke(QUESTION))
    assert UNKNOWN in str(why), why


def lite(url):
    def ask(name, **more):
        return litellm.completion(model=f"openai/{name}", api_base=url, api_key="none", timeout=1800, max_retries=0,
                                  messages=[{"role": "user", "content": QUESTION}], **more)

    said = ask("consensus/vote_number", extra_headers={"Idempotency-Key": "litellm"})
    assert (said.choices[0].message.content, said.choices[0].finish_reason) == ("4", "stop"), said
    assert said.usage.total_tokens == tokens(url, said.id), said
    assert said.consensus["how"] == "voted", said.consensus
    assert ask("consensus/vote_number", extra_headers={"Idempotency-Key": "litellm"}).id == said.id

    chunks = list(ask("consensus/vote_number", stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(chunks)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("4", "stop"), whole
    assert whole.usage.total_tokens == tokens(url, whole.id), whole
    assert "gave a sample" in whole.choices[0].message.reasoning_content, whole

    why = refused(litellm.NotFoundError, lambda: ask("gpt-5"))
    assert UNKNOWN in why.message, why


def inspect(url, folder):
    os.environ |= {"CONSENSUS_BASE_URL": url, "CONSENSUS_API_KEY": "none"}
    samples = [Sample(input=f"How much is {n} + {4 - n}?", target="4") for n in range(ITEMS)]
    task = inspect_ai.Task(dataset=samples, solver=inspect_ai.solver.generate(), scorer=match(numeric=True))

    def evaluate(name):
        patience = {"model_args": {"client_timeout": 1800}, "max_retries": 0}
        return inspect_ai.eval(task, model=f"openai-api/consensus/{name}", log_dir=folder, display="none", **patience)[0]

    log = evaluate("vote_number")
    assert (log.status, len(log.samples)) == ("success", ITEMS), log.error
    assert all((sample.output.completion, sample.output.stop_reason) == ("4", "stop") for sample in log.samples), log.samples
    assert log.results.scores[0].metrics["accuracy"].value == 1, log.results
    total = sum(tokens(url, sample.output.response_id) for sample in log.samples)
    assert total == log.stats.model_usage["openai-api/consensus/vote_number"].total_tokens, log.stats

    log = evaluate("gpt-5")
    assert log.status == "error" and UNKNOWN in log.error.message, log.error


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, Server(binary, "--mock", "--answer", "4") as server:
        langchain(server.url)
        lite(server.url)
        inspect(server.url, folder)
        subprocess.run([binary, "verify", str(server.runs)], check=True, stdout=subprocess.DEVNULL)
    names = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("langchain-openai", "litellm", "inspect-ai"))
    print(f"{names}: each finds the text, its end, the tokens and the reason of a refusal")


main()
