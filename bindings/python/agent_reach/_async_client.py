"""Calling from ``asyncio``: :class:`AsyncClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, List, Optional, TypeVar

from . import _bridge, _calls
from ._calls import Ask, Call, Redrive, TaskLike, Which
from ._checked import Seconds
from ._face import Face
from ._json import read
from ._types import AgentStatus, Explanation, Found, Redriven, Resolved, Task

if TYPE_CHECKING:
    from types import TracebackType
    from typing_extensions import Self, Unpack

__all__ = ["AsyncClient"]

_T = TypeVar("_T")


class AsyncClient(Face):
    """A caller of the gateway, for ``asyncio``. Share one between as many tasks as there are.

    It belongs to no event loop, may be entered more than once, and starts none of its own.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends what there is of a connection; later calls raise :class:`ConfigError`."""
        self._core.close()

    async def _ask(self, call: Call[_T]) -> _T:
        answer = await _bridge.desk().ask(
            lambda mailbox, ticket: self._core.begin(mailbox, ticket, call.op, call.params)
        )
        return call.read(read(answer))

    async def submit(self, capability: Optional[str] = None, params: Any = None, **ask: Unpack[Ask]) -> Task:
        """Submits a task; once this returns, it is durable.

        Say at least one of ``capability``, ``intent`` and ``to_agent``. Every submit carries an idempotency key, the
        same over all its tries, so that a lost answer never makes the work run twice.
        """
        return await self._ask(_calls.submit(capability, params, ask))

    async def reach(
        self,
        capability: Optional[str] = None,
        params: Any = None,
        *,
        cancel_on_abandon: bool = False,
        **ask: Unpack[Ask],
    ) -> Task:
        """Submits a task and waits for its result, through restarts of the gateway.

        Raises the task's own failure: :class:`NoCandidate`, :class:`TaskFailed`, :class:`Timeout`, ... If the call is
        abandoned (its asyncio task is cancelled), the task goes on, unless ``cancel_on_abandon``: then it is called off, even if its id
        was not known yet.
        """
        return await self._ask(_calls.reach(capability, params, cancel_on_abandon, ask))

    async def wait_for_result(
        self, task: TaskLike, *, timeout: Optional[Seconds] = None, cancel_on_abandon: bool = False
    ) -> Task:
        """Waits until a task has ended, woken and not polling, through restarts of the gateway.

        Without a ``timeout``: as long as the task's own deadline lets it run. Raises the task's own failure, or
        :class:`WaitTimeout`, after which it can be waited for again. ``cancel_on_abandon`` as for :meth:`reach`.
        """
        return await self._ask(_calls.wait_for_result(task, timeout, cancel_on_abandon))

    async def get(self, task: TaskLike) -> Task:
        """The task as it is now."""
        return await self._ask(_calls.get(task))

    async def cancel(self, task: TaskLike) -> Task:
        """Calls a task off, and answers what it is then. One that was called off before is answered as it is."""
        return await self._ask(_calls.cancel(task))

    async def explain(self, task: TaskLike) -> Explanation:
        """Every routing decision that was taken for a task: who was looked at, and who lost why."""
        return await self._ask(_calls.explain(task))

    async def resolve(self, capability: Optional[str] = None, params: Any = None, **ask: Unpack[Ask]) -> Resolved:
        """Which agent would get this task, and where it is, for those who go there themselves. Submits nothing."""
        return await self._ask(_calls.resolve(capability, params, ask))

    async def discover(
        self,
        intent: Optional[str] = None,
        *,
        namespace: Optional[str] = None,
        from_agent: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> List[Found]:
        """Capabilities that fit these words, best first; without words, all that may be called."""
        return await self._ask(_calls.discover(intent, namespace, from_agent, limit))

    async def tasks(self, **which: Unpack[Which]) -> List[Task]:
        """Tasks, newest first."""
        return await self._ask(_calls.tasks("tasks", which))

    async def agents(
        self,
        *,
        namespace: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
    ) -> List[AgentStatus]:
        """Agents and how they are, in the order of their ids."""
        return await self._ask(_calls.agents(namespace, limit, after))

    async def agent(self, agent_id: str) -> AgentStatus:
        """One agent and how it is."""
        return await self._ask(_calls.agent(agent_id))

    async def drain(self, agent_id: str) -> int:
        """Sends an agent no new work; what it has may finish. Answers how many tasks that are."""
        return await self._ask(_calls.drain(agent_id))

    async def dead_letters(self, **which: Unpack[Which]) -> List[Task]:
        """Tasks that were given up on, newest first. For operators."""
        return await self._ask(_calls.tasks("dead_letters", which))

    async def dead_letter(self, task: TaskLike) -> Explanation:
        """One task that was given up on, with its history. For operators."""
        return await self._ask(_calls.dead_letter(task))

    async def redrive(self, *tasks: TaskLike, **which: Unpack[Redrive]) -> Redriven:
        """Sends dead letters again, under their own ids: these, or those that ``which`` describes. For operators."""
        return await self._ask(_calls.redrive(tasks, which))

    async def call(self, method: str, params: Any = None) -> Any:
        """Calls any method of the gateway by its name, such as ``"metrics/overview"``."""
        return await self._ask(_calls.call(method, {} if params is None else params))

    async def progress(self, task: TaskLike) -> AsyncIterator[Task]:
        """Watches a task: how it is now, then each change of its phase or progress, until its end, which comes last.

        Of changes that are not looked at, 64 wait here and more at the gateway, which drops the oldest of them and
        never the last. It has a WebSocket of its own and goes through restarts of the gateway; what happened meanwhile
        is told as one.
        """
        watch = self._core.watch(_calls.id_of(task))
        while True:
            told = read(await _bridge.desk().ask(watch.begin))
            if told is None:
                return
            yield Task(told)
