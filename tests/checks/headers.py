#!/usr/bin/env python3
"""Checks that every public header compiles alone, without warnings, and may be included twice.

usage: headers.py ROOT COMPILER [ARGS...]
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def compile_alone(include, header, compiler):
    """The compiler's complaints about the header, or None."""
    line = f"#include <{header}>\n"
    command = [*compiler, *FLAGS, "-I", str(include), "-x", "c++", "-"]
    run = subprocess.run(command, input=line * 2, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if run.returncode == 0 else run.stdout


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    include = Path(sys.argv[1]).resolve() / "include"
    compiler = sys.argv[2:]
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.hpp"))
    if not headers:
        sys.exit(f"{include}: no headers")

    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda header: compile_alone(include, header, compiler), headers))
    failed = 0
    for header, complaints in zip(headers, results):
        if complaints is not None:
            failed += 1
            print(f"<{header}> does not compile alone:\n{complaints}")
    print(f"{len(headers) - failed} of {len(headers)} headers compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
