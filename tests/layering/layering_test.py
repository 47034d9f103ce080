#!/usr/bin/env python3
"""Checks the rules of the tree that can be read off its files.

Exits 1 and names file and line of every breach. The rules are those of
docs/architecture.md; exceptions stand in exceptions.txt with a reason.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDERS = ["base", "proto", "compiler", "storage", "tracker", "device_agent",
           "server", "client"]

# folder -> folders it may include besides itself and base. A longer prefix
# overrides a shorter one.
MAY_INCLUDE = {
    "base": [],
    "proto": [],
    "compiler": [],
    "storage": ["proto"],
    "tracker": ["proto"],
    "device_agent": ["proto"],
    "device_agent/build": ["proto", "compiler"],
    "device_agent/run": ["proto", "compiler/module"],
    "device_agent/cuda_sim": ["compiler/ptxsim"],
    "device_agent/verify": ["proto", "compiler/module"],
    "server": ["compiler", "storage", "proto"],
    "client/query": ["proto", "compiler", "storage", "server/query"],
    "client/cli": ["proto", "compiler", "storage", "server/search",
                   "server/query", "device_agent/measure",
                   "device_agent/spawner", "device_agent/probe",
                   "device_agent/sensors", "tracker/config"],
}

# (pattern of a line, where it is allowed, what it is)
CONFINED = [
    (re.compile(r'#include [<"](llvm|lld)/'), [r"^compiler/codegen/llvm/"],
     "LLVM header"),
    (re.compile(r'#include [<"](grpcpp|grpc)/|\.grpc\.pb\.h'),
     [r"_service\.(h|cc)$", r"_client\.(h|cc)$", r"/main\.cc$",
      r"_server\.(h|cc)$"],
     "gRPC header"),
    (re.compile(r'#include <prometheus/'), [r"^base/metrics/"],
     "Prometheus's header"),
    (re.compile(r'#include <sqlite3\.h>|\b(SELECT|INSERT|UPDATE|DELETE)\s+'
                r'(\w|\*|OR )'),
     [r"^storage/(sqlite|postgres)/"], "SQL"),
    (re.compile(r'std::random_device|[^_\w]rand\(\)|\bsrand\('),
     [r"/main\.cc$"], "randomness that has no seed"),
    (re.compile(r'absl::Now\(|system_clock::now|steady_clock::now|'
                r'clock_gettime\('),
     [r"^base/clock\.cc$", r"_client\.cc$", r"_service\.cc$",
      r"^device_agent/(run|probe|measure|build|spawner|sandbox)/"],
     "clock that is not injected"),
    (re.compile(r'\b(fork|vfork|posix_spawn)\s*\('),
     [r"^device_agent/(spawner|sandbox)/",
      r"^device_agent/measure/spawner_client\.cc$",
      r"^client/cli/supervisor\.cc$", r"^tracker/power_runner\.cc$"],
     "process start"),
]

MAX_FILE_LINES = 500


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c"):
                yield path.relative_to(ROOT).as_posix(), path


def rule_for(name, table):
    best = None
    for prefix in table:
        if name.startswith(prefix + "/") and (
                best is None or len(prefix) > len(best)):
            best = prefix
    return best


def load_exceptions():
    """Lines of "RULE PATH reason"; a path that breaks no rule is an error."""
    exceptions = {}
    path = ROOT / "tests/layering/exceptions.txt"
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            rule, name, reason = line.split(None, 2)
            exceptions[(rule, name)] = reason
    return exceptions


def main():
    exceptions = load_exceptions()
    used = set()
    breaches = []
    checked = 0

    def breach(rule, name, line, text):
        if (rule, name) in exceptions:
            used.add((rule, name))
            return
        breaches.append(f"{name}:{line}: {text}")

    for name, path in sources():
        checked += 1
        lines = path.read_text().splitlines()
        folder = rule_for(name, MAY_INCLUDE)
        own = [folder, "base"] + MAY_INCLUDE[folder]
        if folder.startswith("device_agent/"):
            own.append("device_agent")
        for number, line in enumerate(lines, 1):
            include = re.match(r'#include "([a-z_]+)/(.*)"', line)
            if include and include.group(1) in FOLDERS:
                target = f"{include.group(1)}/{include.group(2)}"
                if not any(target.startswith(o + "/") for o in own):
                    breach("include", name, number,
                           f"{folder} may not include {target}")
            if include and include.group(1) == "tests":
                breach("include", name, number, "nothing includes tests")
            code = re.sub(r"//.*", "", line)
            for pattern, allowed, what in CONFINED:
                if pattern.search(code) and not any(
                        re.search(a, name) for a in allowed):
                    breach("confined", name, number, f"{what}: {line.strip()}")
        if len(lines) > MAX_FILE_LINES:
            breach("size", name, len(lines),
                   f"{len(lines)} lines, more than {MAX_FILE_LINES}")
        if path.suffix == ".h" and not any(
                re.match(r"#ifndef REGATTA_", line) for line in lines):
            breach("guard", name, 1, "header without an include guard")

    for key in exceptions:
        if key not in used:
            breaches.append(f"exceptions.txt: {key[0]} {key[1]} breaks no rule "
                            "any more: remove the line")
    for text in breaches:
        print(text)
    print(f"{checked} files checked, {len(breaches)} breaches")
    if checked < 50:
        print("too few files: is the root right?")
        return 1
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
