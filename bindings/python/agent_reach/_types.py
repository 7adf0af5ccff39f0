"""What comes back: views of what the gateway tells. They are read-only; ``to_dict()`` is the whole of what came."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Generic, List, Optional, Tuple, TypeVar, cast, overload

__all__ = [
    "AgentStatus",
    "Attempt",
    "Explanation",
    "Failure",
    "Found",
    "Lack",
    "Redriven",
    "Registered",
    "Resolved",
    "Suggestion",
    "Task",
]

_T = TypeVar("_T")
_S = TypeVar("_S", bound="_Told[Any]")

_FINAL = frozenset({"completed", "failed", "cancelled", "expired", "dead_lettered"})


class _View:
    """A part of what the gateway told."""

    __slots__ = ("_told",)
    _told: dict[str, Any]

    def __init__(self, told: dict[str, Any]) -> None:
        object.__setattr__(self, "_told", told)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __eq__(self, other: object) -> bool:
        return self._told == other._told if isinstance(other, type(self)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._told,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._told!r})"

    def to_dict(self) -> dict[str, Any]:
        """All that came, as it came. Do not change it."""
        return self._told


class _Told(Generic[_T]):
    """A field of a view: by which names it is told, and what it means. What was not told is ``absent``."""

    def __init__(self, path: str, words: str, read: Optional[Callable[[Any], _T]] = None, absent: Any = None) -> None:
        self._path = path.split(".")
        self._read = read
        self._absent = absent
        self.__doc__ = words

    @overload
    def __get__(self: _S, view: None, kind: Any) -> _S: ...
    @overload
    def __get__(self, view: _View, kind: Any) -> _T: ...
    def __get__(self, view: Optional[_View], kind: Any) -> Any:
        if view is None:
            return self
        told: Any = view._told
        for name in self._path:
            told = told.get(name)
            if told is None:
                # A list of the caller's own, which it may change.
                return list(self._absent) if isinstance(self._absent, list) else self._absent
        return cast(_T, told) if self._read is None else self._read(told)

    def __set__(self, view: _View, value: object) -> None:
        raise AttributeError(f"{type(view).__name__} is read-only")


def _time(text: str) -> datetime:
    # Python 3.10 does not read "Z".
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _each(view: Callable[[Any], _T]) -> Callable[[Any], List[_T]]:
    return lambda told: [view(one) for one in told]


class Lack(_View):
    """One thing that a candidate lacked."""

    __slots__ = ()

    reason = _Told[str]("reason", 'The reason by name, such as ``"full"``, ``"acl"`` or ``"dissimilar"``.')
    detail = _Told[str]("detail", "The reason in words, with the figures.", absent="")
    until = _Told[Optional[datetime]]("until", "When it may be over. ``None``: not by waiting, or nobody knows.", _time)


class Suggestion(_View):
    """Something near to what was asked, and what it lacked."""

    __slots__ = ()

    agent_id = _Told[str]("agent_id", "The agent.")
    capability = _Told[str]("capability", "Its capability.")
    description = _Told[str]("description", "What it does, in its own words.", absent="")
    similarity = _Told[Optional[float]](
        "similarity",
        "How near it is to the words, 0 to 1. ``None``: it was not asked by words.",
    )
    lacks = _Told[List[Lack]]("lacks", "What it lacked.", _each(Lack), absent=[])


class Failure(_View):
    """Why something did not end well."""

    __slots__ = ()

    code = _Told[str]("code", "Which error of the gateway's table.")
    message = _Told[str]("message", "What is wrong, in words.")
    data = _Told[Any]("data", "What the agent sent with it.")
    suggestions = _Told[List[Suggestion]](
        "suggestions",
        "What was near, if nobody fitted.",
        _each(Suggestion),
        absent=[],
    )


class Attempt(_View):
    """One try of a task on one agent."""

    __slots__ = ()

    agent_id = _Told[str]("agent_id", "Who was asked.")
    capability = _Told[str]("capability", "For what.")
    started_at = _Told[datetime]("started_at", "When it was given out.", _time)
    accepted_at = _Told[Optional[datetime]]("accepted_at", 'When the agent said "I have it".', _time)
    ended_at = _Told[Optional[datetime]]("ended_at", "When it ended.", _time)
    failure = _Told[Optional[Failure]]("failure", "Why it failed. ``None``: it has not.", Failure)


class Task(_View):
    """A task as it was when the gateway told of it."""

    __slots__ = ()

    id = _Told[str]("task_id", "Its id.")
    phase = _Told[str](
        "phase",
        "``submitted``, ``routed``, ``delivered``, ``accepted``, or an end: ``completed``, ``failed``, ``cancelled``, ``expired``, ``dead_lettered``.",
    )

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self._told["phase"] in _FINAL

    status_code = _Told[Optional[str]](
        "outcome",
        "How it ended: ``REACH_OK``, ``REACH_FALLBACK``, or the outcome word of its error. ``None``: not ended.",
    )
    result = _Told[Any]("result", "The agent's result, read from JSON.")
    failure = _Told[Optional[Failure]]("failure", "Why it did not end well.", Failure)
    is_replayed = _Told[bool](
        "replayed",
        "Whether the gateway knew the request already, by its idempotency key.",
        absent=False,
    )

    @property
    def is_fallback(self) -> bool:
        """Whether a fallback answered in place of what was asked for."""
        return self._told.get("outcome") == "REACH_FALLBACK"

    fallback_from = _Told[Optional[str]](
        "fallback_from",
        "The capability that was asked first, if a fallback answered.",
    )
    from_agent = _Told[Optional[str]]("from_agent", "Who asked.")
    agent = _Told[Optional[str]](
        "to_agent",
        "Who has it, or had it last. ``None``: nobody yet, or a static answer did it.",
    )
    capability = _Told[Optional[str]]("capability", "What that agent was asked for.")
    idempotency_key = _Told[Optional[str]]("idempotency_key", "The key that it was submitted under.")
    progress = _Told[Any]("progress", "What the agent last said of its progress.")
    attempts = _Told[List[Attempt]]("attempts", "What was tried, oldest first.", _each(Attempt), absent=[])
    created_at = _Told[datetime]("created_at", "When it was taken on.", _time)
    deadline_at = _Told[datetime]("deadline_at", "Final by.", _time)
    finished_at = _Told[Optional[datetime]]("finished_at", "When it became final.", _time)
    latency_ms = _Told[Optional[int]]("latency_ms", "How long it took. ``None``: not ended.")
    token_count = _Told[Optional[int]](
        "token_count",
        "How many tokens of a language model its last attempt took. ``None``: its agent did not say.",
    )

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.status_code or self.phase}>"


class Explanation(_View):
    """A task and every routing decision that was taken for it."""

    __slots__ = ()

    task = _Told[Task]("task", "The task.", Task)
    decisions = _Told[List[dict[str, Any]]](
        "decisions",
        "The decisions, oldest first, as the schema ``Decision`` has them.",
    )
    record = _Told[Optional[dict[str, Any]]]("record", "How it ended in a few words. ``None``: it has not.")


class Resolved(_View):
    """Where an agent is, for those who go there themselves."""

    __slots__ = ()

    agent_id = _Told[str]("agent_id", "Who would get the task.")
    capability = _Told[str]("capability", "For what.")
    endpoints = _Told[List[dict[str, Any]]](
        "endpoints",
        "How to reach it, best first: ``protocol``, ``version``, ``address``.",
    )
    decision = _Told[dict[str, Any]]("decision", "The decision, as it would be recorded.")


class Found(_View):
    """A capability that was found."""

    __slots__ = ()

    agent_id = _Told[str]("agent_id", "Whose.")
    name = _Told[str]("capability.name", "Its name.")
    description = _Told[str]("capability.description", "What it does.", absent="")
    effect = _Told[str]("capability.effect", "``read``, ``idempotent_write`` or ``write``.", absent="write")
    input_schema = _Told[Optional[dict[str, Any]]](
        "capability.input_schema",
        "JSON Schema of the parameters. ``None``: any.",
    )
    output_schema = _Told[Optional[dict[str, Any]]](
        "capability.output_schema",
        "JSON Schema of the result. ``None``: any.",
    )
    similarity = _Told[Optional[float]]("similarity", "How near to the words, 0 to 1. ``None``: not asked by words.")
    is_available = _Told[bool]("available", "Whether it could take work now.")


class AgentStatus(_View):
    """An agent and how it is."""

    __slots__ = ()

    agent_id = _Told[str]("card.agent_id", "Who.")
    state = _Told[str]("state", "``alive``, ``suspect``, ``dead``, ``ejected``, ``overloaded`` or ``draining``.")
    card = _Told[dict[str, Any]]("card", "Its card.")
    in_flight = _Told[int]("in_flight", "How many tasks it has.")
    seen_at = _Told[datetime]("seen_at", "When it was last heard of.", _time)


class Registered(_View):
    """What the gateway understood of an agent's card."""

    __slots__ = ()

    agent_id = _Told[str]("agent_id", "Who.")
    cluster = _Told[str]("cluster", "Which gateway or cluster answered.")
    capabilities = _Told[List[str]]("capabilities", "What it is sent from now on.")
    warnings = _Told[List[str]]("warnings", "What is odd about the card, though it was accepted.", absent=[])
    heartbeat_due_at = _Told[datetime](
        "heartbeat_due_at",
        "When the next heartbeat is due; it is sent without your doing.",
        _time,
    )


class Redriven(_View):
    """What became of dead letters that were to be sent again."""

    __slots__ = ()

    task_ids = _Told[List[str]]("redriven", "Those on their way again. In a dry run: none.")
    matched = _Told[int]("matched", "How many fitted when it was asked.")
    remaining = _Told[int]("remaining", "How many of them this call has not come to: ask again.")

    @property
    def refused(self) -> List[Tuple[str, Failure]]:
        """Those that were not sent, and why."""
        return [(one["task_id"], Failure(one["failure"])) for one in self._told.get("refused", ())]
