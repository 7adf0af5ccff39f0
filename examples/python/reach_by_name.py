"""Reaches an agent of another namespace by its name, from plain Python, and reads how it went.

Across namespaces both sides must say yes: the caller by may_call, the one that is called by callable_by.
Start a gateway first: reach-gateway serve
"""

from __future__ import annotations

import asyncio

from agent_reach import Agent, AgentReachError, Client

editor = Agent("editor@media", may_call=["*@languages"])
translator = Agent("translator@languages", callable_by=["editor@media"])
archive = Agent("archive@vault")

WORDS = {"rain": "regn", "library": "bibliotek"}


@editor.capability(effect="read")
def edit(text: str) -> str:
    """Makes a text shorter."""
    return text[:80]


@translator.capability(effect="read")
def translate(text: str) -> str:
    """Translates words into Norwegian."""
    return " ".join(WORDS.get(word, word) for word in text.split())


@archive.capability(effect="read")
def look_up(text: str) -> str:
    """Looks a text up."""
    return text


def caller() -> None:
    with Client(from_agent="editor@media") as reach:
        done = reach.reach("translate", {"text": "rain library"}, to_agent="translator@languages", timeout=10)
        print(f"status {done.status_code}, {len(done.attempts)} attempt: {done.result}")

        for agent in ("archive@vault", "nobody@languages"):
            try:
                reach.reach(to_agent=agent, params={"text": "rain"})
            except AgentReachError as error:
                print(f"{agent}: {type(error).__name__}, {error.code}")


async def main() -> None:
    async with editor, translator, archive:
        await asyncio.to_thread(caller)


if __name__ == "__main__":
    asyncio.run(main())
