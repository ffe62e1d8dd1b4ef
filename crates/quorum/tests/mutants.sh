#!/usr/bin/env bash
# Whether the model and the simulation find what is wrong: puts one fault after another into the protocol, and tries again.
#
#   crates/quorum/tests/mutants.sh [N]
#
# With N, every Nth fault is tried, and of the others only whether they still apply.
#
# Each patch in modelcheck/mutants and sim/mutants is a fault, to be found by the one or the other; its first line says which.
# The crate is built alone, with the same sources, tests and locked dependencies, so that a fault takes seconds. Exit status 1:
# a fault was not found.
set -euo pipefail

every=${1:-1}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
tests=$root/crates/quorum/tests
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus
tree=$cache/mutants
mkdir -p "$cache"
exec 9>"$tree.lock"
flock 9
rm -rf "$tree"
mkdir -p "$tree/crates"
trap 'rm -rf "$tree"' EXIT

cp -r "$root/crates/crypto" "$root/crates/quorum" "$tree/crates/"
cp "$root/Cargo.lock" "$tree/Cargo.lock"
{
    printf '[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n\n'
    sed -n '/^\[workspace\.\(package\|lints\)/,/^$/p' "$root/Cargo.toml"
} >"$tree/Cargo.toml"
cd "$tree"

try() { # CHECKER
    local words=(every_schedule)
    if [[ $1 == modelcheck ]]; then
        words=(--include-ignored --test-threads 1 four_and_five_reviewers_decide_one_thing four_reviewers_decide_one_thing_in_two_views)
    fi
    CONSENSUS_SIM_SEEDS=0..12000 cargo test --quiet --offline --release --target-dir "${CARGO_TARGET_DIR:-$cache/target}/mutants" \
        --package consensus-llm-quorum --test "$1" -- "${words[@]}" >"$tree/log" 2>&1
}
missed=0
for checker in modelcheck sim; do
    try "$checker" || { cat "$tree/log" >&2; echo "mutants: without a fault $checker finds one" >&2; exit 1; }
    echo "without a fault $checker finds none"
    place=0
    for patch in "$tests/$checker/mutants/"*.patch; do
        name=$(basename "$patch" .patch)
        patch --quiet --strip 1 <"$patch" ||
            { echo "mutants: $name does not apply any more; make it again" >&2; exit 1; }
        place=$((place + 1))
        if ((place % every > 0)); then
            patch --quiet --strip 1 --reverse <"$patch"
            continue
        fi
        if try "$checker"; then
            echo "not found: $name: $(head -n 1 "$patch")" >&2
            missed=1
        elif grep -q "could not compile" "$tree/log"; then
            cat "$tree/log" >&2
            echo "mutants: with $name the protocol does not compile; make it again" >&2
            exit 1
        else
            echo "found by $checker: $name: $(head -n 1 "$patch")"
        fi
        patch --quiet --strip 1 --reverse <"$patch"
    done
done
exit "$missed"
