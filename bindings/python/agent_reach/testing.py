"""A gateway for your tests: a real one, in a process of its own, with a data folder that goes when it stops.

With pytest, ask for the fixture ``agent_reach_gateway``; it comes with the installation.

    def test_my_agent(agent_reach_gateway):
        with Client(agent_reach_gateway.url) as reach:
            assert reach.agents() == []
"""

from __future__ import annotations

import collections
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Callable, Deque, List, Optional, Sequence

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Gateway"]

_LISTENING = re.compile(r"listening on (http://[^\s\"]+)")
_START_WITHIN = 30.0
_STOP_WITHIN = 10.0


class Gateway:
    """A gateway in a process of its own, on a port of this machine that was free.

    ``command`` is the program ``reach-gateway``; unless given, ``AGENT_REACH_GATEWAY``, else the one on ``PATH``.
    ``config``: the text of a ``gateway.toml``. Use it as a context manager, or :meth:`start` and :meth:`stop` it.
    """

    def __init__(self, *, command: Optional[str] = None, config: str = "", arguments: Sequence[str] = ()) -> None:
        self._command = command or os.environ.get("AGENT_REACH_GATEWAY") or "reach-gateway"
        self._arguments = list(arguments)
        self._folder = Path(tempfile.mkdtemp(prefix="agent-reach-"))
        self._config = self._folder / "gateway.toml"
        self._config.write_text(config, encoding="utf-8")
        self._process: Optional[subprocess.Popen[str]] = None
        self._log: Deque[str] = collections.deque(maxlen=200)
        self._address: Optional[str] = None

    @property
    def url(self) -> str:
        """Where it is: ``http://127.0.0.1:PORT``, the same over restarts."""
        if self._address is None:
            raise RuntimeError("the gateway was not started")
        return f"http://{self._address}"

    @property
    def log(self) -> List[str]:
        """The last lines that it logged."""
        return list(self._log)

    def start(self) -> Self:
        """Starts it, and returns when it listens. Raises ``RuntimeError`` with its last words if it does not."""
        if self._process is not None:
            raise RuntimeError("the gateway runs already")
        self._process = self._spawn()
        heard: queue.SimpleQueue[bool] = queue.SimpleQueue()
        assert self._process.stderr is not None
        threading.Thread(target=self._read, args=(self._process.stderr, heard), daemon=True).start()
        try:
            is_listening = heard.get(timeout=_START_WITHIN)
        except queue.Empty:
            is_listening = False
        if not is_listening:
            self.kill()
            raise RuntimeError("the gateway did not start:\n" + "".join(self._log))
        return self

    def _spawn(self) -> subprocess.Popen[str]:
        command = [self._command, "serve", "--config", str(self._config), "--data", str(self._folder / "data")]
        command += ["--listen", self._address or "127.0.0.1:0", *self._arguments]
        try:
            return subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        except FileNotFoundError as error:
            raise RuntimeError(
                f"there is no {self._command!r}: put reach-gateway on PATH, or name it in AGENT_REACH_GATEWAY"
            ) from error

    def _read(self, lines: IO[str], heard: queue.SimpleQueue[bool]) -> None:
        with lines:
            for line in lines:
                self._log.append(line)
                found = _LISTENING.search(line)
                if found:
                    self._address = found[1][len("http://") :]
                    heard.put(True)
        heard.put(False)

    def stop(self) -> None:
        """Stops it in an orderly way."""
        self._end(lambda process: process.terminate())

    def kill(self) -> None:
        """Stops it as a power cut would: ``kill -9``."""
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

    def restart(self) -> Self:
        """Kills it and starts it again on the same data and port."""
        self.kill()
        return self.start()

    def close(self) -> None:
        """Stops it and takes its data folder away."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
