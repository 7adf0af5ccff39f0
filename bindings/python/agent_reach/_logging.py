"""The core's log lines, as records of Python's ``logging``."""

from __future__ import annotations

import logging
import threading

from . import _core

__all__ = ["log_to_logging"]


def log_to_logging(*, verbose: bool = False) -> None:
    """Hands what the core has to log (lost connections, refused cards, ...) to ``logging``, under ``agent_reach_sdk``.

    ``verbose``: also what it tries and tries again. Call it once, early. The records come from a thread of their own.
    """
    if _core.take_logs(verbose):
        threading.Thread(target=_pass_on, name="agent-reach-log", daemon=True).start()


def _pass_on() -> None:
    while True:
        try:
            lines = _core.next_logs()
        except RuntimeError:
            return  # The interpreter is shutting down.
        for level, name, text in lines:
            logging.getLogger(name).log(level, "%s", text)
