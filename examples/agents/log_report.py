#!/usr/bin/env python3
"""Reports on a log file: parameters as JSON on standard input, the report as JSON on standard output.

An agent as plain as can be: the gateway starts it for each task and reads what it prints. Everything else it has to
say goes to standard error, which ends up in the gateway's log.

    echo '{"path": "shop.log"}' | python3 log_report.py [LEDGER]
"""

import collections
import json
import os
import re
import sys

# Upper case anywhere, "level=error" as logfmt has it, or "error:" as programs print it.
LEVEL = re.compile(
    r"\b(DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|\blevel=\"?([a-z]+)"
    r"|\b(debug|info|warn|warning|error|fatal|critical|panic):"
)
TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}")
NUMBER = re.compile(r"\b\d[\d.:-]*\b|0x[0-9a-f]+|\b[0-9a-f]{8,}\b")


def report(path: str) -> dict:
    levels: collections.Counter = collections.Counter()
    troubles: collections.Counter = collections.Counter()
    first = last = None
    lines = 0
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            lines += 1
            time = TIME.search(line)
            if time:
                first, last = first or time.group(), time.group()
            level = LEVEL.search(line)
            if not level:
                continue
            name = next(group for group in level.groups() if group).upper()
            name = {"WARNING": "WARN", "CRITICAL": "FATAL", "PANIC": "FATAL"}.get(name, name)
            levels[name] += 1
            if name in ("ERROR", "FATAL"):
                # Numbers differ from line to line; what is left is the kind of trouble.
                troubles[NUMBER.sub("#", line[level.end() :]).strip(" :-\n")] += 1
    return {
        "lines": lines,
        "levels": dict(sorted(levels.items())),
        "without_level": lines - sum(levels.values()),
        "first": first,
        "last": last,
        "troubles": [{"message": message, "times": times} for message, times in troubles.most_common(3)],
    }


def main() -> int:
    try:
        params = json.load(sys.stdin)
        path = params["path"]
        if not isinstance(path, str):
            raise TypeError("the path is no text")
    except (ValueError, KeyError, TypeError):
        print('give the parameters as JSON on standard input: {"path": "FILE"}', file=sys.stderr)
        return 65
    if len(sys.argv) > 1:
        with open(sys.argv[1], "a", encoding="utf-8") as ledger:
            ledger.write(f"log_report {os.environ.get('AGENT_REACH_TASK_ID', '-')} {path}\n")
    try:
        print(json.dumps(report(path), ensure_ascii=False))
    except OSError as error:
        print(f"{path} cannot be read: {error.strerror}", file=sys.stderr)
        return 66
    return 0


if __name__ == "__main__":
    sys.exit(main())
