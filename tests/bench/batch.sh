#!/usr/bin/env bash
# Measures batches: beside a bare client, beside what others write in Python (from PyPI), and for as long as it takes to see
# whether anything grows.
#
#   tests/bench/batch.sh
#
# Makes a Python environment of its own under the cache folder; where the packages cannot be had, that part is left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bench() { cargo bench --locked --quiet --bench bench -- "$1"; }

bench batch
bench votes
bench long

venv=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/rivals
packages=(openai langgraph langgraph-checkpoint-sqlite langchain-openai autogen-agentchat 'autogen-ext[openai]')
if ! "$venv/bin/python" -c 'import openai, langgraph, langchain_openai, autogen_agentchat, autogen_ext' 2>/dev/null; then
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --quiet "${packages[@]}"; then
        echo "batch.sh: others are SKIPPED: their packages cannot be installed" >&2
        exit 0
    fi
fi
RIVALS_PYTHON=$venv/bin/python bench rivals
"$venv/bin/pip" list --format freeze 2>/dev/null |
    grep -iE '^(openai|langgraph|langgraph-checkpoint-sqlite|langchain-openai|autogen-agentchat)==' | paste -sd ' '
