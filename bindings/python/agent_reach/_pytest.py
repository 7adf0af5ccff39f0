"""The pytest plugin: the fixture ``agent_reach_gateway``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

import pytest

if TYPE_CHECKING:
    from .testing import Gateway


@pytest.fixture
def agent_reach_gateway() -> Iterator[Gateway]:
    """A gateway of this test's own, within this process; see :class:`agent_reach.testing.Gateway`."""
    from .testing import Gateway

    with Gateway() as gateway:
        yield gateway
