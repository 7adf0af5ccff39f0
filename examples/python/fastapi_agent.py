#!/usr/bin/env python3
"""An agent as a FastAPI service, without any SDK: it follows docs/write-an-agent.md only.

    pip install fastapi uvicorn httpx
    AGENT_REACH_URL=http://127.0.0.1:7340 python3 fastapi_agent.py --port 9000
"""

import argparse
import asyncio
import contextlib
import os
import time

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError

GATEWAY = os.environ.get("AGENT_REACH_URL", "http://127.0.0.1:7340")
SEATS = 4
INTERVAL = 2.0


class Delivery(BaseModel):
    """What the gateway posts. Members that are not named here are passed over."""

    task_id: str
    token: int
    capability: str
    idempotency_key: str
    params: dict | None = None


class Count(BaseModel):
    text: str


class Nap(BaseModel):
    ms: int = Field(ge=0, le=60_000)


class Note(BaseModel):
    line: str


def card(address: str) -> dict:
    def capability(name, description, model, example, **more):
        return {"name": name, "description": description, "input_schema": model.model_json_schema() | {"examples": [example]}, **more}

    return {
        "agent_id": "fastapi@examples",
        "description": "Counts words, naps, and keeps notes.",
        "max_concurrency": SEATS,
        "heartbeat_interval": f"{INTERVAL:.0f}s",
        "endpoints": [{"protocol": "http", "address": address}],
        "capabilities": [
            capability(
                "count_words", "Counts the words of a text.", Count, {"text": "one two"}, effect="read", tier="fast",
                output_schema={"type": "object", "required": ["words"], "properties": {"words": {"type": "integer"}}},
            ),
            capability("nap", "Sleeps for some milliseconds.", Nap, {"ms": 800}, effect="read", cancellable=True),
            capability("keep_note", "Keeps a line among the notes.", Note, {"line": "hello"}, effect="idempotent_write"),
        ],
    }


class Memory:
    """What was done, so that nothing is done twice. A real agent keeps this beside its data."""

    def __init__(self):
        self.running: dict[tuple[str, int], asyncio.Task] = {}
        self.done: dict[tuple[str, int], object] = {}
        self.notes: dict[str, object] = {}
        self.newest: dict[str, int] = {}
        self.ended: list[tuple[float, bool]] = []

    def begin(self, attempt: tuple[str, int], task: asyncio.Task):
        self.running[attempt] = task
        task.add_done_callback(lambda _: self.end(attempt, task))

    def end(self, attempt: tuple[str, int], task: asyncio.Task):
        """Gives the seat back, however the work ended and whether or not anybody still waits for it."""
        del self.running[attempt]
        is_success = not task.cancelled() and task.exception() is None
        if is_success:
            self.done[attempt] = task.result()
        now = time.monotonic()
        self.ended = [(at, ok) for at, ok in self.ended if now - at < 600] + [(now, is_success)]


memory = Memory()


async def count_words(delivery: Delivery):
    return {"words": len(Count.model_validate(delivery.params).text.split())}


async def nap(delivery: Delivery):
    ms = Nap.model_validate(delivery.params).ms
    await asyncio.sleep(ms / 1000)
    return {"napped": ms}


async def keep_note(delivery: Delivery):
    line = Note.model_validate(delivery.params).line
    # The key with the result, in one step with the change.
    return memory.notes.setdefault(delivery.idempotency_key, {"number": len(memory.notes) + 1, "line": line})


HANDLERS = {"count_words": count_words, "nap": nap, "keep_note": keep_note}


def problem(status: int, detail: str, **headers: str) -> JSONResponse:
    return JSONResponse({"status": status, "detail": detail}, status, headers, "application/problem+json")


async def beat(address: str):
    """Registers, and says every now and then that the agent is there."""
    async with httpx.AsyncClient(base_url=GATEWAY, trust_env=False, timeout=5) as gateway:
        is_known = False
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if not is_known:
                    answer = await gateway.post("/agent/register", json=card(address))
                    is_known = answer.is_success
                else:
                    report = {"agent_id": "fastapi@examples", "current_load": len(memory.running)}
                    answer = await gateway.post("/agent/heartbeat", json=report)
                    if answer.status_code == 404:  # agent_not_found
                        is_known = False
                        continue
            await asyncio.sleep(INTERVAL * 0.9 if is_known else 0.2)


async def leave():
    """The last words: no new work, and goodbye."""
    async with httpx.AsyncClient(base_url=GATEWAY, trust_env=False, timeout=2) as gateway:
        for method in ("agent/drain", "agent/deregister"):
            with contextlib.suppress(httpx.HTTPError):
                params = {"agent_id": "fastapi@examples"}
                await gateway.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def application(address: str) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI):
        heart = asyncio.create_task(beat(address))
        yield
        heart.cancel()
        await leave()

    app = FastAPI(lifespan=lifespan)

    @app.exception_handler(RequestValidationError)
    async def no_delivery(_: Request, error: RequestValidationError):
        return problem(400, f"this is no delivery: {error.errors()[0]['msg']}")

    @app.post("/jobs")
    async def work(delivery: Delivery):
        attempt = (delivery.task_id, delivery.token)
        if attempt in memory.done:
            return JSONResponse(memory.done[attempt])
        if delivery.token < memory.newest.get(delivery.task_id, 0):
            return problem(409, "another attempt has taken over")
        handler = HANDLERS.get(delivery.capability)
        if handler is None:
            return problem(404, f"no capability {delivery.capability}")
        if attempt not in memory.running:
            if len(memory.running) >= SEATS:
                return problem(429, "full", **{"Retry-After": "1"})
            memory.newest[delivery.task_id] = delivery.token
            memory.begin(attempt, asyncio.create_task(handler(delivery)))
        task = memory.running[attempt]
        # Not the task itself: if this request is given up, the work and its seat are the task's affair.
        await asyncio.wait([task])
        if task.cancelled():
            return problem(409, "it was called off")
        error = task.exception()
        if isinstance(error, ValidationError):
            return problem(422, f"the parameters are wrong: {error.errors()[0]['msg']}")
        if error is not None:
            return problem(500, f"it failed: {error}")
        return JSONResponse(task.result())

    @app.delete("/jobs/{task_id}")
    async def cancel(task_id: str, token: int):
        task = memory.running.get((task_id, token))
        if task is not None:
            task.cancel()
        return Response(status_code=204)

    @app.get("/healthz")
    async def health():
        failed = sum(not ok for _, ok in memory.ended)
        rate = failed / len(memory.ended) if memory.ended else 0.0
        return {"queue_depth": 0, "failure_rate_10m": rate}

    return app


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=9000)
    port = options.parse_args().port
    address = f"http://127.0.0.1:{port}/jobs"
    uvicorn.run(application(address), host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=5)


if __name__ == "__main__":
    main()
