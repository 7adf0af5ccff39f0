"""What both clients are told before they call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _core
from ._json import Seconds, in_seconds

if TYPE_CHECKING:
    from typing_extensions import Self


class Face:
    """A caller of the gateway.

    ``url``: where the gateway is; ``http(s)://`` for a request a call, ``ws://`` for one connection that all calls share.
    Unless given, ``AGENT_REACH_URL``, else ``http://127.0.0.1:7340``. ``token``: the bearer token that shows who calls;
    unless given, ``AGENT_REACH_TOKEN``, else none. ``from_agent``: the agent on whose behalf calls are made.
    ``call_timeout``: how long one try of a call may take beside what it is asked to wait for, 30 s. ``connect_timeout``: how
    long making a connection may take, 5 s. ``retries``: so many more tries after the first, 5; only where that is safe.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        from_agent: Optional[str] = None,
        call_timeout: Optional[Seconds] = None,
        connect_timeout: Optional[Seconds] = None,
        retries: Optional[int] = None,
    ) -> None:
        self._core = _core.Client(
            url,
            token,
            from_agent,
            None if call_timeout is None else in_seconds(call_timeout),
            None if connect_timeout is None else in_seconds(connect_timeout),
            retries,
        )

    @classmethod
    def _over(cls, core: _core.Client) -> Self:
        client = cls.__new__(cls)
        client._core = core
        return client
