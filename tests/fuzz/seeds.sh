#!/usr/bin/env bash
# Writes the seeds that are journals and batches, and the scenes that replies are played in, as a build of today writes them.
#
#   tests/fuzz/seeds.sh BIN      for example: tests/fuzz/seeds.sh target/debug/consensus
set -euo pipefail
bin=$(realpath "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"

# run NAME FLAG...    makes a run whose journal is runs/NAME/ID/journal.jsonl
run() {
    local name=$1
    shift
    "$bin" run --quiet --runs-dir "runs/$name" "$@" >/dev/null 2>&1 || true
}
cat >change.diff <<'END'
--- a/price.py
+++ b/price.py
@@ -1 +1 @@
-price = 1
+price = 2
END
sum=(--mock --answer 4 --seed 7 --roleset solver_checker --prompt "How much is 2+2?")
run pair "${sum[@]}"
run budget "${sum[@]}" --max-tokens-total 2500
run council --mock --answer 12 --roleset council_tripartite --prompt "What is the total?"
run panel --mock --answer "Copper carries current." --roleset panel_personas --members analyst,optimist,pragmatist \
    --prompt "Name one use of copper."
run review --mock --answer approve --roleset reviewers_f1 -f change.diff --prompt "May it be applied?"
printf '%s\n' '{"id": "a", "prompt": "What is 2+2?"}' '{"id": "b", "prompt": "Again?"}' >tasks.jsonl
"$bin" batch tasks.jsonl --output out --mock --answer 4 --roleset solver_checker --quiet >/dev/null 2>&1

python3 - "$here" <<'END'
import pathlib, sys

here, runs = pathlib.Path(sys.argv[1]), pathlib.Path("runs")
journal = {path.parent.parent.name: path.read_text() for path in runs.glob("*/*/journal.jsonl")}
for name in ["council", "panel", "review"]:
    (here / "scenes" / f"{name}.jsonl").write_text(journal[name])

lines = journal["pair"].splitlines(keepends=True)
seeds = here / "seeds/journal"
(seeds / "good-pair").write_text(journal["pair"])
(seeds / "good-budget").write_text(journal["budget"])
(seeds / "good-torn").write_text("".join(lines[:-2]) + lines[-2][:40])
(seeds / "bad-gap").write_text(lines[0] + lines[3])
(seeds / "bad-cut").write_text(lines[0][:-20])

names = ["batch.json", "journal-0.jsonl", "results-0.jsonl"]
files = {name: pathlib.Path("out", name).read_text() for name in names}
together = lambda files: "".join(f"=== {name}\n{text}" for name, text in files.items())
seeds = here / "seeds/batch"
(seeds / "good-two").write_text(together(files))
(seeds / "good-torn").write_text(together(files)[:-40])
(seeds / "bad-label").write_text(together(files).replace('"cell":{"task":"b"', '"cell":{"task":"c"'))
of_first = files["journal-0.jsonl"].splitlines(keepends=True)[:4]
first = of_first[0].split('"run":"')[1].split('"')[0]
begun = "".join(line for line in of_first if first in line)
(seeds / "good-open").write_text(together({"batch.json": files["batch.json"], "journal-0.jsonl": begun}))
END
