#!/usr/bin/env python3
"""Runs llama.cpp's own HTTP server (from the Python package xllamacpp) on a loopback port.

Prints exactly one line on stdout, `listening http://127.0.0.1:PORT`, when the model is loaded;
the server's log goes to stderr. Ends on SIGTERM, SIGINT, or when its parent ends.

Two agents talk in turns, and each wants its own conversation to stay in the prefix cache. The
server gives a request to the idle slot that shares the longest prefix with it: so one slot for
each agent, and a cache that is not unified.
"""

import argparse
import ctypes
import os
import signal
import sys
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--ctx", type=int, default=8192, help="tokens of context for each conversation")
    parser.add_argument("--parallel", type=int, default=2, help="slots: one for each agent")
    parser.add_argument("--threads", type=int, default=max(1, min(8, os.cpu_count() or 1)))
    parser.add_argument("--alias", help="the model name that /v1/models shows")
    args = parser.parse_args()
    # The library does not say what it could not open.
    if not os.access(args.model, os.R_OK) or not os.path.isfile(args.model):
        parser.error(f"--model: cannot read {args.model}")
    return args


def die_with_parent(parent):
    """Linux: the kernel ends this process, even inside the library, when its parent ends."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("llama_server.py: the parent has ended")


def die_at_once_on_signals():
    """There is nothing to clean up, and Python's own handlers would wait for the library."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def main():
    parent = os.getppid()
    args = options()
    die_at_once_on_signals()
    die_with_parent(parent)

    # The library may print: stdout is kept for the one line.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    if args.alias:
        params.model_alias = {args.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_parallel = args.parallel
    params.n_ctx = args.ctx * args.parallel
    params.kv_unified = False
    params.cache_ram_mib = 512  # a conversation that loses its slot is kept here
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.endpoint_props = True
    params.ui = False

    server = xllamacpp.Server(params)  # returns when the model is loaded
    die_at_once_on_signals()  # in case the library put in its own
    print(f"listening {server.listening_address}", file=stdout, flush=True)
    while os.getppid() == parent:
        time.sleep(0.5)


if __name__ == "__main__":
    main()
