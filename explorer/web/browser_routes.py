"""The one channel: what the page asks Python, and how Python answers.

`POST explorer/answer` takes an `PageRequest` and answers with one line of JSON after another: what its action
changed, then the contents of the page in stages, those that are in sight first. `POST explorer/<name>` calls one of
the other functions of `BrowserEndpoints` with the list of its arguments.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import anyio
import anyio.to_thread
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from explorer.errors import UserError
from explorer.tracing.jobs import RequestBudget, RequestCancelledError
from explorer.translations import _, use_locale
from explorer.web.actions.page_actions import PageActions
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.request_validation import (
    STRICT,
    About,
    Action,
    InspectionRequest,
    State,
    argument_types,
    check_content_type,
    parse_json,
    to_json_bytes,
    validation_error_sentence,
)
from explorer.web.shared_constants import PROBLEM
from explorer.web.user_messages import (
    USER_ERRORS,
    collect_notices,
    errors_as_responses,
    locale_from_state,
    user_message,
)

LOG = logging.getLogger(__name__)
MAX_TOKENS, MAX_SECONDS = 8192, 10.0  # of one answer
WAIT_INTERVAL_S = 0.1  # between two looks whether texts are being written
POLL_INTERVAL_S = 0.25  # between two looks whether anybody waits for an answer
SHOW_QUEUE_AFTER_S = 1.0  # of waiting, after which the page is told how many wait
MAX_TEXT_WAIT_S = 2.0  # that what is not in sight waits while texts are being written
LIGHT_SLOTS, HEAVY_SLOTS = 2, 1  # computations at a time: what is in sight does not wait for what is not


class PageRequest(BaseModel):
    """A question of the page.

    Attributes:
        about: what of the page the answer is about, see `BrowserEndpoints.answer`.
        state: the page's state.
        action: what is done first, such as running a prompt; the answer is about the state that it leads to.
        inspect: a clicked point, whose number's derivation is part of the answer.
    """

    model_config = STRICT

    about: About
    state: State
    action: Action | None = None
    inspect: InspectionRequest | None = None


def parse_page_request(body: bytes) -> PageRequest:
    """Return the question in a request's body; raise UserError with a sentence if it is invalid."""
    value = parse_json(body)
    try:
        return PageRequest.model_validate(value)
    except ValidationError as error:
        raise UserError(validation_error_sentence(error, value)) from None


