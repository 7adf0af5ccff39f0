"""Registers an agent and shows its heartbeat: what the gateway understood, and that it hears of the agent again and again.

Start a gateway first: reach-gateway serve
"""

from __future__ import annotations

import asyncio

from agent_reach import Agent, AsyncClient, NotFound

counter = Agent("counter@tools", version="2.1", description="Counts things in texts", heartbeat=0.2)


@counter.capability(effect="read", tier="fast", tags=["words"])
def count_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


async def main() -> None:
    async with AsyncClient() as reach:
        registered = await counter.start()
        print(f"registered {registered.agent_id} for {', '.join(registered.capabilities)}")

        # Heartbeats go out by themselves. Each renews the lease, and says how the agent is.
        heard = (await reach.agent("counter@tools")).seen_at
        for _ in range(2):
            while (now := await reach.agent("counter@tools")).seen_at == heard:
                await asyncio.sleep(0.02)
            heard = now.seen_at
            print(f"heard of it again: {now.state}, {now.in_flight} tasks")

        print(f"it serves: {(await reach.reach('count_words', {'text': 'one two three'})).result}")

        await counter.drain()
        try:
            await reach.agent("counter@tools")
        except NotFound:
            print("it has drained and left")


if __name__ == "__main__":
    asyncio.run(main())
