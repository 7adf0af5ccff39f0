"""Memory over many calls. By default a short run; LEAK_CALLS=100000 makes it the long one."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from typing import List

import pytest

import agent_reach
from agent_reach import AsyncClient, Client
from conftest import run
from scripted import Scripted, result
from test_faulty import VIEW

CALLS = int(os.environ.get("LEAK_CALLS", "4000"))
#: What may come and go: caches, arenas. A leak of 100 bytes a call is found by the long run.
MAY_GROW_KB = 8 * 1024


def resident_kb() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_is_flat_over_many_calls(capsys: pytest.CaptureFixture[str]) -> None:
    turn = [0]

    def answer(call: dict) -> object:  # type: ignore[type-arg]
        turn[0] += 1
        return None if turn[0] % 97 == 0 else result(call, VIEW)

    async def calls(client: AsyncClient, count: int) -> None:
        async def some(each: int) -> None:
            for number in range(each):
                call = asyncio.ensure_future(client.submit("x", {"n": number, "text": "y" * 200}))
                if number % 50 == 0:
                    await asyncio.sleep(0)
                    call.cancel()
                await asyncio.gather(call, return_exceptions=True)

        await asyncio.gather(*(some(count // 8) for _ in range(8)))

    def plain(client: Client, count: int) -> None:
        for number in range(count):
            try:
                client.submit("x", {"n": number}, idempotency_key=False)
            except agent_reach.TransportError:
                pass

    def round_of(count: int) -> None:
        async def on_loop() -> None:
            async with AsyncClient(script.url) as client:
                await calls(client, count // 2)

        asyncio.run(on_loop())
        with Client(script.url, retries=0) as client:
            threads = [threading.Thread(target=plain, args=(client, count // 8)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    with Scripted(answer) as script:  # type: ignore[arg-type]
        keep = script.calls
        script.calls = type("Forgetful", (list,), {"append": lambda self, call: None})()
        round_of(max(CALLS // 4, 1000))
        before = resident_kb()
        marks: List[int] = [before]
        for _ in range(4):
            round_of(CALLS // 4)
            marks.append(resident_kb())
        assert keep == []
    with capsys.disabled():
        print(f"\n{CALLS} calls; resident KiB after each quarter: {marks}")
    assert marks[-1] - before < MAY_GROW_KB, marks


def test_loops_leave_nothing_behind() -> None:
    from agent_reach import _bridge

    async def nothing() -> None:
        with pytest.raises(agent_reach.TransportError):
            await AsyncClient("http://127.0.0.1:9", retries=0).agents()

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    run(nothing())
    gc.collect()
    before = descriptors()
    for _ in range(20):
        run(nothing())
    gc.collect()
    assert descriptors() <= before + 2 and len(_bridge._desks) <= 1
