#!/usr/bin/env python3
"""Lets reviewers on a real model decide on twenty small changes, half of them with a planted defect.

    approval.py run BIN OUT.jsonl [--only NAME,...] [-- flags of `consensus approve`]
    approval.py report OUT.jsonl

Each change is put to `consensus approve` on a repository of its own. A line of OUT says how it ended, how each reviewer
voted and on which lines it found something; a change that is in OUT already is not put again. The report counts
decisions, latency, defects that were stopped and found, and false alarms.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# Name, file, before, after, and what is wrong with which line; nothing, where nothing is.
CASES = [
    ("last-item", "cart.py", "def total(items):\n    s = 0\n    for i in range(len(items)):\n        s += items[i].price\n    return s\n",
     "def total(items):\n    s = 0\n    for i in range(len(items) - 1):\n        s += items[i].price\n    return s\n", "len(items) - 1"),
    ("swapped-minus", "bank.py", "def withdraw(account, amount):\n    if amount > account.balance:\n        raise ValueError('not enough')\n    account.balance -= amount\n",
     "def withdraw(account, amount):\n    if amount > account.balance:\n        raise ValueError('not enough')\n    account.balance += amount\n", "+= amount"),
    ("shell", "backup.py", "import subprocess\n\ndef backup(name):\n    subprocess.run(['tar', 'czf', 'backup.tgz', name], check=True)\n",
     "import subprocess\n\ndef backup(name):\n    subprocess.run('tar czf backup.tgz ' + name, shell=True, check=True)\n", "shell=True"),
    ("sql", "users.py", "def find(db, name):\n    return db.execute('SELECT * FROM users WHERE name = ?', (name,)).fetchone()\n",
     "def find(db, name):\n    return db.execute(f\"SELECT * FROM users WHERE name = '{name}'\").fetchone()\n", "{name}"),
    ("no-login", "admin.py", "def delete_user(request, user):\n    if not request.user.is_admin:\n        raise PermissionError('admins only')\n    user.delete()\n",
     "def delete_user(request, user):\n    user.delete()\n", "is_admin"),
    ("quadratic", "unique.py", "def unique(names):\n    seen = set()\n    out = []\n    for n in names:\n        if n not in seen:\n            seen.add(n)\n            out.append(n)\n    return out\n",
     "def unique(names):\n    out = []\n    for n in names:\n        if n not in out:\n            out.append(n)\n    return out\n", "not in out"),
    ("tls", "fetch.py", "import requests\n\ndef fetch(url):\n    return requests.get(url, timeout=10).text\n",
     "import requests\n\ndef fetch(url):\n    return requests.get(url, timeout=10, verify=False).text\n", "verify=False"),
    ("leak", "read.py", "def first_line(path):\n    with open(path) as f:\n        return f.readline()\n",
     "def first_line(path):\n    f = open(path)\n    return f.readline()\n", "f = open"),
    ("renamed", "api.py", "def get_user(user_id, include_email=False):\n    user = load(user_id)\n    return user.public(include_email)\n",
     "def get_user(user_id, with_email=True):\n    user = load(user_id)\n    return user.public(with_email)\n", "with_email=True"),
    ("swallowed", "save.py", "def save(path, data):\n    with open(path, 'w') as f:\n        f.write(data)\n",
     "def save(path, data):\n    try:\n        with open(path, 'w') as f:\n            f.write(data)\n    except OSError:\n        pass\n", "pass"),
    ("name", "area.py", "def area(w, h):\n    x = w * h\n    return x\n", "def area(width, height):\n    return width * height\n", None),
    ("docstring", "mean.py", "def mean(xs):\n    return sum(xs) / len(xs)\n",
     "def mean(xs):\n    \"\"\"Return the arithmetic mean of a non-empty list.\"\"\"\n    return sum(xs) / len(xs)\n", None),
    ("set", "common.py", "def common(a, b):\n    return [x for x in a if x in b]\n",
     "def common(a, b):\n    known = set(b)\n    return [x for x in a if x in known]\n", None),
    ("with", "count.py", "def count(path):\n    f = open(path)\n    n = len(f.readlines())\n    f.close()\n    return n\n",
     "def count(path):\n    with open(path) as f:\n        return sum(1 for _ in f)\n", None),
    ("guard", "div.py", "def ratio(a, b):\n    return a / b\n",
     "def ratio(a, b):\n    if b == 0:\n        raise ValueError('b must not be zero')\n    return a / b\n", None),
    ("params", "find.py", "def find(db, name):\n    return db.execute(\"SELECT id FROM users WHERE name = '\" + name + \"'\")\n",
     "def find(db, name):\n    return db.execute('SELECT id FROM users WHERE name = ?', (name,))\n", None),
    ("constant", "tax.py", "def gross(net):\n    return net + net * 0.21\n", "TAX_RATE = 0.21\n\ndef gross(net):\n    return net + net * TAX_RATE\n", None),
    ("test", "test_mean.py", "from mean import mean\n\ndef test_one():\n    assert mean([4]) == 4\n",
     "from mean import mean\n\ndef test_one():\n    assert mean([4]) == 4\n\ndef test_two():\n    assert mean([1, 3]) == 2\n", None),
    ("option", "greet.py", "def greet(name):\n    return f'Hello, {name}!'\n",
     "def greet(name, greeting='Hello'):\n    return f'{greeting}, {name}!'\n", None),
    ("comment", "wait.py", "def wait(n):\n    return 2 ** n\n", "def wait(n):\n    # Doubles with each attempt.\n    return 2 ** n\n", None),
]


def git(*words, cwd):
    command = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org", *words)
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def decide(program, case, flags):
    """Puts one change to the reviewers."""
    name, file, before, after, defect = case
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        repository = folder / "repository"
        repository.mkdir()
        git("init", "-q", "-b", "main", cwd=repository)
        (repository / file).write_text(before)
        git("add", ".", cwd=repository)
        git("commit", "-qm", "first", cwd=repository)
        git("switch", "-q", "-c", "change", cwd=repository)
        (repository / file).write_text(after)
        git("commit", "-qam", "change", cwd=repository)
        git("switch", "-q", "--detach", cwd=repository)
        roleset = flags[flags.index("--roleset") + 1] if "--roleset" in flags else "reviewers_f1"
        subprocess.run([program, "keys", "generate", "keys", "--quiet", "--roleset", roleset], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        began = time.monotonic()
        said = subprocess.run([program, "approve", "--repo", "repository", "--change", "change", "--keys", "keys", "--quiet",
                               "--format", "json", "--runs-dir", "runs", *flags], cwd=folder, capture_output=True, text=True)
        took = time.monotonic() - began
        ended = json.loads(said.stdout) if said.stdout else {"outcome": said.stderr.strip()}
        result = {}
        for path in folder.glob("runs/*/result.json"):
            result = json.loads(path.read_text())
    reviews = result.get("approval", {}).get("reviews", [])
    found = [f"{r['reviewer']}: {f['severity']}: {f['quote']}: {f['problem']}" for r in reviews for f in r["findings"]]
    on_it = sorted({r["reviewer"] for r in reviews for f in r["findings"] if defect and defect in f["quote"]})
    return {
        "name": name, "defect": defect, "outcome": ended["outcome"], "code": said.returncode, "seconds": round(took, 1),
        "votes": {r["reviewer"]: next(iter(r["opinion"])) for r in reviews}, "on_the_defect": on_it, "found": found,
        "repairs": sum(agent["repairs"] for agent in result.get("agents", [])), "usage": result.get("usage"),
    }


def run(program, out, only, flags):
    out = pathlib.Path(out)
    known = {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else set()
    for case in CASES:
        if case[0] in known or only and case[0] not in only:
            continue
        line = decide(str(pathlib.Path(program).resolve()), case, flags)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{line['name']:14} {line['outcome']:10} {line['seconds']:6.1f} s  {line['votes']}", flush=True)


def report(out):
    lines = [json.loads(line) for line in pathlib.Path(out).read_text().splitlines()]
    decided = [line for line in lines if line["outcome"] in ("landed", "rejected")]
    bad, good = [line for line in decided if line["defect"]], [line for line in decided if not line["defect"]]

    def votes(of, verdict):
        return f"{sum(v == verdict for line in of for v in line['votes'].values())} of {sum(len(line['votes']) for line in of)}"

    print(f"decided: {len(decided)} of {len(lines)}; seconds a decision: median "
          f"{statistics.median(line['seconds'] for line in decided):.0f}, most {max(line['seconds'] for line in decided):.0f}")
    print(f"with a defect: {sum(l['outcome'] == 'rejected' for l in bad)} of {len(bad)} stopped; {votes(bad, 'reject')} votes reject; "
          f"a finding on the line itself in {sum(bool(l['on_the_defect']) for l in bad)}")
    print(f"without one: {sum(l['outcome'] == 'landed' for l in good)} of {len(good)} landed; {votes(good, 'reject')} votes reject (false alarms)")
    print(f"abstentions: {votes(decided, 'abstain')}; forms written again: {sum(line['repairs'] for line in decided)}")


def main():
    words, flags = sys.argv[1:], []
    if "--" in words:
        at = words.index("--")
        words, flags = words[:at], words[at + 1:]
    only = set()
    if "--only" in words:
        at = words.index("--only")
        only = set(words[at + 1].split(","))
        del words[at:at + 2]
    match words:
        case ["run", program, out]:
            run(program, out, only, flags)
        case ["report", out]:
            report(out)
        case _:
            raise SystemExit(__doc__)


main()
