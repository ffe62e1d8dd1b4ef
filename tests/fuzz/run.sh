#!/usr/bin/env bash
# Gives nearly right inputs to each reader of the program for a while, and prints a table of the results.
#
#   tests/fuzz/run.sh [SECONDS] [TARGET…]
#
# Each target is tried for SECONDS, 600 by default. Without names, all targets are tried. With a nightly toolchain and
# cargo-fuzz (`cargo install cargo-fuzz`), libFuzzer makes the inputs, led by the code that they reach. Its corpus stays
# below the cache folder for the next time. Without them the test `fuzz` makes the inputs, for the same time each.
#
# Exit status 1: a target panicked or hung. The inputs that did it are named. Beside the seeds of their target, they are
# played again by every `cargo test --test fuzz`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:-600}
[[ $# -eq 0 ]] || shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/fuzz
export CONSENSUS_FUZZ_FOUND=${CONSENSUS_FUZZ_FOUND:-$cache/found}
mkdir -p "$CONSENSUS_FUZZ_FOUND"

if [[ $# -eq 0 ]]; then
    mapfile -t targets < <(sed -nE 's/^    \("([a-z]+)", [a-z]+::[a-z]+\),$/\1/p' tests/fuzz/targets/mod.rs)
else
    targets=("$@")
fi

if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "run.sh: there is no nightly toolchain with cargo-fuzz, so that the test makes the inputs" >&2
    CONSENSUS_FUZZ_SECONDS=$seconds CONSENSUS_FUZZ_TARGETS=${targets[*]} cargo test --locked --test fuzz -- \
        --nocapture bytes_of_strangers
    exit
fi

# The same versions of all libraries as in the program.
package=tests/fuzz/cargo-fuzz
cp Cargo.lock "$package/Cargo.lock"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
# The program has no unsafe code, in which a sanitizer could find something.
cargo +nightly fuzz build --fuzz-dir "$package" --sanitizer none target
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
program=$CARGO_TARGET_DIR/$host/release/target

log=$(mktemp)
trap 'rm -f "$log"' EXIT
is_sound=true
printf '%-14s %8s %12s %8s\n' target seconds executions crashes
for target in "${targets[@]}"; do
    corpus=$cache/corpus/$target
    mkdir -p "$corpus"
    began=$SECONDS crashes=0
    if ! CONSENSUS_FUZZ_TARGET=$target "$program" -max_total_time="$seconds" -timeout=5 -max_len=32768 \
        -len_control=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$CONSENSUS_FUZZ_FOUND/$target-" \
        "$corpus" "tests/fuzz/seeds/$target" >"$log" 2>&1; then
        is_sound=false crashes=1
        grep -E '^(thread|thread .* panicked|assertion|  left|  right|==|SUMMARY|Test unit)|panicked at|written to' "$log" |
            head -20 >&2 || true
    fi
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-14s %8s %12s %8s\n' "$target" $((SECONDS - began)) "${executions:-0}" "$crashes"
done
$is_sound
