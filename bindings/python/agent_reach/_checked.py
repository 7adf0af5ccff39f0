"""Arguments that are looked at before anything is made of them: what is wrong with one is said with its name.

A value that cannot be used is a :class:`ConfigError`, one of a wrong type a ``TypeError``.
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any, Iterable, Tuple, Union

from .errors import ConfigError

Seconds = Union[float, int, timedelta]

#: The longest time that can be given, some thirty years. The gateway's own bounds are narrower.
SECONDS_MAX = 10**9


def in_seconds(name: str, given: Seconds) -> float:
    """A length of time in seconds."""
    value = given.total_seconds() if isinstance(given, timedelta) else given
    # Who has no hints checked gives anything.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}={given!r} is no length of time: give seconds, or a timedelta")
    if value < 0:
        raise ConfigError(f"{name}={given!r} is less than nothing: give seconds, or a timedelta")
    if value > SECONDS_MAX:
        raise ConfigError(f"{name}={given!r} is more than {SECONDS_MAX} seconds")
    if value != value:
        raise ConfigError(f"{name}={given!r} is no number of seconds")
    return float(value)


def span(name: str, given: Seconds) -> str:
    """A length of time as the wire has it, in whole milliseconds."""
    return f"{round(in_seconds(name, given) * 1000)}ms"


def one_of(name: str, given: Any, words: Tuple[Any, ...]) -> None:
    """Raises unless it is one of these words."""
    if getattr(given, "value", given) not in words:
        raise ConfigError(f"{name}={given!r} is none of {', '.join(words)}")


def within(name: str, given: Any, least: int, most: int) -> None:
    """Raises unless it is a whole number from ``least`` to ``most``."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{name}={given!r} is no int")
    if not least <= given <= most:
        raise ConfigError(f"{name}={given!r} is not within {least} to {most}")


def known(given: Iterable[str], names: Iterable[str]) -> None:
    """Raises for options that there are not, as Python does for arguments."""
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise TypeError(f"no such option: {', '.join(unknown)}; there are {', '.join(names)}")


def address(name: str, given: str) -> None:
    """Raises unless it is an IP address with a port."""
    host, _, port = given.rpartition(":")
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") else host)
        is_port = port.isdecimal() and int(port) < 1 << 16
    except ValueError:
        is_port = False
    if not is_port:
        raise ConfigError(f'{name}={given!r} is no IP address with a port, such as "127.0.0.1:8000"')
