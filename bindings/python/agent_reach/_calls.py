"""The calls as both clients make them: a name, its parameters as JSON, and how its answer is read. The rules of the wire
(keys, retries, waits) are the core's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    List,
    Literal,
    Optional,
    Sequence,
    TypedDict,
    TypeVar,
    Union,
    get_args,
)

from . import _tracing
from ._checked import Seconds, known, one_of, span, within
from ._json import write
from ._types import AgentStatus, Explanation, Found, Redriven, Resolved, Task
from .errors import ConfigError

if TYPE_CHECKING:
    pass

_T = TypeVar("_T")

Mode = Literal["direct", "queue", "broadcast"]
OnFailed = Literal["replay", "retry"]
OnInFlight = Literal["join", "reject"]
TaskLike = Union[str, Task]


class Ask(TypedDict, total=False):
    """What may be said of a task, beside the capability and its parameters."""

    intent: str
    """What is wanted, in words."""
    to_agent: str
    """Ask this agent and no other."""
    namespace: str
    """Look in this namespace only."""
    from_agent: str
    """Who asks, in place of the client's own."""
    mode: Mode
    """``direct`` (the default): the gateway calls one agent. ``queue``: one that fits pulls it. ``broadcast``: it is
    offered to all that fit, and one claim wins."""
    priority: int
    """0 to 9, 9 first."""
    idempotency_key: Union[str, Literal[False]]
    """Your own name for this intention, in place of one made up for this call. ``False``: none, so that a ``read`` that
    is waited for never touches the gateway's disk, but is not tried again if its answer is lost."""
    on_failed: OnFailed
    """If an earlier task of the same key did not end well."""
    on_in_flight: OnInFlight
    """If an earlier task of the same key is not finished."""
    timeout: Seconds
    """How long all of it may take: the task's deadline, from now."""
    attempt_timeout: Seconds
    """How long one try may take."""
    tries: int
    """How many tries at most, 1 to 10."""
    callbacks: Sequence[str]
    """Addresses that are told of the end by a signed webhook."""
    traceparent: str
    """W3C ``traceparent`` to hang under. Without one: the current OpenTelemetry span, or the attempt being worked on."""


_SPANS = {"timeout": "deadline", "attempt_timeout": "attempt_timeout"}
_WORDS = {"mode": get_args(Mode), "on_failed": get_args(OnFailed), "on_in_flight": get_args(OnInFlight)}
_BOUNDS = {"priority": (0, 9), "tries": (1, 10)}


@dataclass(frozen=True)
class Call(Generic[_T]):
    """A call that is ready to be made."""

    op: str
    params: str
    read: Callable[[Any], _T]


def key_of(*parts: Union[str, int]) -> str:
    """An idempotency key made of your own ids: the same parts, the same key, on any machine.

    >>> key_of("refund", "order", 4711) == key_of("refund", "order", 4711)
    True
    """
    if not parts:
        raise ConfigError("a key is made of at least one part")
    return "py-" + hashlib.sha256(write(parts).encode()).hexdigest()[:40]


def id_of(task: TaskLike) -> str:
    """The id of a task, however it is given."""
    return task if isinstance(task, str) else task.id


def _submit(capability: Optional[str], params: Any, ask: Ask) -> dict[str, Any]:
    known(ask, Ask.__annotations__)
    submit: dict[str, Any] = {}
    for name, value in ask.items():
        if value is None or value is False:
            continue
        if name in _SPANS:
            submit[_SPANS[name]] = span(name, value)  # type: ignore[arg-type]
        elif name == "callbacks":
            submit[name] = [{"url": url} for url in value]  # type: ignore[attr-defined]
        else:
            if name in _WORDS:
                one_of(name, value, _WORDS[name])
            elif name in _BOUNDS:
                within(name, value, *_BOUNDS[name])
            submit[name] = value
    if capability is not None:
        submit["capability"] = capability
    if params is not None:
        submit["params"] = params
    if "traceparent" not in submit:
        trace = _tracing.current()
        if trace is not None:
            submit["traceparent"] = trace
    return submit


def _wanted(capability: Optional[str], params: Any, ask: Ask, cancel: bool = False) -> str:
    wanted: dict[str, Any] = {"submit": _submit(capability, params, ask)}
    if ask.get("idempotency_key") is False:
        wanted["keyless"] = True
    if cancel:
        wanted["cancel_on_drop"] = True
    return write(wanted)


