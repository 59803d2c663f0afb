"""Client of the API of a node."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, Optional, Sequence, Union

from ._job import Failure, Result, Rows, read

_WAIT_MAX = 60.0
_ENDED = ("finished", "stopped", "cancelled")

Task = Dict[str, Any]


class Problem(Exception):
    """Refusal by a node, or no response: then `code` is "unreachable" and `status` 0."""

    def __init__(self, status: int, body: Dict[str, Any]) -> None:
        self.status, self.body = status, body
        self.code: str = body["type"].rpartition("/")[2]
        self.title: str = body["title"]
        faults = body.get("errors", [])
        tries = [fault["try"] for fault in faults if "try" in fault] if faults else body.get("try", [])
        self.hint = "; ".join(tries)
        details = [f"{fault['pointer']}: {fault['detail']}" for fault in faults] or [body["detail"]]
        super().__init__("\n".join([self.title, *details, *(f"try: {one}" for one in tries)]))


class Client:
    """Node at a URL, by default $WINDROW_SERVER, called with a token, by default $WINDROW_TOKEN."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, timeout: float = 30) -> None:
        self._url = (url or os.environ.get("WINDROW_SERVER") or "http://127.0.0.1:7700").rstrip("/")
        self._token = token or os.environ.get("WINDROW_TOKEN")
        self._timeout = timeout

    def create(
        self, business: str, rows: Union[int, Rows], *, start: bool = True, key: Optional[str] = None, **members: Any
    ) -> Task:
        """Creates a task over a number of items, a CSV or NDJSON file, or JSON values.

        `members` are more of the API's: `rate="500/s"`, `results="keep"`. A repeat with the same `key` creates nothing.
        """
        source: Dict[str, Any] = {"type": "range", "total": rows}
        if not isinstance(rows, int):
            source = {"type": "file", "upload": self._upload(rows)["id"]}
        body = {"business": business, "source": source, "start": start, **members}
        return self.request("POST", "/v1/tasks", body, key=key)

    def wait(self, task: str, timeout: Optional[float] = None) -> Task:
        """Waits until a task is finished, stopped or cancelled, and returns it."""
        until = time.monotonic() + (float("inf") if timeout is None else timeout)
        query: Dict[str, str] = {}
        while True:
            left = min(_WAIT_MAX, max(0.0, until - time.monotonic()))
            with self._open("GET", f"/v1/tasks/{task}", None, {}, query, left) as response:
                shown: Task = json.load(response)
                query = {"wait": f"{round(left * 1000)}ms", "unless": response.headers["etag"]}
            if shown["status"] in _ENDED:
                return shown
            if time.monotonic() >= until:
                raise TimeoutError(f"{task} is {shown['status']}")

    def results(self, task: str, *, after: Optional[int] = None, with_redrives: bool = False) -> Iterator[Result]:
        """Returns the outputs of a task in index order; while it runs, those before its first unsettled item."""
        query = {"data": "*", "format": "ndjson", "with_redrives": str(with_redrives).lower()}
        query.update({} if after is None else {"after": str(after)})
        with self._open("GET", f"/v1/tasks/{task}/results", None, {}, query) as response:
            yield from read(Result, map(json.loads, response))

    def failures(self, task: str, *, code: Optional[str] = None) -> Iterator[Failure]:
        """Returns the failed items of a task, or those with a code."""
        query: Dict[str, str] = {"data": "*", "limit": "500", **({"code": code} if code else {})}
        while "cursor" not in query or query["cursor"]:
            page = self.request("GET", f"/v1/tasks/{task}/failures", query=query)
            yield from read(Failure, page["items"])
            query["cursor"] = page["next_cursor"]

    def redrive(
        self, task: str, *, codes: Sequence[str] = (), start: bool = True, key: Optional[str] = None, **members: Any
    ) -> Optional[Task]:
        """Creates a task over the failed items of another one, with their indexes and keys. None if there are none."""
        chosen = {"filter": {"codes": list(codes)}} if codes else {}
        made = self.request("POST", f"/v1/tasks/{task}/redrives", {**chosen, "start": start, **members}, key=key)
        return made if "id" in made else None

    def request(
        self, method: str, path: str, body: Any = None, *, query: Optional[Dict[str, str]] = None,
        key: Optional[str] = None, kind: str = "application/json",
    ) -> Dict[str, Any]:
        """Calls any route of the API and returns its JSON: `request("POST", "/v1/tasks/t1/stop", {})`.

        A body of another `kind` is a file or yields bytes.
        """
        headers = {"content-type": kind, **({"idempotency-key": key} if key else {})}
        data = json.dumps(body).encode() if kind == "application/json" and body is not None else body
        with self._open(method, path, data, headers, query) as response:
            answer: Dict[str, Any] = json.loads(response.read() or b"{}")
            return answer

    def _upload(self, rows: Rows) -> Dict[str, Any]:
        ndjson = "application/x-ndjson"
        if not isinstance(rows, (str, os.PathLike)):
            lines = ((json.dumps(row, allow_nan=False) + "\n").encode() for row in rows)
            return self.request("POST", "/v1/uploads", lines, kind=ndjson)
        with open(rows, "rb") as file:
            kind = "text/csv" if ".csv" in os.path.basename(rows) else ndjson
            return self.request("POST", "/v1/uploads", file, kind=kind)

    def _open(
        self, method: str, path: str, data: Any, headers: Dict[str, str], query: Optional[Dict[str, str]],
        timeout: float = 0,
    ) -> Any:
        url = self._url + urllib.parse.quote(path) + "?" + urllib.parse.urlencode(query or {})
        request = urllib.request.Request(url, data, headers, method=method)
        if self._token:
            request.add_unredirected_header("authorization", f"Bearer {self._token}")
        try:
            return urllib.request.urlopen(request, timeout=self._timeout + timeout)
        except urllib.error.HTTPError as error:
            text = error.read()
            body = {"type": f"http-{error.code}", "title": f"HTTP {error.code}", "detail": text[:200].decode("latin-1")}
            if error.headers.get_content_type() == "application/problem+json":
                body = json.loads(text)
            raise Problem(error.code, body) from None
        except OSError as error:
            body = {"type": "unreachable", "title": f"no response from {self._url}", "detail": str(error)}
            raise Problem(0, body) from error
