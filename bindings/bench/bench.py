"""What a call costs: the Python clients beside the Rust one, and beside httpx making the same REST call, in one run.

    ./dev wheel && cargo build --release --package reach-gateway --bins
    cargo build --release --package agent-reach-sdk --example call_speed
    python bindings/bench/bench.py --programs target/release     # in an environment with the wheel and httpx

Every row calls the same agent (written in Rust) through the same gateway with the same parameters, and no key. The rows are run
in turn, several rounds, and the best round of each counts: the machine's other business makes none faster.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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


def figures(times: List[float], took: float) -> Figures:
    ordered = sorted(times)
    at = lambda share: ordered[min(len(ordered) - 1, len(ordered) * share // 100)] * 1e6  # noqa: E731
    return {"p50_us": at(50), "p99_us": at(99), "per_call_us": took * 1e6 / len(times)}


async def on_loop(call: Callable[[int], Awaitable[Any]], calls: int, callers: int) -> Figures:
    times: List[float] = []

    async def caller() -> None:
        for number in range(calls // callers):
            begun = time.perf_counter()
            await call(number)
            times.append(time.perf_counter() - begun)

    for number in range(50):
        await call(number)
    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return figures(times, time.perf_counter() - begun)


def in_threads(call: Callable[[int], Any], calls: int, callers: int) -> Figures:
    times: List[float] = []

    def caller() -> None:
        for number in range(calls // callers):
            begun = time.perf_counter()
            call(number)
            times.append(time.perf_counter() - begun)

    for number in range(50):
        call(number)
    threads = [threading.Thread(target=caller) for _ in range(callers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return figures(times, time.perf_counter() - begun)


def rows(url: str, programs: Path) -> Dict[str, Callable[[int, int], Figures]]:
    def rust(calls: int, callers: int) -> Figures:
        command = [str(programs / "examples" / "call_speed"), "call", str(calls), str(callers)]
        told = subprocess.run(command, env={**os.environ, "AGENT_REACH_URL": url}, capture_output=True, check=True)
        read: Figures = json.loads(told.stdout)
        return read

    def asynchronous(calls: int, callers: int) -> Figures:
        async def main() -> Figures:
            async with AsyncClient(url) as reach:
                return await on_loop(
                    lambda number: reach.reach("echo", {"number": number}, idempotency_key=False), calls, callers
                )

        return asyncio.run(main())

    def plain(calls: int, callers: int) -> Figures:
        with Client(url) as reach:
            return in_threads(
                lambda number: reach.reach("echo", {"number": number}, idempotency_key=False), calls, callers
            )

    def body(number: int) -> Dict[str, Any]:
        return {"capability": "echo", "params": {"number": number}}

    limits = httpx.Limits(max_connections=512, max_keepalive_connections=512)

    def httpx_async(calls: int, callers: int) -> Figures:
        async def main() -> Figures:
            async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as http:

                async def call(number: int) -> Any:
                    return (await http.post("/reach", json=body(number))).raise_for_status().json()["result"]

                return await on_loop(call, calls, callers)

        return asyncio.run(main())

    def httpx_plain(calls: int, callers: int) -> Figures:
        with httpx.Client(base_url=url, limits=limits, timeout=30) as http:

            def call(number: int) -> Any:
                return http.post("/reach", json=body(number)).raise_for_status().json()["result"]

            return in_threads(call, calls, callers)

    return {
        "rust": rust,
        "agent_reach.AsyncClient": asynchronous,
        "agent_reach.Client": plain,
        "httpx.AsyncClient": httpx_async,
        "httpx.Client": httpx_plain,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--programs", type=Path, default=Path("target/release"), help="where the programs of Rust are")
    options.add_argument("--calls", type=int, default=4000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--callers", type=int, nargs="+", default=[1, 64])
    given = options.parse_args()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import agent_reach"], check=True)
    with_it = time.perf_counter() - began
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    print(f"import agent_reach: {(with_it - (time.perf_counter() - began)) * 1e3:.0f} ms, {agent_reach.__version__}")
    with Gateway(command=str(given.programs / "reach-gateway")) as gateway:
        environment = {**os.environ, "AGENT_REACH_URL": gateway.url}
        agent = subprocess.Popen([str(given.programs / "examples" / "call_speed"), "serve"], env=environment)
        try:
            with Client(gateway.url) as client:
                while not any(found.name == "echo" for found in client.discover(namespace="bench")):
                    time.sleep(0.02)
            compare(rows(gateway.url, given.programs), given.calls, given.rounds, given.callers)
        finally:
            agent.terminate()
            agent.wait()


def compare(table: Dict[str, Callable[[int, int], Figures]], calls: int, rounds: int, all_callers: List[int]) -> None:
    for callers in all_callers:
        seen: Dict[str, List[Figures]] = {name: [] for name in table}
        for _ in range(rounds):
            for name, row in table.items():
                seen[name].append(row(calls, callers))
        best = {name: min(each, key=lambda one: one["p50_us"]) for name, each in seen.items()}
        base = best["rust"]
        print(f"\n{callers} at once, {calls} calls, best of {rounds} rounds (median of the rounds in brackets), us")
        print(f"{'':26}{'p50':>8}{'':>10}{'p99':>9}{'a call':>9}{'over Rust':>11}")
        for name, one in best.items():
            median = statistics.median(each["p50_us"] for each in seen[name])
            over = one["per_call_us"] - base["per_call_us"]
            print(
                f"{name:26}{one['p50_us']:8.0f}{f'({median:.0f})':>10}{one['p99_us']:9.0f}{one['per_call_us']:9.0f}{over:11.0f}"
            )


if __name__ == "__main__":
    main()
