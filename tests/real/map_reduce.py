#!/usr/bin/env python3
"""Lets a real model read a long text in pieces, and looks whether it finds the facts that were planted in it.

    map_reduce.py BIN RUNS_DIR -- FLAGS OF `consensus run`

The text is the chronicle of a harbour that never was, about 24 KB of it, made here from a fixed seed: days, ships and
weather. Three facts stand in it once each, far apart; a fourth thing that is asked for stands nowhere. Printed are the
facts that were found, with their bytes in the text; how many of the planted ones are among them; whether the words of
every fact stand where it says; and what the answer says was not found. Exit status 1: a planted fact is missing, or a
place is wrong.
"""

import json
import pathlib
import random
import subprocess
import sys

QUESTION = ("In which year was the lighthouse lit for the first time, what was the name of its first keeper, what did the lamp "
            "burn, and what did the tower cost?")
PLANTED = {
    "lit": ("The lighthouse was lit for the first time in the year 1877, and the whole town came to see it.", "1877"),
    "keeper": ("The first keeper of the lighthouse was called Ottilie Brandt, who had been a sailmaker.", "Ottilie Brandt"),
    "lamp": ("The lamp of the lighthouse burned rape oil, of which a barrel lasted eleven days.", "rape oil"),
}


def chronicle():
    draw = random.Random(1877)
    ships = ["Amalia", "Brise", "Concordia", "Dorothea", "Elise", "Fortuna", "Gudrun", "Hanna", "Ida", "Johanna"]
    loads = ["salt", "timber", "herring", "coal", "wool", "bricks", "grain", "tar", "hides", "cork"]
    winds = ["from the north", "from the west, with rain", "light, with fog until noon", "strong, so that nobody put to sea",
             "from the south, and warm", "changing all day"]
    remarks = ["The harbour master wrote it down as usual.", "Two boats were repaired on the slip.", "The market was held in spite of it.",
               "A dispute about mooring fees was settled.", "The pilot stayed ashore.", "The church bell was heard far out.",
               "Nets were mended on the quay.", "The customs officer counted every barrel."]
    days = []
    for day in range(1, 151):
        days.append(f"Day {day}. The {draw.choice(ships)} came in with {draw.randint(5, 90)} loads of {draw.choice(loads)}. "
                    f"The wind was {draw.choice(winds)}. {draw.choice(remarks)}")
    for place, (sentence, _) in zip((22, 75, 128), PLANTED.values()):
        days[place] += " " + sentence
    return "\n\n".join(days) + "\n"


def main():
    cut = sys.argv.index("--")
    binary, runs = sys.argv[1], pathlib.Path(sys.argv[2])
    runs.mkdir(parents=True, exist_ok=True)
    text = chronicle()
    book = runs / "chronicle.txt"
    book.write_text(text, encoding="utf-8")
    command = [binary, "run", "--format", "json", "--runs-dir", str(runs), "--seed", "1", "-f", str(book), "--map-reduce", "--prompt", QUESTION]
    finished = subprocess.run(command + sys.argv[cut + 1:], stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode not in (0, 3):
        sys.exit(f"map_reduce.py: the run ended with exit code {finished.returncode}")
    result = json.loads(finished.stdout)
    subprocess.run([binary, "verify", result["run"], "--runs-dir", str(runs)], check=True, stdout=subprocess.DEVNULL)
    section, raw = result["map_reduce"], text.encode()
    misplaced = [f for f in section["findings"] if raw[f["start"]:f["end"]].decode() != f["quote"]]
    for number, finding in enumerate(section["findings"], 1):
        print(f"[{number}] {finding['start']} to {finding['end']}: {finding['quote']!r}")
    found = [name for name, (_, words) in PLANTED.items() if any(words in f["quote"] for f in section["findings"])]
    told = [name for name, (_, words) in PLANTED.items() if words in (result["text"] or "")]
    read = [piece for piece in section["pieces"] if piece["outcome"] == "agreed"]
    print(f"\n{result['text']}\n")
    print(f"{result['outcome']} ({result['how']}); {len(read)} of {len(section['pieces'])} pieces read; {len(found)} of {len(PLANTED)} planted facts found "
          f"({', '.join(found)}), {len(told)} in the answer; {len(section['findings'])} facts, {len(misplaced)} of them misplaced; "
          f"not found: {section['not_found']}; {result['usage']['calls']} calls, {result['timing']['total_ms'] / 1000:.0f} s; "
          f"degraded: {sorted({d['kind'] for d in result['degraded']})}")
    sys.exit(len(found) < len(PLANTED) or bool(misplaced))


main()
