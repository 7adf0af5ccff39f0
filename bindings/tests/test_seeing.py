"""What can be seen: traces of OpenTelemetry, the core's log lines, the examples, and the fixture for users' tests."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, List

import pytest

from agent_reach import Agent, AsyncClient, Context
from agent_reach.testing import Gateway
from conftest import WITHIN, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ["news_summary", "register", "reach_by_name"]


def test_spans_of_opentelemetry_go_through(gateway: Gateway, name: str) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("tests")
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_traced", effect="read")
    async def traced(context: Context) -> List[str]:
        span = trace.get_current_span().get_span_context()
        with tracer.start_as_current_span("inner") as inner:
            return [f"{span.trace_id:032x}", f"{span.span_id:016x}", f"{inner.get_span_context().trace_id:032x}"]

    async def on_loop() -> None:
        async with agent, AsyncClient(gateway.url) as client:
            with tracer.start_as_current_span("outer") as outer:
                mine = outer.get_span_context()
                attempt_trace, attempt_span, inner_trace = (await client.reach(f"{name}_traced")).result
            assert attempt_trace == inner_trace == f"{mine.trace_id:032x}"
            assert attempt_span != f"{mine.span_id:016x}"

    run(on_loop())


def test_the_core_logs_into_logging(gateway: Gateway) -> None:
    script = """
        import agent_reach, logging, time
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
        agent_reach.log_to_logging(verbose=True)
        client = agent_reach.Client("http://127.0.0.1:9", retries=1)
        try:
            client.agents()
        except agent_reach.TransportError:
            pass
        until = time.monotonic() + 20
        while time.monotonic() < until and not getattr(logging, "seen", False):
            logging.seen = any("agent_reach_sdk" in name for name in logging.root.manager.loggerDict)
            time.sleep(0.01)
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=WITHIN
    )
    assert told.returncode == 0 and "DEBUG agent_reach_sdk.client will try again" in told.stderr, told.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_the_docs_say(gateway: Gateway, example: str) -> None:
    docs = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    shown = re.search(rf"\$ python examples/python/{example}\.py\n(.*?)```", docs, re.S)
    assert shown, f"docs/python.md does not show the output of {example}.py"
    environment = {**os.environ, "AGENT_REACH_URL": gateway.url}
    command = [sys.executable, str(ROOT / "examples" / "python" / f"{example}.py")]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WITHIN)
    assert told.returncode == 0, told.stderr
    assert told.stdout == shown[1]


def test_the_fixture_for_users_tests(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        textwrap.dedent(
            """
            from agent_reach import Client

            def test_mine(agent_reach_gateway):
                with Client(agent_reach_gateway.url) as reach:
                    assert reach.agents() == []
            """
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=2 * WITHIN)
    assert told.returncode == 0 and "1 passed" in told.stdout, told.stdout + told.stderr


def test_a_gateway_that_does_not_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        Gateway(config="no_such_setting = 1", process=True).start()
    with pytest.raises(RuntimeError, match="AGENT_REACH_GATEWAY"):
        Gateway(process=True, command="no-such-program").start()


def test_an_unexpected_exception_of_a_handler_is_logged(gateway: Gateway, name: str, caplog: Any) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_boom", effect="read")
    async def boom() -> None:
        raise KeyError("boom")

    async def on_loop() -> None:
        async with agent, AsyncClient(gateway.url) as client:
            await asyncio.gather(client.reach(f"{name}_boom"), return_exceptions=True)

    with caplog.at_level(logging.ERROR, "agent_reach"):
        run(on_loop())
    assert [record.name for record in caplog.records] == ["agent_reach.agent"] and caplog.records[0].exc_info
