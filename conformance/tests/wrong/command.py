"""A command as an agent, right but for the fault that its argument names."""

import json
import signal
import sys
import time

fault = sys.argv[1]
if fault == "ignores_term":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if fault == "chatters":
    print("starting up")
try:
    params = json.load(sys.stdin)
    ms = params["ms"]
    if not isinstance(ms, int) or not ms <= 5000:
        raise ValueError("ms is no integer up to 5000")
    time.sleep(ms / 1000)
except (ValueError, KeyError, TypeError) as error:
    print(f"the parameters are wrong: {error!r}", file=sys.stderr)
    sys.exit(1 if fault == "exits_1" else 65)
print(json.dumps({"napped": ms}))
