#!/usr/bin/env python3
"""Checks that what the documents show is there.

usage: readme.py ROOT

- A ```cpp block of README.md whose first line is `// examples/NAME.cpp` is that file, to the letter; there is at least
  one.
- A command of README.md that begins with ./examples/ or ./tests/ exists and is executable.
- The relative links of README.md, CHANGELOG.md and docs/*.md lead to files of the repository.
"""

import difflib
import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"// (examples/\S+\.cpp)\n")
COMMAND = re.compile(r"(?<![\w./])\./(?:examples|tests)/[\w./-]*\w")
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|^ {0,3}\[[^\]]+\]:\s*<?([^>\s]+)", re.MULTILINE)
SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:")


def example_faults(root, readme):
    """The blocks of the README that are not the file they name."""
    shown = 0
    for block in FENCE.finditer(readme):
        named = EXAMPLE.match(block["text"])
        if block["language"] != "cpp" or not named:
            continue
        shown += 1
        path = root / named[1]
        if not path.is_file():
            yield f"README.md shows {named[1]}, which does not exist"
            continue
        text = path.read_text(encoding="utf-8")
        if text != block["text"]:
            lines = difflib.unified_diff(text.splitlines(), block["text"].splitlines(), named[1], "README.md", "", "", 1, "")
            yield "\n    ".join([f"README.md shows {named[1]} otherwise than it is:", *lines])
    if shown == 0:
        yield "README.md shows no example: no ```cpp block begins with `// examples/NAME.cpp`"


def command_faults(root, readme):
    """The commands of the README that cannot be run."""
    for command in sorted(set(COMMAND.findall(readme))):
        path = root / command
        if not path.is_file():
            yield f"README.md shows the command {command}, which does not exist"
        elif not os.access(path, os.X_OK):
            yield f"README.md shows the command {command}, which is not executable"


def link_faults(root, document):
    """The relative links of a document that lead nowhere."""
    text = INLINE_CODE.sub("", FENCE.sub("", document.read_text(encoding="utf-8")))
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        target = unquote(link.partition("#")[0])
        if SCHEME.match(link) or not target:
            continue
        path = (root / target.lstrip("/") if target.startswith("/") else document.parent / target).resolve()
        name = document.relative_to(root)
        if not path.is_relative_to(root):
            yield f"{name}: the link {link} leads out of the repository"
        elif not path.exists():
            yield f"{name}: the link {link} leads nowhere"


def violations(root):
    readme = root / "README.md"
    if not readme.is_file():
        return ["there is no README.md"]
    text = readme.read_text(encoding="utf-8")
    found = [*example_faults(root, text), *command_faults(root, text)]
    for document in [readme, root / "CHANGELOG.md", *sorted((root / "docs").glob("*.md"))]:
        if document.is_file():
            found += link_faults(root, document)
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = violations(Path(sys.argv[1]).resolve())
    print("\n".join(found) if found else "examples, commands and links are there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