def submit(capability: Optional[str], params: Any, ask: Ask) -> Call[Task]:
    return Call("submit", _wanted(capability, params, ask), Task)


def reach(capability: Optional[str], params: Any, cancel: bool, ask: Ask) -> Call[Task]:
    return Call("reach", _wanted(capability, params, ask, cancel), Task)


def resolve(capability: Optional[str], params: Any, ask: Ask) -> Call[Resolved]:
    return Call("resolve", _wanted(capability, params, ask), Resolved)


def wait_for_result(task: TaskLike, timeout: Optional[Seconds], cancel: bool) -> Call[Task]:
    awaited: dict[str, Any] = {"task_id": id_of(task), "cancel_on_drop": cancel}
    if timeout is not None:
        awaited["wait"] = span("timeout", timeout)
    return Call("wait_for_result", write(awaited), Task)


def _of_task(op: str, task: TaskLike, read: Callable[[Any], _T]) -> Call[_T]:
    return Call(op, write({"task_id": id_of(task)}), read)


def get(task: TaskLike) -> Call[Task]:
    return _of_task("get", task, Task)


def cancel(task: TaskLike) -> Call[Task]:
    return _of_task("cancel", task, Task)


def explain(task: TaskLike) -> Call[Explanation]:
    return _of_task("explain", task, Explanation)


def dead_letter(task: TaskLike) -> Call[Explanation]:
    return _of_task("dead_letter", task, Explanation)


def _given(**values: Any) -> str:
    return write({name: value for name, value in values.items() if value is not None})


class Which(TypedDict, total=False):
    """Which tasks to list."""

    phase: str
    """Only those in this phase."""
    agent_id: str
    """Only those that this agent has or had."""
    limit: int
    """At most so many, 1 to 1000; 50 unless given."""
    before: TaskLike
    """Go on with those older than this one."""


def tasks(op: str, which: Which) -> Call[List[Task]]:
    known(which, Which.__annotations__)
    params: dict[str, Any] = {**which}
    if "before" in which:
        params["before"] = id_of(which["before"])
    return Call(op, write(params), lambda told: list(map(Task, told)))


def discover(
    intent: Optional[str], namespace: Optional[str], from_agent: Optional[str], limit: Optional[int]
) -> Call[List[Found]]:
    params = _given(intent=intent, namespace=namespace, from_agent=from_agent, limit=limit)
    return Call("discover", params, lambda told: list(map(Found, told)))


def agents(namespace: Optional[str], limit: Optional[int], after: Optional[str]) -> Call[List[AgentStatus]]:
    params = _given(namespace=namespace, limit=limit, after=after)
    return Call("agents", params, lambda told: list(map(AgentStatus, told)))


def agent(agent_id: str) -> Call[AgentStatus]:
    return Call("agent", write({"agent_id": agent_id}), AgentStatus)


def drain(agent_id: str) -> Call[int]:
    return Call("drain", write({"agent_id": agent_id}), int)


class Redrive(TypedDict, total=False):
    """Which dead letters to send again, and how."""

    agent_id: str
    """Only those that this agent had."""
    capability: str
    """Only those of this capability."""
    code: str
    """Only those that ended with this error."""
    from_agent: str
    """Only those that this agent asked for."""
    from_namespace: str
    """Only those that were asked for from this namespace."""
    ended_after: str
    """Only those that were given up on after this time, RFC 3339."""
    ended_before: str
    """Only those that were given up on before this time, RFC 3339."""
    all: bool
    """All of them; needed where nothing else says which."""
    limit: int
    """At most so many in this call."""
    rate: int
    """How many a second may go."""
    dry_run: bool
    """Only say what would be sent."""
    deadline: Seconds
    """The new deadline, from when each goes."""


def redrive(tasks: Sequence[TaskLike], which: Redrive) -> Call[Redriven]:
    known(which, Redrive.__annotations__)
    params: dict[str, Any] = dict(which)
    if tasks:
        params["task_ids"] = [id_of(task) for task in tasks]
    if "deadline" in params:
        params["deadline"] = span("deadline", params["deadline"])
    return Call("redrive", write(params), Redriven)


def call(method: str, params: Any) -> Call[Any]:
    return Call("call", write({"method": method, "params": params}), lambda told: told)
