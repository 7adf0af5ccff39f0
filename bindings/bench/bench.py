"""What a call costs: the Python clients beside the Rust one, and beside httpx making the same REST call, in one run.

    ./dev bench python [--calls N] [--rounds N] [--callers N...]

Every row calls the same agent (written in Rust) through the same gateway (a process of its own), without a key. No two calls of a
run say the same, and every answer is compared with what was said. The rows are run in turn, several rounds, and the best round of
each counts: the machine's other business makes none faster.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List

import httpx

import agent_reach
from agent_reach import AsyncClient, Client
from agent_reach.testing import Gateway

Figures = Dict[str, float]
Row = Callable[[int, int], Figures]

#: How many calls are made before any is measured.
WARM_UP = 50

_numbers = itertools.count()


def figures(times: List[float], took: float) -> Figures:
    ordered = sorted(times)
    at = lambda share: ordered[min(len(ordered) - 1, len(ordered) * share // 100)] * 1e6  # noqa: E731
    return {"p50_us": at(50), "p99_us": at(99), "per_call_us": took * 1e6 / len(times)}


def check(said: Any, heard: Any) -> None:
    if heard != said:
        raise SystemExit(f"said {said}, and was answered {heard}")


async def on_loop(call: Callable[[Any], Awaitable[Any]], calls: int, callers: int) -> Figures:
    times: List[float] = []

    async def caller(count: int, times: List[float]) -> None:
        for _ in range(count):
            said = {"number": next(_numbers)}
            begun = time.perf_counter()
            heard = await call(said)
            times.append(time.perf_counter() - begun)
            check(said, heard)

    await caller(WARM_UP, [])
    begun = time.perf_counter()
    await asyncio.gather(*(caller(calls // callers, times) for _ in range(callers)))
    return figures(times, time.perf_counter() - begun)


def in_threads(call: Callable[[Any], Any], calls: int, callers: int) -> Figures:
    times: List[float] = []
    troubles: List[BaseException] = []

    def caller(count: int, times: List[float]) -> None:
        try:
            for _ in range(count):
                said = {"number": next(_numbers)}
                begun = time.perf_counter()
                heard = call(said)
                times.append(time.perf_counter() - begun)
                check(said, heard)
        except BaseException as trouble:  # noqa: BLE001
            troubles.append(trouble)

    caller(WARM_UP, [])
    threads = [threading.Thread(target=caller, args=(calls // callers, times)) for _ in range(callers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    if troubles:
        raise troubles[0]
    return figures(times, took)


def rows(url: str, programs: Path) -> Dict[str, Row]:
    def rust(calls: int, callers: int) -> Figures:
        # Numbers that Python will not come to.
        first = 10**9 + next(_numbers) * 10**6
        command = [str(programs / "examples" / "call_speed"), "call", str(calls), str(callers), str(first)]
        told = subprocess.run(command, env={**os.environ, "AGENT_REACH_URL": url}, stdout=subprocess.PIPE, check=True)
        read: Figures = json.loads(told.stdout)
        return read

    def asynchronous(calls: int, callers: int) -> Figures:
        async def main() -> Figures:
            async with AsyncClient(url) as reach:

                async def call(said: Any) -> Any:
                    return (await reach.reach("echo", said, idempotency_key=False)).result

                return await on_loop(call, calls, callers)

        return asyncio.run(main())

    def plain(calls: int, callers: int) -> Figures:
        with Client(url) as reach:
            return in_threads(lambda said: reach.reach("echo", said, idempotency_key=False).result, calls, callers)

    def body(said: Any) -> Dict[str, Any]:
        return {"capability": "echo", "params": said}

    limits = httpx.Limits(max_connections=512, max_keepalive_connections=512)

    def httpx_async(calls: int, callers: int) -> Figures:
        async def main() -> Figures:
            async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as http:

                async def call(said: Any) -> Any:
                    return (await http.post("/reach", json=body(said))).raise_for_status().json()["result"]

                return await on_loop(call, calls, callers)

        return asyncio.run(main())

    def httpx_plain(calls: int, callers: int) -> Figures:
        with httpx.Client(base_url=url, limits=limits, timeout=30) as http:

            def call(said: Any) -> Any:
                return http.post("/reach", json=body(said)).raise_for_status().json()["result"]

            return in_threads(call, calls, callers)

    return {
        "rust": rust,
        "agent_reach.AsyncClient": asynchronous,
        "httpx.AsyncClient": httpx_async,
        "agent_reach.Client": plain,
        "httpx.Client": httpx_plain,
    }


#: With which row each of ours is compared.
PEER = {"agent_reach.AsyncClient": "httpx.AsyncClient", "agent_reach.Client": "httpx.Client"}


def compare(table: Dict[str, Row], calls: int, rounds: int, all_callers: List[int]) -> None:
    for callers in all_callers:
        seen: Dict[str, List[Figures]] = {name: [] for name in table}
        for _ in range(rounds):
            for name, row in table.items():
                seen[name].append(row(calls, callers))
        best = {name: min(each, key=lambda one: one["per_call_us"]) for name, each in seen.items()}
        base = best["rust"]["per_call_us"]
        print(f"\n{callers} at once, {calls} calls a round, best of {rounds} rounds by time a call (median of rounds), us")
        print(f"{'':26}{'a call':>9}{'':>10}{'p50':>8}{'p99':>9}{'over Rust':>11}{'httpx / it':>12}")
        for name, one in best.items():
            each = one["per_call_us"]
            median = f"({statistics.median(other['per_call_us'] for other in seen[name]):.0f})"
            over = "" if name == "rust" else f"{each - base:+.0f}"
            ratio = f"{best[PEER[name]]['per_call_us'] / each:.2f}x" if name in PEER else ""
            print(f"{name:26}{each:9.0f}{median:>10}{one['p50_us']:8.0f}{one['p99_us']:9.0f}{over:>11}{ratio:>12}")


def import_times(code: str, starts: int = 10) -> List[float]:
    """How long an interpreter needs for this in milliseconds, as it says itself; its own start is not in it."""
    script = f"import time\nbegun = time.perf_counter()\n{code}\nprint((time.perf_counter() - begun) * 1e3)"
    run = lambda: subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)  # noqa: E731
    run()
    return [float(run().stdout) for _ in range(starts)]


def say_of_the_wheel(wheel: Path) -> None:
    folder = Path(agent_reach.__path__[0])
    module = next(folder.glob("_core*.so"))
    print(f"agent_reach {agent_reach.__version__}, Python {platform.python_version()}, httpx {httpx.__version__}")
    print(f"wheel {wheel.stat().st_size / 1e6:.1f} MB ({wheel.name}), module installed {module.stat().st_size / 1e6:.1f} MB")
    for code in ("import agent_reach", "import agent_reach.testing", "import httpx"):
        times = import_times(code)
        print(f"{code}: min {min(times):.1f} ms, median {statistics.median(times):.1f} ms of {len(times)} starts")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--programs", type=Path, default=Path("target/release"), help="where the programs of Rust are")
    options.add_argument("--wheel", type=Path, required=True, help="the wheel that is installed")
    options.add_argument("--calls", type=int, default=4000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--callers", type=int, nargs="+", default=[1, 64])
    given = options.parse_args()
    say_of_the_wheel(given.wheel)
    with Gateway(process=True, command=str(given.programs / "reach-gateway")) as gateway:
        environment = {**os.environ, "AGENT_REACH_URL": gateway.url}
        agent = subprocess.Popen([str(given.programs / "examples" / "call_speed"), "serve"], env=environment)
        try:
            with Client(gateway.url) as client:
                until = time.monotonic() + 30
                while not any(found.name == "echo" for found in client.discover(namespace="bench")):
                    if agent.poll() is not None or time.monotonic() > until:
                        raise SystemExit("the agent does not serve")
                    time.sleep(0.02)
            compare(rows(gateway.url, given.programs), given.calls, given.rounds, given.callers)
        finally:
            agent.terminate()
            agent.wait()


if __name__ == "__main__":
    main()
