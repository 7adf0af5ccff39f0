"""Every typed error: by a real gateway wherever one can be brought to it, else by one that plays a script."""

from __future__ import annotations

import asyncio
import pickle
import re
from typing import Any

import pytest

import agent_reach
from agent_reach import Agent, AgentReachError, Client, TryAgain, WorkFailed, errors
from agent_reach.testing import Gateway
from conftest import WITHIN, Background, Desk
from faces import FACES
from scripted import Scripted, refusal

NO_TASK = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture(params=[make for _, make in FACES], ids=[name for name, _ in FACES])
def face(request: Any, gateway: Gateway) -> Any:
    return request.param(gateway.url)


def test_nobody_fits_and_what_was_near_is_told(face: Any, gateway: Gateway, name: str) -> None:
    with pytest.raises(agent_reach.NoCandidate) as caught:
        face.reach("count_the_stars_of_the_sky", {})
    assert caught.value.code == "no_candidate" and not caught.value.retryable
    painter = Agent(f"painter@{name}", url=gateway.url)

    @painter.capability(effect="read", exclusions=["does not paint boats"])
    def paint_house() -> None:
        """Paints houses."""

    with Background(painter), pytest.raises(agent_reach.NoCandidate) as caught:
        face.reach(intent="paint boats", namespace=name)
    near = caught.value.suggestions[0]
    assert (near.agent_id, near.capability, near.description) == (f"painter@{name}", "paint_house", "Paints houses.")
    assert near.similarity is not None and near.lacks[0].reason == "excluded" and near.lacks[0].until is None


def test_parameters_that_do_not_fit(face: Any, desk: Desk) -> None:
    with pytest.raises(agent_reach.InvalidRequest) as caught:
        face.reach(desk.count, {"text": 7})
    assert caught.value.code == "params_mismatch" and isinstance(caught.value, ValueError)


