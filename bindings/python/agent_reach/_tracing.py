"""The trace that calls hang under: the current span of OpenTelemetry if it is in use, else the attempt that the code is
working on."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, Callable, Optional

_attempt: ContextVar[Optional[str]] = ContextVar("agent_reach_traceparent", default=None)


def _propagator() -> Any:
    """The propagator of OpenTelemetry, if the program uses it. It is never imported for its own sake."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        return None
    return TraceContextTextMapPropagator()


def current() -> Optional[str]:
    """The ``traceparent`` that a call made now hangs under."""
    propagator = _propagator()
    if propagator is not None:
        carrier: dict[str, str] = {}
        propagator.inject(carrier)
        if "traceparent" in carrier:
            return carrier["traceparent"]
    return _attempt.get()


def enter(traceparent: Optional[str]) -> Callable[[], None]:
    """What is done from here on hangs under this; until the answer is called, in the same context."""
    mark = _attempt.set(traceparent)
    propagator = _propagator()
    attached = None
    if propagator is not None and traceparent is not None:
        from opentelemetry import context

        attached = context.attach(propagator.extract({"traceparent": traceparent}))

    def leave() -> None:
        _attempt.reset(mark)
        if attached is not None:
            from opentelemetry import context

            context.detach(attached)

    return leave
