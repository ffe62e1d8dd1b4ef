#!/usr/bin/env bash
# Measures what one decision of the protocol is worth: builds the program without it, and runs the suite.
#
#   tests/experiments/ablate.sh NAME OUT.jsonl [words for agreement.py]
#   tests/experiments/ablate.sh check            only whether every patch still applies and compiles (no model)
#
# NAME is a patch in tests/experiments/ablations; its first line says what it changes. What flags and parameters can
# change needs no patch: `tests/experiments/run.sh tasks OUT.jsonl -- --thinking none`, or `--params '{"adopt": "text"}'`.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
patches=$root/tests/experiments/ablations
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus
# Always the same place, so that what was built is found again.
tree=$cache/ablation-tree
target=${CARGO_TARGET_DIR:-$cache/ablations}
if [[ ${1:-} != check && ! ($# -ge 2 && -r $patches/$1.patch) ]]; then
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" >&2
    for patch in "$patches"/*.patch; do
        printf '  %-20s %s\n' "$(basename "$patch" .patch)" "$(head -n 1 "$patch")" >&2
    done
    exit 64
fi
mkdir -p "$cache"
exec 9>"$tree.lock"
flock 9
rm -rf "$tree"
mkdir "$tree"
cleanup() { rm -rf "$tree"; }
trap cleanup EXIT

# A copy of what is tracked, to be patched.
copy() { git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$tree" -xf -; }

if [[ ${1:-} == check ]]; then
    copy
    cd "$tree"
    for patch in "$patches"/*.patch; do
        name=$(basename "$patch")
        git apply "$patch" || { echo "ablate: $name does not apply any more; make it again" >&2; exit 1; }
        cargo check --quiet --locked --target-dir "$target" ||
            { echo "ablate: with $name the program does not compile; make it again" >&2; exit 1; }
        git apply --reverse "$patch"
    done
    exit
fi

name=$1
shift
copy
# A model takes seconds where an unoptimised program takes milliseconds.
(cd "$tree" && git apply "$patches/$name.patch" && cargo build --locked --target-dir "$target")
# Of its own name: the next build in that folder would take its place in the middle of the sweep.
program=$cache/consensus-without-$name
cp "$target/debug/consensus" "$program"
exec 9>&-
CONSENSUS_BIN=$program "$root/tests/experiments/run.sh" tasks "$@"
