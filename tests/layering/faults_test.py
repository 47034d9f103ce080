#!/usr/bin/env python3
"""Checks docs/faults.md against the tests: a row for every fault, each with a
test that is compiled in, or with the reason why it has none.

Exits 1 and names every row that is wrong.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
TESTS = ROOT / "tests"
FAULTS = 68


def rows(text):
    """(number, cells) of every row of the tables."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0].isdigit():
            yield int(cells[0]), cells


def names_of(cell):
    """(file, Suite.Name) of each test in a cell of `FILE` A.B, C.D; `FILE` ..."""
    for part in cell.split(";"):
        match = re.fullmatch(r"`([\w/.]+)` (\w+\.\w+(?:, \w+\.\w+)*)",
                             part.strip())
        if match is None:
            raise ValueError(f"'{part.strip()}' is not `FILE` Suite.Name, ...")
        for name in match.group(2).split(", "):
            yield match.group(1), name


def is_compiled(path):
    """Whether a CMake file beside or above names it."""
    folder = path.parent
    while folder != ROOT:
        relative = path.relative_to(folder).as_posix()
        for cmake in [*folder.glob("*.cmake"), *folder.glob("CMakeLists.txt")]:
            if re.search(rf"(^|\s){re.escape(relative)}(\s|$)",
                         cmake.read_text()):
                return True
        folder = folder.parent
    return False


def why_missing(file, name):
    path = TESTS / file
    if not path.is_file():
        return f"there is no tests/{file}"
    suite, test = name.split(".")
    macro = rf"\b(TYPED_)?TEST(_F|_P)?\(\s*{suite},\s*{test}\)"
    if not re.search(macro, path.read_text()):
        return f"tests/{file} has no test {name}"
    if not is_compiled(path):
        return f"no CMake file compiles tests/{file}"
    return None


def main():
    breaches = []
    seen = []
    named = 0
    for number, cells in rows((ROOT / "docs/faults.md").read_text()):
        seen.append(number)
        if len(cells) != 5 or not cells[1] or not cells[2]:
            breaches.append(f"row {number}: five columns, the first three full")
            continue
        if cells[2].startswith("left out: "):
            if cells[3] or cells[4]:
                breaches.append(f"row {number}: left out, and yet it has tests")
            continue
        try:
            for file, name in names_of(cells[4]):
                named += 1
                if why := why_missing(file, name):
                    breaches.append(f"row {number}: {why}")
        except ValueError as error:
            breaches.append(f"row {number}: {error}")
    if seen != list(range(1, FAULTS + 1)):
        breaches.append(f"rows are {seen}, not 1 to {FAULTS} in order")
    for breach in breaches:
        print("docs/faults.md:", breach)
    print(f"{len(seen)} faults, {named} tests named, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
