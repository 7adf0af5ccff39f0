"""The serving side: an :class:`Agent` registers, gets work, runs it through your functions, and brings results back."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import signal
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Literal,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    get_args,
)

from . import _bridge, _core, _tracing
from ._async_client import AsyncClient
from ._checked import Seconds, address, in_seconds, one_of, span
from ._context import Context, _current
from ._face import Place, checked, connection
from ._failed import Poison, TryAgain, WorkFailed
from ._handler import Handler
from ._json import read, write
from ._threads import Threads
from ._types import Registered
from .errors import ConfigError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Agent", "Context", "Poison", "TryAgain", "WorkFailed"]

_F = TypeVar("_F", bound=Callable[..., Any])

Effect = Literal["read", "idempotent_write", "write"]
Tier = Literal["fast", "normal", "long"]
Via = Literal["websocket", "queue", "http"]

_WORK, _STOP, _GONE = 1, 2, 3

_log = logging.getLogger("agent_reach.agent")


class Agent:
    """An agent that serves.

    ``agent_id``: ``"name@namespace"``. ``via``: how work comes: over a ``websocket`` that the agent opens (the default,
    and the way from behind NAT), by pulling from its ``queue``, or by ``http`` requests, to ``listen`` (an address such as
    ``"127.0.0.1:0"``) or to a server of yours that mounts :meth:`asgi`; ``public_url`` is where the gateway finds it then.
    ``url``, ``token``, ``join``, ``key_file``, ``ca_file`` and ``client_cert`` as for :class:`AsyncClient`: where the gateway asks
    who calls, the agent joins by ``join`` once, keeps the key that it is given, and renews its tokens by itself. ``max_concurrency``: how many tasks at once. ``callable_by`` and
    ``may_call``: who may call it and whom it may call, as patterns such as ``"*@media"``; unless given, its own namespace.
    ``card``: anything more that the agent's card should say.

    >>> agent = Agent("counter@demo", description="Counts")
    >>> @agent.capability(effect="read")
    ... def count_words(text: str) -> int:
    ...     '''Counts the words of a text.'''
    ...     return len(text.split())
    """

    def __init__(
        self,
        agent_id: str,
        *,
        description: str = "",
        version: str = "1",
        tags: Sequence[str] = (),
        max_concurrency: int = 16,
        heartbeat: Seconds = 10,
        callable_by: Optional[Sequence[str]] = None,
        may_call: Optional[Sequence[str]] = None,
        url: Optional[str] = None,
        token: Optional[str] = None,
        join: Optional[str] = None,
        key_file: Optional[Place] = None,
        ca_file: Optional[Place] = None,
        client_cert: Optional[Tuple[Place, Place]] = None,
        via: Via = "websocket",
        listen: Optional[str] = None,
        public_url: Optional[str] = None,
        answer_within: Optional[Seconds] = None,
        card: Optional[Dict[str, Any]] = None,
    ) -> None:
        _check_way(via, listen, public_url)
        self.agent_id = agent_id
        self._card: Dict[str, Any] = {
            "agent_id": agent_id,
            "version": version,
            "description": description,
            "tags": list(tags),
            "max_concurrency": max_concurrency,
            "heartbeat_interval": span("heartbeat", heartbeat),
            **(card or {}),
        }
        access = {"callable_by": callable_by, "may_call": may_call}
        given = {name: list(patterns) for name, patterns in access.items() if patterns is not None}
        if given:
            self._card["access"] = given
        reached = connection(
            url=url, token=token, join=join, key_file=key_file, ca_file=ca_file, client_cert=client_cert
        )
        checked({**reached, "from_agent": agent_id})
        self._way: Dict[str, Any] = {"connection": reached, "via": via, "listen": listen, "public_url": public_url}
        if answer_within is not None:
            self._way["answer_within"] = in_seconds("answer_within", answer_within)
        self._offers: List[Dict[str, Any]] = []
        self._handlers: Dict[str, Handler] = {}
        self._threads = Threads(f"agent-reach-{agent_id}")
        self._serving: Optional[_Serving] = None

    def capability(
        self,
        name: Optional[str] = None,
        *,
        description: Optional[str] = None,
        effect: Effect = "write",
        tier: Tier = "normal",
        timeout: Optional[Seconds] = None,
        exclusions: Sequence[str] = (),
        tags: Sequence[str] = (),
        routing_weight: int = 50,
        cancellable: bool = True,
        input_schema: Optional[Dict[str, Any]] = None,
        output_schema: Optional[Dict[str, Any]] = None,
        **more: Any,
    ) -> Callable[[_F], _F]:
        """Offers a function as a capability. Unless given, its name is the function's, its description the first paragraph
        of the docstring, and its schemas are made of the type hints. ``effect``: what it does to the world; a ``write``,
        the default, is never repeated when its outcome is unknown. The function stays as it is.

        ``exclusions`` say what it does not do. ``more`` is anything else that a capability may say, such as ``fallback``.
        """
        one_of("effect", effect, get_args(Effect))
        one_of("tier", tier, get_args(Tier))

        def offer(function: _F) -> _F:
            handler = Handler(function, input_schema, output_schema)
            words = (function.__doc__ or "").strip().split("\n\n")[0]
            told: Dict[str, Any] = {
                "name": name or function.__name__,
                "description": " ".join(words.split()) if description is None else description,
                "effect": effect,
                "tier": tier,
                "exclusions": list(exclusions),
                "tags": list(tags),
                "routing_weight": routing_weight,
                "cancellable": cancellable,
                "input_schema": handler.input_schema,
                "output_schema": handler.output_schema,
                "timeout": None if timeout is None else span("timeout", timeout),
                **more,
            }
            told = {key: value for key, value in told.items() if value is not None}
            if told["name"] in self._handlers:
                raise ConfigError(f"{self.agent_id} offers {told['name']} already")
            self._handlers[told["name"]] = handler
            self._offers.append(told)
            return function

        return offer

    @property
    def card(self) -> Dict[str, Any]:
        """What the agent says of itself when it registers."""
        return {**self._card, "capabilities": self._offers}

    @property
    def client(self) -> AsyncClient:
        """A client over the agent's own connection, for asking other agents. It must serve."""
        core = None if self._serving is None else self._serving.core.client()
        if core is None:
            raise RuntimeError(f"{self.agent_id} does not serve")
        return AsyncClient._over(core)

    @property
    def is_serving(self) -> bool:
        """Whether it is registered and takes work, or finishes what it has."""
        return self._serving is not None and self._serving.core.client() is not None

    @property
    def load(self) -> int:
        """How many tasks it works on."""
        return 0 if self._serving is None else self._serving.core.load()

    def set_dependency(self, name: str, state: Literal["up", "degraded", "down"]) -> None:
        """Reports the state of something that the agent needs, with the next heartbeat and from then on."""
        if self._serving is not None:
            self._serving.core.set_dependency(name, state)

    async def start(self) -> Registered:
        """Registers and begins to serve on the running loop. A gateway that is away is waited for.

        Raises what the gateway refused the registration with.
        """
        if self._serving is not None:
            raise RuntimeError(f"{self.agent_id} serves already")
        serving = self._serving = _Serving(self._handlers, self._threads, write({"card": self.card, **self._way}))
        try:
            return Registered(read(await serving.desk.ask(lambda _, ticket: serving.core.start(ticket))))
        except BaseException:
            self._serving = None
            serving.close()
            raise

    async def drain(self, grace: Seconds = 30) -> int:
        """Takes no new work, lets what runs finish within ``grace``, stops what has not, reports all of it, and leaves.
        Answers how many tasks were cut short."""
        within = in_seconds("grace", grace)
        serving = self._serving
        if serving is None:
            return 0
        try:
            return int(read(await serving.desk.ask(lambda _, ticket: serving.core.drain(ticket, within))))
        finally:
            if self._serving is serving:
                self._serving = None
            serving.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.drain()

    async def serve(self, *, grace: Seconds = 30) -> None:
        """Serves until it is cancelled, or SIGTERM or SIGINT come to a loop of the main thread; then drains.

        Raises why the agent can serve no more, if that comes first.
        """
        in_seconds("grace", grace)
        if self._serving is None:
            await self.start()
        serving = self._serving
        assert serving is not None
        stop = asyncio.Event()
        signals = _listen_for_signals(stop.set)
        ended = asyncio.ensure_future(serving.desk.ask(lambda _, ticket: serving.core.ended(ticket)))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                ended.result()
        finally:
            for waiting in (ended, stopped):
                waiting.cancel()
            await self.drain(grace)
            for number in signals:
                asyncio.get_running_loop().remove_signal_handler(number)

    def run(self, *, grace: Seconds = 30) -> None:
        """Serves until SIGTERM or SIGINT, then drains: the whole of a program whose business is to be this agent."""
        asyncio.run(self.serve(grace=grace))

    def asgi(self) -> Callable[..., Any]:
        """An ASGI app that takes the work, to be mounted in a server of yours, with ``via="http"`` and the ``public_url``
        where it is mounted. It starts the agent with the server and drains it with the server, if the server tells it so
        (``lifespan``). A mounted app is not told by most frameworks: there, say ``async with agent: yield`` in the lifespan
        of the app that mounts it. Requests to an agent that does not serve are answered with 503."""
        from ._asgi import App

        return App(self)

    async def _answer_http(self, method: str, target: str, body: bytes) -> Optional[Dict[str, Any]]:
        """What the request is answered. ``None``: the agent does not serve."""
        serving = self._serving
        if serving is None:
            return None
        answer = await serving.desk.ask(lambda _, ticket: serving.core.answer_http(ticket, method, target, body))
        told: Dict[str, Any] = read(answer)
        return told


