"""The two ways to run a gateway for a test: within this process, and in one of its own. See :mod:`agent_reach.testing`."""

from __future__ import annotations

import collections
import os
import queue
import re
import subprocess
import threading
import weakref
from pathlib import Path
from typing import IO, Callable, Deque, List, Optional, Sequence, Union

from . import _core

_LISTENING = re.compile(r"listening on (https?://[^\s\"]+)")
_START_WITHIN = 30.0
_STOP_WITHIN = 15.0


class Within:
    """A gateway within this process."""

    #: Those that a forked child must not keep the ports of.
    _all: weakref.WeakSet[Within] = weakref.WeakSet()

    def __init__(self, config: Path, data: Path) -> None:
        make = getattr(_core, "Gateway", None)
        if make is None:
            raise RuntimeError("this build of agent_reach has no gateway in it; say process=True")
        self._core: _core.Gateway = make(str(config), str(data))
        self._port: Optional[int] = None
        Within._all.add(self)

    def start(self) -> str:
        url = self._core.start()
        self._port = self._core.listener()
        return url

    def stop(self) -> None:
        self._port = None
        self._core.stop()

    def kill(self) -> None:
        self._port = None
        self._core.kill()

    def log(self) -> List[str]:
        return self._core.log()

    @staticmethod
    def _in_child() -> None:
        # The parent would not get its port again while the child holds it.
        for gateway in list(Within._all):
            port, gateway._port = gateway._port, None
            if port is not None:
                os.close(port)


os.register_at_fork(after_in_child=Within._in_child)


class Apart:
    """A gateway in a process of its own."""

    def __init__(self, command: Optional[str], config: Path, data: Path, arguments: Sequence[str]) -> None:
        self._command = command or os.environ.get("AGENT_REACH_GATEWAY") or "reach-gateway"
        self._arguments = ["serve", "--config", str(config), "--data", str(data), *arguments]
        self._process: Optional[subprocess.Popen[str]] = None
        self._lines: Deque[str] = collections.deque(maxlen=200)
        self._url: Optional[str] = None

    def start(self) -> str:
        self._process = self._spawn()
        heard: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
        assert self._process.stderr is not None
        threading.Thread(target=self._read, args=(self._process.stderr, heard), daemon=True).start()
        try:
            url = heard.get(timeout=_START_WITHIN)
        except queue.Empty:
            url = None
        if url is None:
            self.kill()
            raise RuntimeError("the gateway did not start:\n" + "".join(self._lines))
        self._url = url
        return url

    def _spawn(self) -> subprocess.Popen[str]:
        command = [self._command, *self._arguments, "--listen", (self._url or "http://127.0.0.1:0").partition("://")[2]]
        try:
            return subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        except FileNotFoundError as error:
            raise RuntimeError(
                f"there is no {self._command!r}: put reach-gateway on PATH, or name it in AGENT_REACH_GATEWAY"
            ) from error

    def _read(self, lines: IO[str], heard: queue.SimpleQueue[Optional[str]]) -> None:
        with lines:
            for line in lines:
                self._lines.append(line)
                found = _LISTENING.search(line)
                if found:
                    heard.put(found[1])
        heard.put(None)

    def stop(self) -> None:
        self._end(lambda process: process.terminate())

    def kill(self) -> None:
        self._end(lambda process: process.kill())

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        how(process)
        try:
            process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> List[str]:
        return list(self._lines)


#: A gateway that can be started and ended again and again, on the same port. ``start`` answers its URL, ``kill`` ends it where it
#: stands.
Way = Union[Within, Apart]