def test_a_failed_task_keeps_the_agents_words_and_data(face: Any, gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_fail", effect="read")
    def fail() -> None:
        raise WorkFailed("no paper", data={"tray": 2})

    with Background(agent), pytest.raises(agent_reach.TaskFailed) as caught:
        face.reach(f"{name}_fail")
    error = caught.value
    assert (error.code, error.message, error.data) == ("agent_failed", "no paper", {"tray": 2})
    assert error.task_id and face.get(error.task_id).failure.data == {"tray": 2}
    assert str(error) == "agent_failed: no paper"


def test_an_agent_that_does_not_answer_in_time(face: Any, desk: Desk) -> None:
    with pytest.raises(agent_reach.Timeout) as caught:
        face.reach(desk.hang, {}, attempt_timeout=0.2, tries=1)
    assert isinstance(caught.value, TimeoutError) and caught.value.retryable


def test_a_deadline_that_passes(face: Any, desk: Desk) -> None:
    with pytest.raises(agent_reach.TaskExpired) as caught:
        face.reach(desk.hang, {}, timeout=0.3)
    assert isinstance(caught.value, TimeoutError)


def test_a_wait_that_ends_before_the_task(face: Any, desk: Desk) -> None:
    task = face.submit(desk.wait, {})
    with pytest.raises(agent_reach.WaitTimeout) as caught:
        face.wait_for_result(task, timeout=0.1)
    assert caught.value.task_id == task.id and caught.value.retryable
    desk.let_go.set()
    assert face.wait_for_result(caught.value.task_id).result == "let go"


def test_a_task_that_was_called_off(face: Any, desk: Desk) -> None:
    task = face.submit(desk.hang, {})
    face.cancel(task)
    with pytest.raises(agent_reach.TaskCancelled) as caught:
        face.wait_for_result(task)
    assert caught.value.task_id == task.id


def test_a_phase_in_which_it_cannot_be_done(face: Any, desk: Desk) -> None:
    done = face.reach(desk.count, {"text": "a"}, timeout=20)
    with pytest.raises(agent_reach.WrongPhase):
        face.cancel(done)


def test_what_is_not_there(face: Any) -> None:
    for call in (face.get, face.cancel, face.explain, face.wait_for_result, face.progress):
        with pytest.raises(agent_reach.NotFound) as caught:
            call(NO_TASK)
        assert isinstance(caught.value, LookupError)


def test_a_key_that_was_used_for_something_else(face: Any, desk: Desk, name: str) -> None:
    key = f"{name}-{id(face)}"
    face.submit(desk.count, {"text": "a"}, idempotency_key=key)
    with pytest.raises(agent_reach.IdempotencyConflict):
        face.submit(desk.count, {"text": "b"}, idempotency_key=key)
    face.submit(desk.hang, {}, idempotency_key=key + "-open")
    with pytest.raises(agent_reach.IdempotencyInFlight):
        face.submit(desk.hang, {}, idempotency_key=key + "-open", on_in_flight="reject")


def test_a_wall_between_namespaces(face: Any, gateway: Gateway, name: str) -> None:
    closed = Agent(f"{name}@closed", url=gateway.url, callable_by=["*@closed"])

    @closed.capability(f"{name}_secret", effect="read")
    def secret() -> str:
        return "never told"

    with Background(closed):
        with pytest.raises(AgentReachError) as caught:
            face.reach(f"{name}_secret", to_agent=closed.agent_id, from_agent="caller@open")
        assert type(caught.value) in (agent_reach.Forbidden, agent_reach.NotFound, agent_reach.NoCandidate)


def test_a_write_whose_outcome_nobody_knows(face: Any, gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)
    began: list[str] = []

    @agent.capability(f"{name}_write", effect="write")
    async def write() -> None:
        began.append("once")
        await asyncio.Event().wait()

    with Background(agent), pytest.raises(agent_reach.OutcomeUnknown) as caught:
        face.reach(f"{name}_write", attempt_timeout=0.3)
    assert began == ["once"] and caught.value.code == "outcome_unknown" and not caught.value.retryable


def test_older_tokens_and_lost_claims(face: Any, gateway: Gateway, name: str) -> None:
    card = {"capabilities": [{"name": f"{name}_pull", "effect": "read"}], "endpoints": []}
    for agent in (f"{name}a@tests", f"{name}b@tests"):
        face.call("agent/register", {"agent_id": agent, **card})
    task = face.submit(f"{name}_pull", mode="queue")
    claim = {"agent_id": f"{name}a@tests", "task_id": task.id}
    work = face.call("task/claim", claim)["tasks"][0]
    with pytest.raises(agent_reach.ClaimLost):
        face.call("task/claim", {**claim, "agent_id": f"{name}b@tests"})
    released = {"task_id": task.id, "token": work["token"]}
    face.call("task/release", released)
    again = face.call("task/claim", {**claim, "agent_id": f"{name}b@tests"})["tasks"][0]
    assert again["token"] > work["token"]
    with pytest.raises(agent_reach.StaleToken):
        face.call("task/complete", {**released, "result": 1})


def test_nobody_listens() -> None:
    for _, make in FACES:
        with pytest.raises(agent_reach.TransportError) as caught:
            make("http://127.0.0.1:9", retries=0).agents()
        assert isinstance(caught.value, ConnectionError) and caught.value.retryable


@pytest.mark.parametrize(
    ("number", "code", "kind"),
    [
        (3001, "overloaded", agent_reach.Overloaded),
        (3002, "store_unavailable", agent_reach.Unavailable),
        (3003, "store_full", agent_reach.Unavailable),
        (3004, "shutting_down", agent_reach.Unavailable),
        (1006, "forbidden", agent_reach.Forbidden),
        (1020, "unauthenticated", agent_reach.Unauthenticated),
        (2009, "agent_lost", agent_reach.TaskFailed),
    ],
)
def test_what_a_gateway_in_trouble_says(number: int, code: str, kind: type[AgentReachError]) -> None:
    script = Scripted(lambda call: refusal(call, number, code, retry_after="1500ms"))
    with script:
        for _, make in FACES[::2]:
            with pytest.raises(kind) as caught:
                make(script.url, retries=0).submit("x")
            assert (caught.value.code, caught.value.retry_after) == (code, 1.5)


def test_what_cannot_be_used_is_told_before_it_is_sent(gateway: Gateway) -> None:
    for _, make in FACES:
        face = make(gateway.url)
        for ask in ({"to_agent": "no at sign"}, {"mode": "sideways"}, {"priority": 400}):
            with pytest.raises(agent_reach.ConfigError) as caught:
                face.submit("x", **ask)
            assert isinstance(caught.value, ValueError)
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            face.submit("x", {"what": object()})
        with pytest.raises(agent_reach.ConfigError, match="cannot be written as JSON"):
            face.submit("x", {"what": float("nan")})
    # As soon as it is made, and not with the first call.
    for make in (Client, agent_reach.AsyncClient, lambda url: agent_reach.Agent("a@b", url=url)):
        with pytest.raises(agent_reach.ConfigError, match="begins with"):
            make("ftp://127.0.0.1")
        with pytest.raises(agent_reach.ConfigError, match="did you mean http://127.0.0.1:7340"):
            make("127.0.0.1:7340")
    with pytest.raises(agent_reach.ConfigError, match="no at sign"):
        agent_reach.Agent("no at sign")


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        ({"timeout": -1}, agent_reach.ConfigError, "timeout=-1 is less than nothing"),
        ({"attempt_timeout": float("nan")}, agent_reach.ConfigError, "attempt_timeout=nan"),
        ({"timeout": 1e10}, agent_reach.ConfigError, "timeout=10000000000.0 is more than 1000000000 seconds"),
        ({"timeout": 10**400}, agent_reach.ConfigError, "is more than 1000000000 seconds"),
        ({"timeout": "5s"}, TypeError, "timeout='5s' is no length of time: give seconds, or a timedelta"),
        ({"priority": 400}, agent_reach.ConfigError, "priority=400 is not within 0 to 9"),
        ({"priority": "x"}, TypeError, "priority='x' is no int"),
        ({"tries": 0}, agent_reach.ConfigError, "tries=0 is not within 1 to 10"),
        ({"mode": "sideways"}, agent_reach.ConfigError, "mode='sideways' is none of direct, queue, broadcast"),
        ({"on_failed": "x"}, agent_reach.ConfigError, "on_failed='x' is none of replay, retry"),
        ({"on_in_flight": "x"}, agent_reach.ConfigError, "on_in_flight='x' is none of join, reject"),
        ({"timout": 1}, TypeError, "no such option: timout"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(ask: Any, kind: type[Exception], words: str) -> None:
    for _, make in FACES:
        with pytest.raises(kind, match=re.escape(words)):
            make("http://127.0.0.1:9").submit("x", **ask)


def test_the_longest_time_that_can_be_given_is_the_gateways_to_judge(face: Any) -> None:
    with pytest.raises(agent_reach.InvalidRequest, match="deadline"):
        face.submit("x", timeout=10**9)


def test_an_argument_of_other_calls_that_cannot_be_used_is_named(gateway: Gateway) -> None:
    for _, make in FACES:
        face = make(gateway.url)
        with pytest.raises(agent_reach.ConfigError, match="timeout=-1"):
            face.wait_for_result(NO_TASK, timeout=-1)
        with pytest.raises(TypeError, match="no such option: agent; there are agent_id, "):
            face.redrive(agent="a@b")
        with pytest.raises(TypeError, match="no such option: state; there are phase, "):
            face.tasks(state="failed")
        with pytest.raises(agent_reach.ConfigError, match="deadline=-1"):
            face.redrive(NO_TASK, deadline=-1)
    with pytest.raises(agent_reach.ConfigError, match="call_timeout=-1"):
        Client(call_timeout=-1)
    with pytest.raises(agent_reach.ConfigError, match="at least one part"):
        agent_reach.key_of()
    with pytest.raises(TypeError, match="after='5s'"):
        TryAgain("later", after="5s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"via": "http"}, "give listen="),
        ({"via": "http", "listen": "localhost"}, "listen='localhost'"),
        ({"listen": "127.0.0.1:0"}, "listen is for via='http'"),
        ({"via": "queue", "public_url": "http://here/"}, "public_url is for via='http'"),
        ({"via": "pigeon"}, "via='pigeon' is none of websocket, queue, http"),
        ({"heartbeat": -1}, "heartbeat=-1"),
        ({"answer_within": -1}, "answer_within=-1"),
    ],
)
def test_an_agent_that_cannot_be_reached_so_is_told_when_it_is_made(given: Any, words: str) -> None:
    with pytest.raises(agent_reach.ConfigError, match=re.escape(words)):
        Agent("a@b", **given)


def test_a_capability_that_cannot_be_offered_so_is_told_when_it_is_offered(name: str) -> None:
    agent = Agent(f"{name}@tests")
    for given, words in (
        ({"effect": "reads"}, "effect='reads' is none of read, idempotent_write, write"),
        ({"tier": "slow"}, "tier='slow' is none of fast, normal, long"),
        ({"timeout": -1}, "timeout=-1"),
    ):
        with pytest.raises(agent_reach.ConfigError, match=re.escape(words)):
            agent.capability(**given)(lambda: None)  # type: ignore[arg-type]
    agent.capability("twice")(lambda: None)
    with pytest.raises(agent_reach.ConfigError, match="offers twice already"):
        agent.capability("twice")(lambda: None)


def test_a_card_that_says_what_no_card_says_is_a_config_error(gateway: Gateway) -> None:
    agent = Agent("a@tests", url=gateway.url, max_concurrency="many")  # type: ignore[arg-type]
    with pytest.raises(agent_reach.ConfigError, match="many"):
        asyncio.run(agent.start())


def test_errors_can_be_pickled_and_are_of_one_family() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(kind, AgentReachError) for kind in kinds)
    assert set(errors._KINDS.values()) == set(kinds) - {AgentReachError}
    for kind in kinds:
        error = kind("words", code="c", data={"a": 1}, retryable=True, retry_after=2.0, task_id="t")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and again.__dict__ == error.__dict__


def test_an_agent_that_asks_to_be_tried_again_is(face: Any, gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)
    tries: list[int] = []

    @agent.capability(f"{name}_flaky", effect="write")
    def flaky(context: agent_reach.Context) -> int:
        tries.append(context.attempt)
        if len(tries) == 1:
            raise TryAgain("not begun", started=False)
        return context.attempt

    with Background(agent):
        assert face.reach(f"{name}_flaky", timeout=WITHIN).result == len(tries)
