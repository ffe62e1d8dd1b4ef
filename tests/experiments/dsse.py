#!/usr/bin/env python3
"""Holds the records of `consensus approve` against an independent library: securesystemslib, which TUF and in-toto use.

    dsse.py BIN

A change to a repository of its own is approved by scripted reviewers. The library, which knows nothing of this program,
must find a quorum of signatures on the in-toto statement in the record with the public keys of the roster, and must find
none any more when the payload, a signature or the keys are others. Of a thousand envelopes that were changed somewhere,
`consensus verify` accepts those that the library accepts, and no other.
"""

import base64
import copy
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey


def run(*words, cwd):
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout


def approved(program, folder):
    """A record, and the roster that it was made under."""
    repository = folder / "repository"
    repository.mkdir()
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org")
    run(*git, "init", "-q", "-b", "main", cwd=repository)
    (repository / "a.txt").write_text("one\n")
    run(*git, "add", ".", cwd=repository)
    run(*git, "commit", "-qm", "first", cwd=repository)
    run(*git, "switch", "-q", "--detach", cwd=repository)
    patch = folder / "change.patch"
    patch.write_text("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n")
    run(program, "keys", "generate", "keys", "--mock", "--quiet", cwd=folder)
    run(program, "approve", "--repo", "repository", "--change", "change.patch", "--keys", "keys", "--mock", "--quiet",
        "-o", "record.json", cwd=folder)
    return json.loads((folder / "record.json").read_text()), json.loads((folder / "keys/roster.json").read_text())


def keys(roster):
    """The reviewers' keys, by the names that envelopes call them."""
    found = []
    for seat in roster["reviewers"]:
        name = hashlib.sha256(bytes.fromhex(seat["key"])).hexdigest()
        found.append(SSlibKey(name, "ed25519", "ed25519", {"public": seat["key"]}))
    return found


def mutated(envelope, draw):
    """An envelope that somebody has changed: a bit, a signature that is gone, twice, or under another's name."""
    bent = copy.deepcopy(envelope)
    signatures = bent["signatures"]
    one = draw.randrange(len(signatures))

    def flip(text):
        raw = bytearray(base64.b64decode(text))
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        return base64.b64encode(bytes(raw)).decode()

    match draw.randrange(7):
        case 0:
            bent["payload"] = flip(bent["payload"])
        case 1:
            signatures[one]["sig"] = flip(signatures[one]["sig"])
        case 2:
            signatures.pop(one)
        case 3:
            signatures[one] = dict(signatures[one - 1])
        case 4:
            signatures[one]["keyid"] = signatures[one - 1]["keyid"]
        case 5:
            at = draw.randrange(len(bent["payloadType"]))
            bent["payloadType"] = bent["payloadType"][:at] + "x" + bent["payloadType"][at:]
        case 6:
            # The same signatures in another order are the same proof.
            draw.shuffle(signatures)
    return bent


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        check(program, pathlib.Path(folder))


def check(program, folder):
    record, roster = approved(program, folder)
    quorum, reviewers = 3, keys(roster)
    accepted = Envelope.from_dict(copy.deepcopy(record["envelope"])).verify(reviewers, quorum)
    assert len(accepted) >= quorum, accepted
    payload = json.loads(Envelope.from_dict(copy.deepcopy(record["envelope"])).payload)
    assert payload["_type"] == "https://in-toto.io/Statement/v1", payload
    assert payload["subject"][0]["digest"]["sha256"] == hashlib.sha256(record["change"].encode()).hexdigest(), payload

    def refused(what, bend, by=reviewers, threshold=quorum):
        envelope = copy.deepcopy(record["envelope"])
        bend(envelope)
        try:
            Envelope.from_dict(envelope).verify(by, threshold)
        except (VerificationError, ValueError):
            return
        raise SystemExit(f"dsse: {what} was accepted")

    refused("more than there are", lambda e: None, threshold=len(record["envelope"]["signatures"]) + 1)
    refused("another payload", lambda e: e.update(payload=e["payload"][:-8] + "AAAAAAA="))
    refused("one signature twice", lambda e: e["signatures"].__setitem__(1, dict(e["signatures"][0])))
    refused("fewer than a quorum", lambda e: e["signatures"].pop())
    refused("the keys of others", lambda e: None, by=reviewers[:2])
    draw, both = random.Random(33), 0
    for number in range(1000):
        envelope = mutated(record["envelope"], draw)
        try:
            theirs = len(Envelope.from_dict(copy.deepcopy(envelope)).verify(reviewers, quorum)) >= quorum
        except (VerificationError, ValueError):
            theirs = False
        bent = folder / "bent.json"
        bent.write_text(json.dumps({**record, "envelope": envelope}))
        said = subprocess.run([program, "verify", str(bent), "--keys", str(folder / "keys")], capture_output=True)
        assert said.returncode in (0, 7), said
        assert theirs == (said.returncode == 0), f"{number}: {envelope}: {said}"
        both += theirs
    assert 0 < both < 1000, both
    print(f"dsse: securesystemslib finds {len(accepted)} signatures on the in-toto statement, and refuses five forgeries;")
    print(f"dsse: of 1000 changed envelopes it accepts {both}, and consensus verify the very same")


main()
