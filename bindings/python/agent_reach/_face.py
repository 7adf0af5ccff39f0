"""What clients and agents are told before they connect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

from . import _bridge, _core
from ._checked import Seconds, in_seconds
from ._json import write

if TYPE_CHECKING:
    from typing_extensions import Self

#: Where a file is.
Place = Union[str, "os.PathLike[str]"]


def connection(
    *,
    key_file: Optional[Place] = None,
    ca_file: Optional[Place] = None,
    client_cert: Optional[Tuple[Place, Place]] = None,
    call_timeout: Optional[Seconds] = None,
    connect_timeout: Optional[Seconds] = None,
    **plain: Any,
) -> Dict[str, Any]:
    """The settings of a connection as the core takes them."""
    given = {
        **plain,
        "key_file": None if key_file is None else os.fspath(key_file),
        "ca_file": None if ca_file is None else os.fspath(ca_file),
        "client_cert": None if client_cert is None else [os.fspath(place) for place in client_cert],
        "call_timeout": None if call_timeout is None else in_seconds("call_timeout", call_timeout),
        "connect_timeout": None if connect_timeout is None else in_seconds("connect_timeout", connect_timeout),
    }
    return {name: value for name, value in given.items() if value is not None}


def checked(settings: Dict[str, Any]) -> _core.Client:
    """A client with these settings. Raises :class:`ConfigError` if the URL or the agent's id cannot be used."""
    client = _core.Client(write(settings))
    _bridge.unpack(client.check())
    return client


class Face:
    """A caller of the gateway.

    ``url``: where the gateway is; ``http(s)://`` for a request a call, ``ws(s)://`` for one connection that all calls share.
    Unless given, ``AGENT_REACH_URL``, else ``http://127.0.0.1:7340``. ``token``: the bearer token that shows who calls;
    unless given, ``AGENT_REACH_TOKEN``, else none. ``from_agent``: the agent on whose behalf calls are made.

    ``join``: what lets that agent in for the first time, a join token or its namespace's secret; unless given,
    ``AGENT_REACH_JOIN``. It is given a key then, which is kept in ``key_file`` (unless given, ``AGENT_REACH_KEY_FILE``, else
    ``~/.agent-reach/NAME@NAMESPACE.key``), and later shows that key. ``ca_file``: authorities in PEM, one of which must have
    signed the gateway's certificate; unless given, ``AGENT_REACH_CA_FILE``, else those that this machine trusts.
    ``client_cert``: certificate and key, two files in PEM, for a gateway that asks for them; unless given,
    ``AGENT_REACH_CLIENT_CERT`` and ``AGENT_REACH_CLIENT_KEY``.

    ``call_timeout``: how long one try of a call may take beside what it is asked to wait for, 30 s. ``connect_timeout``: how
    long making a connection may take, 5 s. ``retries``: so many more tries after the first, 5; only where that is safe.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        from_agent: Optional[str] = None,
        join: Optional[str] = None,
        key_file: Optional[Place] = None,
        ca_file: Optional[Place] = None,
        client_cert: Optional[Tuple[Place, Place]] = None,
        call_timeout: Optional[Seconds] = None,
        connect_timeout: Optional[Seconds] = None,
        retries: Optional[int] = None,
    ) -> None:
        settings = connection(
            url=url,
            token=token,
            from_agent=from_agent,
            join=join,
            key_file=key_file,
            ca_file=ca_file,
            client_cert=client_cert,
            call_timeout=call_timeout,
            connect_timeout=connect_timeout,
            retries=retries,
        )
        self._core = checked(settings)

    @classmethod
    def _over(cls, core: _core.Client) -> Self:
        client = cls.__new__(cls)
        client._core = core
        return client
