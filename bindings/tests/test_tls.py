"""TLS to the gateway's own port: whom we trust, and what we show of ourselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest
import trustme

import agent_reach
from agent_reach import Agent, Client
from agent_reach.testing import Gateway
from conftest import Background
from faces import Async, Sync
from test_identity import REQUIRED, WAYS, echoing
from test_life import ended, start

FACES = [pytest.param(kind, scheme, id=f"{kind.__name__}-{scheme}") for kind in (Sync, Async) for scheme in ("https", "wss")]


class Papers:
    """An authority, and the files of what it signed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._authority = folder, trustme.CA()
        self.ca = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))

    def sign(self, name: str) -> tuple[Path, Path]:
        signed = self._authority.issue_cert("127.0.0.1", "localhost")
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        signed.private_key_pem.write_to_path(str(key))
        for at, blob in enumerate(signed.cert_chain_pems):
            blob.write_to_path(str(cert), append=at > 0)
        return cert, key


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("tls") / "ours")


def settings(papers: Papers, more: str = "") -> str:
    cert, key = papers.sign("port")
    return f'[tls]\ncert = "{cert}"\nkey = "{key}"\n{more}'


@pytest.fixture(scope="module", params=["in a process", "within this one"])
def secure(request: pytest.FixtureRequest, papers: Papers) -> Iterator[Gateway]:
    with Gateway(config=settings(papers), process=request.param == "in a process") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def mutual(papers: Papers) -> Iterator[Gateway]:
    with Gateway(config=settings(papers, f'client_ca = "{papers.ca}"\n')) as gateway:
        yield gateway


def at(gateway: Gateway, scheme: str) -> str:
    assert gateway.url.startswith("https://127.0.0.1:")
    return gateway.url.replace("https", scheme)


@pytest.mark.parametrize("way", WAYS)
def test_agents_serve_and_callers_call_over_tls(secure: Gateway, papers: Papers, name: str, way: str) -> None:
    with Background(echoing(secure, f"{name}@tests", ca_file=papers.ca, **WAYS[way])):
        for kind in (Sync, Async):
            for scheme in ("https", "wss"):
                client = kind(at(secure, scheme), ca_file=str(papers.ca))
                assert client.reach(f"{name}_echo", scheme).result == scheme
        task = client.submit(f"{name}_echo", "told")
        for client in (Sync(at(secure, "https"), ca_file=papers.ca), Async(at(secure, "wss"), ca_file=papers.ca)):
            assert client.progress(task)[-1].result == "told"


@pytest.mark.parametrize(("kind", "scheme"), FACES)
def test_a_gateway_of_another_authority_is_not_trusted(
    secure: Gateway, tmp_path: Path, kind: Any, scheme: str
) -> None:
    theirs = Papers(tmp_path / "theirs")
    with pytest.raises(agent_reach.ConfigError, match="not trusted"):
        kind(at(secure, scheme), ca_file=theirs.ca).agents()


def test_an_agent_that_does_not_trust_the_gateway_says_so_at_once(secure: Gateway, tmp_path: Path) -> None:
    theirs = Papers(tmp_path / "theirs")
    with pytest.raises(agent_reach.ConfigError, match="not trusted"):
        with Background(echoing(secure, "nobody@tests", ca_file=theirs.ca)):
            pass


def test_a_name_that_the_certificate_does_not_have_is_not_trusted(secure: Gateway, papers: Papers) -> None:
    other = secure.url.replace("127.0.0.1", "127.0.0.2")
    for url in (other, other.replace("https", "wss")):
        with pytest.raises((agent_reach.ConfigError, agent_reach.TransportError)):
            Sync(url, ca_file=papers.ca, retries=0).agents()


@pytest.mark.parametrize(("kind", "scheme"), FACES)
def test_a_gateway_that_asks_for_certificates(
    mutual: Gateway, papers: Papers, tmp_path: Path, kind: Any, scheme: str
) -> None:
    url, ours = at(mutual, scheme), papers.sign("caller")
    assert kind(url, ca_file=papers.ca, client_cert=ours).agents() == []
    # Over HTTPS, why the connection was closed may not be known any more when the call is lost.
    lost = (agent_reach.ConfigError, agent_reach.TransportError) if scheme == "https" else agent_reach.ConfigError
    with pytest.raises(lost, match=None if scheme == "https" else "wants a certificate"):
        kind(url, ca_file=papers.ca, retries=0).agents()
    with pytest.raises(lost, match=None if scheme == "https" else "does not trust our certificate"):
        kind(url, ca_file=papers.ca, client_cert=Papers(tmp_path / "theirs").sign("caller"), retries=0).agents()


def test_an_agent_shows_its_certificate(mutual: Gateway, papers: Papers, name: str) -> None:
    shown = {"ca_file": papers.ca, "client_cert": papers.sign("agent")}
    with Background(echoing(mutual, f"{name}@tests", **shown)), Client(mutual.url, **shown) as client:
        assert client.reach(f"{name}_echo", 1).result == 1


def test_files_that_cannot_be_used_are_told(secure: Gateway, papers: Papers, tmp_path: Path) -> None:
    cert, key = papers.sign("own")
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    for wrong, said in (
        ({"ca_file": tmp_path / "none.pem"}, "none.pem"),
        ({"ca_file": empty}, "empty.pem"),
        ({"ca_file": papers.ca, "client_cert": (cert, empty)}, "empty.pem"),
        ({"ca_file": papers.ca, "client_cert": (empty, key)}, "empty.pem"),
    ):
        with pytest.raises(agent_reach.ConfigError, match=said):
            Sync(secure.url, **wrong).agents()
    agent = Agent("x@tests", url=secure.url, ca_file=empty)
    with pytest.raises(agent_reach.ConfigError, match="empty.pem"), Background(agent):
        pass


def test_files_come_from_the_environment(mutual: Gateway, papers: Papers, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = papers.sign("env")
    script = "import agent_reach\nprint(agent_reach.Client().agents())"
    monkeypatch.setenv("AGENT_REACH_CA_FILE", str(papers.ca))
    monkeypatch.setenv("AGENT_REACH_CLIENT_CERT", str(cert))
    code, _, err = ended(start(script, mutual.url))
    assert code == 1 and "AGENT_REACH_CLIENT_KEY go together" in err
    monkeypatch.setenv("AGENT_REACH_CLIENT_KEY", str(key))
    code, out, err = ended(start(script, mutual.url))
    assert (code, out) == (0, "[]\n"), err


def test_keys_are_shown_within_tls(papers: Papers, name: str, tmp_path: Path) -> None:
    with Gateway(config=settings(papers) + REQUIRED) as gateway:
        with Client(gateway.url, token=gateway.operator_token, ca_file=papers.ca) as operator:
            join = {who: operator.call("token/create_join", {"agents": who})["join"] for who in ("a@media", "b@media")}
        agent = echoing(gateway, "a@media", join=join["a@media"], key_file=tmp_path / "a.key", ca_file=papers.ca)
        who = {"from_agent": "b@media", "key_file": tmp_path / "b.key", "ca_file": papers.ca}
        with Background(agent), Client(gateway.url, join=join["b@media"], **who) as client:
            assert client.reach("a_echo", "secret").result == "secret"
