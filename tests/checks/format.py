#!/usr/bin/env python3
"""Checks that all C++ files are formatted as .clang-format says.

usage: format.py ROOT CLANG_FORMAT
"""

import shlex
import subprocess
import sys
from pathlib import Path

FOLDERS = ["include", "src", "examples", "bench", "tests"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root = Path(sys.argv[1]).resolve()
    clang_format = sys.argv[2]
    files = sorted(
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in {".hpp", ".cpp"}
    )
    if not files:
        sys.exit(f"{root}: no C++ files")

    unclean = []
    for name in files:
        command = [clang_format, "--style=file", "--dry-run", "-Werror", name]
        run = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            unclean.append(name)
            first = run.stdout.partition("\n")[0]
            print(first if name in first else f"{name}: {first}")
    if not unclean:
        print(f"{len(files)} files are formatted")
        return 0
    print(f"{len(unclean)} of {len(files)} files are not formatted; to mend them:")
    print("    clang-format -i " + shlex.join(unclean))
    return 1


if __name__ == "__main__":
    sys.exit(main())
