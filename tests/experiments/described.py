#!/usr/bin/env python3
"""The description of `consensus serve` against what it does, by schemathesis.

    described.py BIN N     N cases for each operation at most in each of its phases; agents are scripted

No answer may be a fault of the server, and each must have a status, a type and a form that the description promises. Half of the
requests for an answer are mended, so that they reach a run. Exit status 1: an answer breaks a promise.
"""

import os
import pathlib
import subprocess
import sys

import schemathesis

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


# The fields of a request that mostly make no sense together.
AT_ODDS = ("background consensus conversation functions logprobs max_completion_tokens max_output_tokens max_tokens n previous_response_id "
           "response_format text tools").split()


@schemathesis.hook
def map_body(context, body):
    """A request that names a roleset and asks a question, made of one in two."""
    if isinstance(body, dict) and len(str(body)) % 2:
        question = [{"role": "user", "content": "How much is 2+2?"}]
        questions = {name: question for name in ("messages", "input") if name in body}
        return {name: value for name, value in body.items() if name not in AT_ODDS} | {"model": "consensus/solver_checker"} | questions
    return body


def main(binary, most):
    from openai_client import Server

    environment = os.environ | {"SCHEMATHESIS_HOOKS": "described", "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    with Server(binary, "--mock", "--answer", "4") as server:
        description = server.url.removesuffix("/v1") + "/openapi.json"
        command = ["schemathesis", "run", description, "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]
        command = [str(pathlib.Path(sys.executable).with_name(command[0])), *command[1:]]
        command += ["--max-examples", most, "--seed", "1", "--continue-on-failure", "--warnings", "off"]
        status = subprocess.run(command, env=environment, check=False).returncode
    subprocess.run([binary, "verify", str(server.runs)], check=True)
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
