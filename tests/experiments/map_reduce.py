#!/usr/bin/env python3
"""Lets a real model read a long text in pieces, and looks whether it finds the facts that were planted in it.

    map_reduce.py BIN RUNS_DIR DAYS -- FLAGS OF `consensus run`

The text is the chronicle of a harbour that never was, made here from a fixed seed: days, ships and weather, 19 KB in 150
days. Three facts stand in it once each, far apart; a fourth thing that is asked for stands nowhere. Printed are the
facts that were found, with their bytes in the text; how many of the planted ones are among them; whether the words of
every fact stand where it says; and what the answer says was not found. What a small model does is partly luck, and not
the same twice where a server computes several replies at once: up to four seeds are tried, and each is printed. Exit
status 1: none of them found all and told what is missing, or a place is wrong.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

QUESTION = ("In which year was the lighthouse lit for the first time, what was the name of its first keeper, what did the lamp "
            "burn, and what did the tower cost?")
PLANTED = {
    "lit": ("The lighthouse was lit for the first time in the year 1877, and the whole town came to see it.", "1877"),
    "keeper": ("The first keeper of the lighthouse was called Ottilie Brandt, who had been a sailmaker.", "Ottilie Brandt"),
    "lamp": ("The lamp of the lighthouse burned rape oil, of which a barrel lasted eleven days.", "rape oil"),
}
# Of what is asked for and stands nowhere.
MISSING = "cost"


def chronicle(length):
    draw = random.Random(1877)
    ships = ["Amalia", "Brise", "Concordia", "Dorothea", "Elise", "Fortuna", "Gudrun", "Hanna", "Ida", "Johanna"]
    loads = ["salt", "timber", "herring", "coal", "wool", "bricks", "grain", "tar", "hides", "cork"]
    winds = ["from the north", "from the west, with rain", "light, with fog until noon", "strong, so that nobody put to sea",
             "from the south, and warm", "changing all day"]
    remarks = ["The harbour master wrote it down as usual.", "Two boats were repaired on the slip.", "The market was held in spite of it.",
               "A dispute about mooring fees was settled.", "The pilot stayed ashore.", "The church bell was heard far out.",
               "Nets were mended on the quay.", "The customs officer counted every barrel."]
    days = []
    for day in range(1, length + 1):
        days.append(f"Day {day}. The {draw.choice(ships)} came in with {draw.randint(5, 90)} loads of {draw.choice(loads)}. "
                    f"The wind was {draw.choice(winds)}. {draw.choice(remarks)}")
    for part, (sentence, _) in zip((0.15, 0.5, 0.85), PLANTED.values()):
        days[round(part * length)] += " " + sentence
    return "\n\n".join(days) + "\n"


def read(binary, runs, book, seed, flags):
    """Runs once; whether every planted fact was found in its place, and the missing one was told."""
    command = [binary, "run", "--format", "json", "--runs-dir", str(runs), "--seed", str(seed), "-f", str(book), "--map-reduce", "--prompt", QUESTION]
    finished = subprocess.run(command + flags, stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode not in (0, 3):
        sys.exit(f"map_reduce.py: the run ended with exit code {finished.returncode}")
    result = json.loads(finished.stdout)
    subprocess.run([binary, "verify", result["run"], "--runs-dir", str(runs)], check=True, stdout=subprocess.DEVNULL)
    section, raw = result["map_reduce"], book.read_bytes()
    misplaced = [f for f in section["findings"] if raw[f["start"]:f["end"]].decode() != f["quote"]]
    for number, finding in enumerate(section["findings"], 1):
        print(f"[{number}] {finding['start']} to {finding['end']}: {finding['quote']!r}")
    found = [name for name, (_, words) in PLANTED.items() if any(words in f["quote"] for f in section["findings"])]
    told = [name for name, (_, words) in PLANTED.items() if words in (result["text"] or "")]
    pieces = [piece for piece in section["pieces"] if piece["outcome"] == "agreed"]
    print(f"\n{result['text']}\n")
    print(f"seed {seed}: {result['outcome']} ({result['how']}); {len(pieces)} of {len(section['pieces'])} pieces read; {len(found)} of {len(PLANTED)} planted facts "
          f"found ({', '.join(found)}), {len(told)} in the answer; {len(section['findings'])} facts, {len(misplaced)} of them misplaced; "
          f"not found: {section['not_found']}; {result['usage']['calls']} calls, {result['timing']['total_ms'] / 1000:.0f} s; "
          f"degraded: {sorted({d['kind'] for d in result['degraded']})}", flush=True)
    if misplaced:
        sys.exit("map_reduce.py: a fact does not stand where the result says")
    return len(found) == len(PLANTED) and any(MISSING in asked for asked in section["not_found"])


def main():
    cut = sys.argv.index("--")
    binary, runs, days = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        book = pathlib.Path(folder) / "chronicle.txt"
        book.write_text(chronicle(days), encoding="utf-8")
        sys.exit(not any(read(binary, runs, book, seed, sys.argv[cut + 1:]) for seed in range(1, 5)))


main()
