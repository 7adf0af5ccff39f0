"""Asks for a summary of the news in words: nobody is named, the gateway finds who can do it.

The agent and its caller share a program here, so that the example runs alone; they know nothing of each other.
Start a gateway first: reach-gateway serve
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent_reach import Agent, AsyncClient, Context, NoCandidate


@dataclass
class Summary:
    """What the day was about."""

    text: str
    sources: int


news_desk = Agent("news_desk@media", description="Reads the news")


@news_desk.capability(effect="read", tags=["news", "headlines"], exclusions=["does not translate"])
async def summarize_news(headlines: list[str], context: Context, at_most: int = 2) -> Summary:
    """Summarizes the news of the day from its headlines."""
    for read in range(len(headlines)):
        await context.progress({"read": read + 1, "of": len(headlines)})
    return Summary(text="; ".join(headlines[:at_most]), sources=len(headlines))


async def main() -> None:
    headlines = ["Rain in Bergen", "A comet is seen", "The library opens again"]
    async with news_desk, AsyncClient() as reach:
        task = await reach.submit(intent="summarize today's news", namespace="media", params={"headlines": headlines})
        print("submitted, and durable from here on")

        done = await reach.wait_for_result(task, timeout=30)
        print(f"{done.status_code} by {done.agent}: {done.result['text']} ({done.result['sources']} sources)")

        try:
            await reach.reach(intent="translate the news into Norwegian", namespace="media")
        except NoCandidate as error:
            near = error.suggestions[0]
            print(f"nobody: {near.capability} of {near.agent_id} is near, but {near.lacks[0].reason}")


if __name__ == "__main__":
    asyncio.run(main())
