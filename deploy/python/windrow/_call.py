"""One call of a function for an item, and the item's result."""

import asyncio
import inspect
import json
import os
import re
import threading
import traceback
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, Union


class Skip(Exception):
    """Raised by a function to skip its item: there is nothing to do."""


class Fail(Exception):
    """Raised by a function to fail its item without another attempt. Failures are grouped by `code`."""

    def __init__(self, code: str = "FAILED", reason: str = "", output: Any = None) -> None:
        super().__init__(code, reason)
        self.result = {"result": "fail", "code": code, "message": reason, "output": output}


class Retry(Exception):
    """Raised by a function to retry its item, `after` some seconds or a span such as "2m", up to `max_attempts`."""

    def __init__(self, after: Union[float, str, None] = None, code: str = "RETRY", reason: str = "") -> None:
        super().__init__(after, code, reason)
        self.result = {"result": "retry", "code": code, "message": reason}
        if after is not None:
            self.result["retry_after"] = after if isinstance(after, str) else f"{round(after * 1000)}ms"


@dataclass(frozen=True)
class Item:
    """Item of the present call. `key` is the same for each attempt: the idempotency key for APIs that take one."""

    index: int
    key: str
    attempt: int


_current: "ContextVar[Item]" = ContextVar("windrow.current")


def current() -> Item:
    """Returns the item of the present call, inside a function called by `run` or as a worker."""
    return _current.get()


def code_of(error: BaseException) -> str:
    """Returns the failure code of an exception: the name of its class.

    >>> code_of(ZeroDivisionError()), code_of(json.JSONDecodeError("", "", 0))
    ('ZERO_DIVISION_ERROR', 'JSON_DECODE_ERROR')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(error).__name__).upper()[:64]


def encode(result: Dict[str, Any], **place: Any) -> bytes:
    """Returns a result as JSON. An output that isn't JSON fails the item: another call would return the same.

    >>> encode({"result": "ok", "output": {1, 2}}, id=7)
    b'{"id": 7, "result": "fail", "code": "OUTPUT_NOT_JSON", "message": "Object of type set is not JSON serializable"}'
    """
    try:
        return json.dumps({**place, **result}, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return encode({"result": "fail", "code": "OUTPUT_NOT_JSON", "message": str(error)}, **place)


class Caller:
    """Plain or async function, callable from any thread. Coroutines share one event loop in a thread of its own."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="windrow-async", daemon=True).start()

    def __call__(self, item: Dict[str, Any]) -> Dict[str, Any]:
        """Calls the function with the row of an item of the protocol. Returns the result, whatever it raises."""
        _current.set(Item(item["index"], item["key"], item["attempt"]))
        try:
            output = self._function(item.get("data"))
            if inspect.isawaitable(output):
                output = asyncio.run_coroutine_threadsafe(_awaited(output), self._loop).result()
        except Skip:
            return {"result": "skip"}
        except (Fail, Retry) as error:
            return error.result
        except (Exception, SystemExit) as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{error} ({os.path.basename(frame.filename)}:{frame.lineno})"
            return {"result": "retry", "code": code_of(error), "message": message}
        return {"result": "ok", "output": output}


async def _awaited(output: Awaitable[Any]) -> Any:
    try:
        return await output
    except SystemExit as error:  # It would end the event loop, and with it all other calls.
        raise RuntimeError(f"exit with {error}") from error
