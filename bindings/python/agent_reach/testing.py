"""A gateway for your tests: a real one, within this process, on a free port, with all tasks in memory.

With pytest, ask for the fixture ``agent_reach_gateway``; it comes with the installation.

    def test_my_agent(agent_reach_gateway):
        with Client(agent_reach_gateway.url) as reach:
            assert reach.agents() == []
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence

from ._gateways import Apart, Way, Within
from .errors import ConfigError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Gateway"]


def _remove(folder: Path, pid: int) -> None:
    # Not when a forked child ends.
    if pid == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


class Gateway:
    """A gateway on a port of this machine that was free. Use it as a context manager, or :meth:`start` and :meth:`stop` it.

    It runs within this process, on threads of its own, with its tasks in memory: there is nothing to install beside this
    package. As many as you like may run at once. ``config``: the text of a ``gateway.toml``, with which for instance
    ``auth.mode = "required"`` is set.

    ``process=True``: the program ``reach-gateway`` in a process of its own instead, with its data on disk. ``command`` is
    where that is; unless given, ``AGENT_REACH_GATEWAY``, else the one on ``PATH``. ``arguments`` go to it.
    """

    def __init__(
        self,
        *,
        config: str = "",
        process: bool = False,
        command: Optional[str] = None,
        arguments: Sequence[str] = (),
    ) -> None:
        if not process and (command is not None or arguments):
            raise ConfigError("command and arguments are those of a process: say process=True")
        self._pid = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="agent-reach-"))
        self._gone = weakref.finalize(self, _remove, self._folder, self._pid)
        path, data = self._folder / "gateway.toml", self._folder / "data"
        path.write_text(config, encoding="utf-8")
        self._way: Way = Apart(command, path, data, arguments) if process else Within(path, data)
        self._url: Optional[str] = None
        self._is_up = False

    @property
    def url(self) -> str:
        """Where it is: ``http://127.0.0.1:PORT`` (``https://`` with ``[tls]``), the same over restarts."""
        if self._url is None:
            raise RuntimeError("the gateway was not started")
        return self._url

    @property
    def log(self) -> List[str]:
        """The last lines that it logged; ``RUST_LOG`` says which there are."""
        return self._way.log()

    @property
    def operator_token(self) -> str:
        """The token with which a client may do everything, where ``auth.mode = "required"``. It is another one after a restart."""
        return (self._folder / "data" / "operator-key").read_text(encoding="utf-8").strip()

    @property
    def _is_ours(self) -> bool:
        # A forked child leaves the parent's gateway alone.
        return self._pid == os.getpid()

    def start(self) -> Self:
        """Starts it, and returns when it listens. Raises ``RuntimeError`` if it does not, with the reason."""
        if not self._is_ours:
            raise RuntimeError("this gateway is that of the parent process; make one in the child")
        if self._is_up:
            raise RuntimeError("the gateway runs already")
        self._url = self._way.start()
        self._is_up = True
        return self

    def stop(self) -> None:
        """Stops it in an orderly way: calls that wait have 10 s to end."""
        if self._is_ours:
            self._is_up = False
            self._way.stop()

    def kill(self) -> None:
        """Stops it as a power cut would: nobody is told, nothing is finished. What was durable is there after a start."""
        if self._is_ours:
            self._is_up = False
            self._way.kill()

    def restart(self) -> Self:
        """Kills it and starts it again on the same data and port."""
        self.kill()
        return self.start()

    def close(self) -> None:
        """Ends it for good; its data is gone."""
        if self._is_ours:
            self.kill()
            self._gone()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