class BrowserRoutes:
    """Routes by which the page asks.

    Args:
        endpoints: functions that answer.
        actions: what the page can do to its state.
    """

    def __init__(self, endpoints: BrowserEndpoints, actions: PageActions):
        self.endpoints, self.actions = endpoints, actions
        self.light, self.heavy = anyio.CapacityLimiter(LIGHT_SLOTS), anyio.CapacityLimiter(HEAVY_SLOTS)
        self.functions: dict[str, Callable] = {function.__name__: function for function in endpoints.functions}

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/explorer/answer", self.answer, methods=["POST"]),
            Route("/explorer/{name}", self.call, methods=["POST"]),
        ]

    @property
    def num_waiting(self) -> int:
        """Number of computations that wait for others."""
        return sum(limiter.statistics().tasks_waiting for limiter in (self.light, self.heavy))

    async def answer(self, request: Request) -> Response:
        """Answer an `PageRequest`; 422 with a sentence if it is invalid, or what is in sight cannot be computed."""
        with errors_as_responses():
            question = parse_page_request(await request.body())
        lines = self._lines(question, request)
        with use_locale(locale_from_state([question.state])), errors_as_responses():
            first = await anext(lines)
        return StreamingResponse(_with_error_line(first, lines, question), media_type="application/x-ndjson")

    async def call(self, request: Request) -> Response:
        """Call a function with the JSON list of its arguments in the request's body."""
        name = request.path_params["name"]
        if (function := self.functions.get(name)) is None:
            raise HTTPException(404, _("There is no function {name!r:.40} here.", name=name))
        check_content_type(request.headers)
        with errors_as_responses():
            arguments = parse_json(await request.body())
            argument_types(function).check(arguments)
        budget, locale = RequestBudget(MAX_TOKENS, MAX_SECONDS), locale_from_state(arguments)

        def work() -> bytes:
            with use_locale(locale), budget.activate():
                return to_json_bytes(function(*arguments))

        with use_locale(locale), errors_as_responses():
            async with aclosing(_run(work, self.light, budget, request.is_disconnected)) as lines:
                body = [line async for line in lines][-1]
        return Response(body, media_type="application/json")

    async def _lines(self, question: PageRequest, request: Request) -> AsyncIterator[bytes]:
        """Yield the lines of an answer; while it waits for others, lines that say how many wait."""
        budget, state = RequestBudget(MAX_TOKENS, MAX_SECONDS), question.state
        start_time, num_stages, stage = time.monotonic(), 1, 0

        def work() -> bytes:
            nonlocal state, num_stages
            with use_locale(locale_from_state([state])), budget.activate():
                lines = []
                if question.action and not stage:
                    with collect_notices() as notices:
                        update = self.actions.apply(question.action, state)
                    lines.append(to_json_bytes(update.as_dict() | {"notices": notices}))
                    if not update.is_done:
                        return b"\n".join([*lines, b""])
                    state = state | dict(update.change)
                about = self.endpoints.answered_scope(question.about, state)
                num_stages = self.endpoints.num_stages(about, state)
                return b"\n".join([*lines, self.endpoints.cached_answer(about, state, stage), b""])

        def inspect() -> bytes:
            with use_locale(locale_from_state([state])), budget.activate():
                try:
                    text = self.endpoints.inspect(state, **question.inspect)
                except USER_ERRORS as error:
                    text = user_message(error)
                return to_json_bytes({"inspection": text}) + b"\n"

        is_gone = request.is_disconnected  # until the response begins, which watches for it then
        while stage < num_stages:
            if stage:
                await self._wait_for_texts()
            async with aclosing(_run(work, self.heavy if stage else self.light, budget, is_gone)) as lines:
                async for line in lines:
                    yield line
                    is_gone = None
            if question.inspect and not stage:
                async with aclosing(_run(inspect, self.light, budget, None)) as lines:
                    async for line in lines:
                        yield line
            stage += 1
        LOG.debug("answer: %d tokens, %.3f s", budget.tokens, time.monotonic() - start_time)

    async def _wait_for_texts(self):
        """Wait until no text is being written, for a while at most."""
        end = time.monotonic() + MAX_TEXT_WAIT_S
        while self.actions.generation.num_texts and time.monotonic() < end:
            await asyncio.sleep(WAIT_INTERVAL_S)


async def _run(
    work: Callable[[], bytes],
    limiter: anyio.CapacityLimiter,
    budget: RequestBudget,
    is_gone: Callable[[], Awaitable[bool]] | None,
) -> AsyncIterator[bytes]:
    """Run a computation in a thread and yield its bytes; before, while others are served, how many wait.

    It is cancelled when the iterator is closed or the client is gone.
    """
    began = False

    def run() -> bytes:
        nonlocal began
        began = True
        return work()

    task = asyncio.create_task(anyio.to_thread.run_sync(run, limiter=limiter, abandon_on_cancel=True))
    start_time = time.monotonic()
    try:
        while not (await asyncio.wait([task], timeout=POLL_INTERVAL_S))[0]:
            if is_gone and await is_gone():
                raise RequestCancelledError
            if not began and time.monotonic() > start_time + SHOW_QUEUE_AFTER_S:
                start_time = time.monotonic()
                yield to_json_bytes({"waiting": limiter.statistics().tasks_waiting}) + b"\n"
        yield task.result()
    finally:
        budget.is_cancelled = budget.is_cancelled or not task.done()
        task.cancel()


async def _with_error_line(first: bytes, lines: AsyncIterator[bytes], question: PageRequest) -> AsyncIterator[bytes]:
    """Yield all lines; in place of one that fails, a line with the sentence that says why."""
    async with aclosing(lines):
        yield first
        try:
            async for line in lines:
                yield line
        except Exception as error:
            with use_locale(locale_from_state([question.state])):
                yield to_json_bytes({"contents": {PROBLEM: user_message(error)}}) + b"\n"
