"""Agents on the SDK before the conformance runner, which is their gateway for a while and shares no code with them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "python"

SAMPLES: Dict[str, Dict[str, Any]] = {
    "echo": {"params": {"text": "x", "number": 1}, "slow": {"text": "x", "seconds": 1}, "bad": {"text": 7}},
    "dwell": {"params": {"seconds": 0}, "slow": {"seconds": 1}, "bad": {"seconds": "long"}},
    "stamp": {"params": {"note": "x"}},
    "summarize_news": {"params": {"headlines": ["Rain"]}},
    "count_words": {"params": {"text": "one two"}},
    "edit": {"params": {"text": "one two"}},
    "translate": {"params": {"text": "rain"}},
    "look_up": {"params": {"text": "rain"}},
}

#: Each agent among the examples: the name in the module, by the module.
NAMED = [
    (path.stem, name)
    for path in sorted(EXAMPLES.glob("*.py"))
    for name in re.findall(r"^(\w+) = Agent\(", path.read_text(encoding="utf-8"), re.M)
]


def runner() -> str:
    """The runner's program, beside the gateway's."""
    gateway = os.environ.get("AGENT_REACH_GATEWAY")
    assert gateway, "AGENT_REACH_GATEWAY names the gateway's program; ./dev python sets it"
    return str(Path(gateway).with_name("reach-conformance"))


def checked(folder: Path, way: str, start: List[str], *more: str) -> Dict[str, Any]:
    """Lets the runner look at the agent that this starts; the answer is its report."""
    samples = folder / "samples.json"
    samples.write_text(json.dumps(SAMPLES), encoding="utf-8")
    command = shlex.join([sys.executable, str(HERE / "conforming.py"), *start])
    asked = [runner(), "agent", way, *(["--listen"] if way == "--http" else []), "127.0.0.1:0"]
    asked += ["--start", command, "--samples", str(samples), "--json", *more]
    # Longer than it may take; what it takes is judged below.
    done = subprocess.run(asked, capture_output=True, encoding="utf-8", timeout=120)
    assert done.stdout, done.stderr
    report: Dict[str, Any] = json.loads(done.stdout)
    report["code"] = done.returncode
    print(report["badge"], [(row["id"], row["why"]) for row in report["results"] if row["status"] == "skipped"])
    assert [row for row in report["results"] if row["status"] == "failed"] == []
    return report


def met(report: Dict[str, Any]) -> Set[str]:
    return {row["id"] for row in report["results"] if row["status"] == "passed"}


WAYS = {"websocket": "--ws-listen", "queue": "--ws-listen", "http": "--http", "asgi": "--http"}


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_meets_every_requirement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("EFFECTS", str(effects))
    report = checked(tmp_path, WAYS[way], [way], "--effects", str(effects))
    assert report["code"] == 0, report["idle_profiles"]
    assert met(report) >= {"keeps-its-bound", "stops-when-cancelled", "done-once-per-key", "keeps-numbers", "leaves-orderly"}
    assert effects.read_text(encoding="utf-8"), "its effects were looked at"


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_is_asked_for_a_token_meets_every_requirement(tmp_path: Path, way: str) -> None:
    report = checked(tmp_path, WAYS[way], [way], "--tokens", "--only", "identity,registers")
    assert met(report) >= {"takes-next-token", "shows-its-key-again", "stops-when-superseded"}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dict[str, Future[Dict[str, Any]]]]:
    """The reports on the examples. Most of the time is waiting for a heartbeat, so all are looked at at once."""
    with ThreadPoolExecutor(len(NAMED)) as threads:
        folder = tmp_path_factory.mktemp
        yield {name: threads.submit(checked, folder(name), "--ws-listen", [module, name]) for module, name in NAMED}


@pytest.mark.parametrize("name", [name for _, name in NAMED])
def test_an_example_meets_every_requirement(examples: Dict[str, Future[Dict[str, Any]]], name: str) -> None:
    # All that they do is over at once, so that nothing can be called off.
    assert examples[name].result()["idle_profiles"] == ["cancel"]


def test_the_examples_were_found() -> None:
    assert {module for module, _ in NAMED} == {path.stem for path in EXAMPLES.glob("*.py")} - {"fastapi_agent"}