def _check_way(via: Via, listen: Optional[str], public_url: Optional[str]) -> None:
    one_of("via", via, get_args(Via))
    given = {"listen": listen, "public_url": public_url}
    names = [name for name, value in given.items() if value is not None]
    if via != "http" and names:
        raise ConfigError(f"{names[0]} is for via='http', and this agent is via={via!r}")
    if via == "http" and not names:
        raise ConfigError(
            "via='http' needs to know where: give listen=, such as \"127.0.0.1:8000\", or public_url= where a server of "
            "yours mounts asgi()"
        )
    if listen is not None:
        address("listen", listen)


def _listen_for_signals(stop: Callable[[], Any]) -> List[int]:
    if threading.current_thread() is not threading.main_thread():
        return []
    numbers: List[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            asyncio.get_running_loop().add_signal_handler(number, stop)
            numbers.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            _log.debug("signal %s cannot be listened for on this loop", number)
    return numbers


class _Serving:
    """An agent on one loop, from its start to its end."""

    def __init__(self, handlers: Dict[str, Handler], threads: Threads, settings: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._handlers = handlers
        self._threads = threads
        self._running: Dict[int, Tuple[asyncio.Task[None], Context, bool]] = {}
        self.desk = _bridge.Desk(self._loop, self._letter)
        try:
            self.core = _core.Agent(self.desk.mailbox, settings)
        except ValueError as error:
            self.desk.close()
            raise ConfigError(f"the agent's card cannot be used: {error}") from error
        except BaseException:
            self.desk.close()
            raise

    def close(self) -> None:
        self.desk.close()
        for task, context, _ in list(self._running.values()):
            context._stopped.set()
            task.cancel()

    def _letter(self, kind: int, work: int, text: Optional[str]) -> None:
        if kind == _WORK:
            delivery: Dict[str, Any] = read(text or "null")
            context = Context(self.core, self.desk, work, delivery, self._loop)
            handler = self._handlers[delivery["capability"]]
            task = self._loop.create_task(self._do(handler, context), name=f"agent-reach-{context.task_id}")
            self._running[work] = (task, context, handler.is_async)
            return
        out = self._running.get(work)
        if out is not None:
            task, context, is_async = out
            context._stopped.set()
            # One that blocks has until it is gone to look whether it was called off.
            if is_async or kind == _GONE:
                task.cancel()

    async def _do(self, handler: Handler, context: Context) -> None:
        mark = _current.set(context)
        leave = _tracing.enter(context.traceparent)
        try:
            self.core.finish(context._work, await self._result(handler, context))
        except WorkFailed as failed:
            self._fail(context, failed._kind, failed.message, failed._after, failed.data)
        except asyncio.CancelledError:
            self._fail(context, "retryable", "the work was called off, or the agent stopped")
            if not context.is_cancelled:
                raise
        except Exception as error:  # noqa: BLE001
            _log.exception("%s failed on task %s", context.capability, context.task_id)
            self._fail(context, "final", f"{type(error).__name__}: {error}")
        except BaseException as error:
            self._fail(context, "retryable", f"the agent stops: {error!r}")
            raise
        finally:
            leave()
            _current.reset(mark)
            self._running.pop(context._work, None)

    async def _result(self, handler: Handler, context: Context) -> str:
        try:
            args, named = handler.bind(context.params, context)
        except (TypeError, ValueError) as error:
            raise WorkFailed(f"params: {error}") from error
        if handler.is_async:
            result = await handler.function(*args, **named)
        else:
            copied = contextvars.copy_context()
            result = await self._threads.run(lambda: copied.run(handler.function, *args, **named))
        try:
            return write(result)
        except (TypeError, ValueError, RecursionError) as error:
            raise WorkFailed(f"the result is not JSON: {error}") from error

    def _fail(
        self, context: Context, kind: str, message: str, after: Optional[Seconds] = None, data: Any = None
    ) -> None:
        failed: Dict[str, Union[str, float, None, Any]] = {"kind": kind, "message": message}
        if after is not None:
            failed["retry_after"] = after
        try:
            text = write({**failed, "data": data} if data is not None else failed)
        except (TypeError, ValueError, RecursionError):
            # What cannot be said in JSON is left out; the failure is told all the same.
            text = write({**failed, "message": message.encode("utf-8", "replace").decode()})
        self.core.fail(context._work, text)
