#!/usr/bin/env bash
# Whether the model finds what is wrong: puts one fault after another into the protocol, and tries every way again.
#
#   tests/model/mutants.sh
#
# Each patch in tests/model/mutants is a fault; its first line says which. The protocol is built alone, with the same
# sources, tests and locked dependencies, so that a fault takes seconds. Exit status 1: a fault was not found.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus
tree=$cache/mutants
mkdir -p "$cache"
exec 9>"$tree.lock"
flock 9
rm -rf "$tree"
mkdir -p "$tree/src/crypto" "$tree/src/protocol"
trap 'rm -rf "$tree"' EXIT

cp -r "$root/src/protocol/approval" "$tree/src/protocol/approval"
cp "$root/src/crypto/digest.rs" "$tree/src/crypto/digest.rs"
mkdir -p "$tree/tests"
cp -r "$root/tests/model" "$tree/tests/model"
cp "$root/Cargo.lock" "$tree/Cargo.lock"
printf '%s\n' 'pub mod crypto { mod digest; pub use digest::*; }' 'pub mod protocol { pub mod approval; }' >"$tree/src/lib.rs"
dependency() { grep -m 1 "^$1 = " "$root/Cargo.toml"; }
{
    printf '[package]\nname = "consensus"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n[dependencies]\n'
    dependency serde
    dependency sha2
    dependency thiserror
    printf '[dev-dependencies]\n'
    dependency proptest
    dependency stateright
    printf '[[test]]\nname = "model"\npath = "tests/model/main.rs"\n'
} >"$tree/Cargo.toml"
cd "$tree"

tests=(four_and_five_reviewers_decide_one_thing_in_one_view four_reviewers_decide_one_thing_in_two_views)
try() {
    cargo test --quiet --offline --release --target-dir "${CARGO_TARGET_DIR:-$cache/target}/mutants" --test model -- --include-ignored \
        --test-threads 1 "${tests[@]}" >"$tree/log" 2>&1
}
try || { cat "$tree/log" >&2; echo "mutants: without a fault the model finds one" >&2; exit 1; }
missed=0
for patch in "$root"/tests/model/mutants/*.patch; do
    name=$(basename "$patch" .patch)
    patch --quiet --strip 1 <"$patch" ||
        { echo "mutants: $name does not apply any more; make it again" >&2; exit 1; }
    if try; then
        echo "not found: $name: $(head -n 1 "$patch")" >&2
        missed=1
    elif grep -q "could not compile" "$tree/log"; then
        cat "$tree/log" >&2
        echo "mutants: with $name the protocol does not compile; make it again" >&2
        exit 1
    else
        echo "found: $name: $(head -n 1 "$patch")"
    fi
    patch --quiet --strip 1 --reverse <"$patch"
done
exit "$missed"
