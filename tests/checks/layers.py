#!/usr/bin/env python3
"""Checks the layer rule of the sources: an include may only point down.

usage: layers.py ROOT

- A file of a layer (include/vigil/<layer>/, src/<layer>/) includes its own layer and lower ones; the layers of one row
  do not include each other. vigil.hpp includes what belongs to the library `vigil`.
- core, queue and tube include nothing else but standard C++ headers (and core its hash library).
- A third-party header is included by one folder of src only, and by no public header.
- Only src/loop reads a clock.
"""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

ROWS = [
    ["core"],
    ["queue"],
    ["tube"],
    ["loop"],
    ["wire", "store", "redis", "http", "vigil.hpp"],
    ["broker"],
    ["bin"],
]
RANK = {layer: rank for rank, row in enumerate(ROWS) for layer in row}
UMBRELLA = {"vigil.hpp": {"core", "queue", "tube", "loop", "store"}}
NOT_LAYERS = {"packaging"}

THIRD_PARTY = {
    "uv.h": "loop",
    "uv/*": "loop",
    "zmq*": "wire",
    "msgpack*": "wire",
    "hiredis*": "redis",
    "microhttpd*": "http",
    "xxhash*": "core",
    "spdlog/*": "bin",
    "CLI/*": "bin",
}

STD_ONLY = {"core", "queue", "tube"}
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>: neither a folder nor a suffix
POSIX = re.compile(
    r"(sys|netinet|net|arpa|linux)/\w+\.h"
    r"|(dirent|dlfcn|errno|fcntl|limits|netdb|poll|pthread|pwd|sched|signal|spawn|stdlib|string|termios|time|unistd)\.h"
)

PURE = {"queue", "tube"}
CLOCK = re.compile(
    r"\b(?:steady|system|high_resolution|utc|tai|gps|file)_clock\b"
    r"|\b(?:clock_gettime|gettimeofday|timespec_get|uv_now|uv_hrtime|uv_update_time|uv_gettimeofday|uv_clock_gettime)\b"
    r"|(?<![\w.>:])(?:(?:std)?\s*::\s*)?time\s*\((?!\s*\))"
    r"|\bstd\s*::\s*clock\s*\("
)
ANY_NOW = re.compile(r"::\s*now\s*\(")

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", re.MULTILINE)
COMMENT_OR_LITERAL = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""",
    re.DOTALL,
)


def blank(text, literals):
    """The text with its comments (and literals, if asked for) taken out; the lines keep their numbers."""

    def replace(match):
        keep = match["comment"] is None and not literals
        return match[0] if keep else " " + "\n" * match[0].count("\n")

    return COMMENT_OR_LITERAL.sub(replace, text)


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def layer_of_include(name):
    """The layer that <vigil/loop/x.hpp> or "loop/x.hpp" belongs to; None for a header of someone else."""
    first = name.removeprefix("vigil/").split("/")[0]
    if first in UMBRELLA:
        return first
    return first if first in RANK and "/" in name else None


def include_fault(layer, public, folder, target):
    """What is wrong with `#include target` in a file of that layer, or None."""
    if not re.fullmatch(r'<[^>]+>|"[^"]+"', target):
        return f"#include {target}: not a plain <...> or \"...\", so it cannot be checked"
    name = target[1:-1]
    if ".." in name.split("/"):
        return f"#include {target}: includes do not climb with '..'"
    if target[0] == '"' and "/" not in name and (folder / name).is_file():
        return None  # a neighbour

    other = layer_of_include(name)
    if other is not None:
        if public and not name.startswith("vigil/"):
            return f"a public header includes the private {target}"
        if layer in UMBRELLA:
            return None if other in UMBRELLA[layer] else f"{layer} does not contain {other}: {target}"
        if other == layer or RANK[other] < RANK[layer]:
            return None
        way = "beside it" if RANK[other] == RANK[layer] else "above it"
        return f"{layer} includes {target}, and {other} is {way}"

    if name.startswith("vigil/"):
        return f"{target} belongs to no layer"
    if STANDARD.fullmatch(name):
        return None
    if POSIX.fullmatch(name):
        return f"{layer} includes {target}: standard C++ headers only" if layer in STD_ONLY else None
    if public:
        return f"a public header includes the third-party {target}"
    owners = {owner for pattern, owner in THIRD_PARTY.items() if fnmatch(name, pattern)}
    if not owners:
        return f"{target} is not a known header: give it one folder in THIRD_PARTY of tests/checks/layers.py"
    return None if layer in owners else f"{target} is for src/{owners.pop()} only"


def check_file(path, layer, public):
    """Yields (line, fault)."""
    text = path.read_text(encoding="utf-8")
    with_literals = blank(text, literals=False)
    for match in INCLUDE.finditer(with_literals):
        if fault := include_fault(layer, public, path.parent, match[1]):
            yield line_of(with_literals, match), fault

    if layer == "loop" and not public:
        return
    code = blank(text, literals=True)
    for pattern in [CLOCK, ANY_NOW] if layer in PURE else [CLOCK]:
        for match in pattern.finditer(code):
            yield line_of(code, match), f"reads a clock ({match[0].strip()}): only src/loop does"


def violations(root):
    """All violations in the tree, one line each."""
    found = []
    files = 0
    for top in ["include/vigil", "src"]:
        public = top != "src"
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in {".hpp", ".cpp", ".h"}:
                continue
            files += 1
            where = path.relative_to(root).as_posix()
            layer = path.relative_to(root / top).parts[0]
            if layer in NOT_LAYERS and not public:
                continue
            if layer not in RANK:
                found.append(f"{where}: belongs to no layer")
                continue
            found += [f"{where}:{line}: {fault}" for line, fault in sorted(check_file(path, layer, public))]
    if files == 0:
        found.append(f"{root}: no sources under include/vigil and src")
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = violations(Path(sys.argv[1]).resolve())
    print("\n".join(found) if found else "every include points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
