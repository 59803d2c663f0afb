"""`windrow.Client` against a real node."""

import json
import re
import socket
import threading
from pathlib import Path

import pytest

import windrow
from windrow._call import Caller
from windrow._server import Server


@pytest.fixture
def handler():
    """Handler of a business: fails odd rows until it is repaired."""
    broken = threading.Event()
    broken.set()

    def call(row):
        if broken.is_set() and int(row["n"]) % 2:
            raise windrow.Fail("ODD", f"{row['n']} is odd", output=row["n"])
        return row["n"] * 2

    with Server(Caller(call), 0, "call") as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/call", broken
        server.shutdown()


def register(node, url, name="push"):
    node.request("POST", "/v1/businesses", {"name": name, "url": url})


def test_a_task_from_its_creation_to_its_redrive(node, handler):
    url, broken = handler
    register(node, url)
    rows = ({"n": n} for n in range(1200))
    task = node.create("push", rows, name="one", rate="1000/s", results="keep", error_budget="none")
    assert node.wait(task["id"])["status"] == "finished"
    results = list(node.results(task["id"]))
    assert [(one.index, one.row, one.output) for one in results] == [(n, {"n": n}, n * 2) for n in range(0, 1200, 2)]
    assert [one.index for one in node.results(task["id"], after=1195)] == [1196, 1198]
    failures = list(node.failures(task["id"]))
    assert [one.row["n"] for one in failures] == list(range(1, 1200, 2)), "more than a page"
    assert (failures[0].code, failures[0].message, failures[0].output) == ("ODD", "1 is odd", 1)
    assert len(list(node.failures(task["id"], code="ODD"))) == 600
    assert list(node.failures(task["id"], code="EVEN")) == []
    broken.clear()
    again = node.redrive(task["id"], codes=["ODD"])
    assert again["total"] == 600
    assert node.wait(again["id"])["counts"]["succeeded"] == 600
    joined = node.results(task["id"], with_redrives=True)
    assert [(one.index, one.output) for one in joined] == [(n, n * 2) for n in range(1200)]
    assert node.redrive(task["id"]) is None, "all of them are recovered"


def test_the_page_shows_code_that_works(node, handler, tmp_path, capsys):
    register(node, handler[0])
    (tmp_path / "users.csv").write_text("n\n2\n4\n")
    page = (Path(__file__).parents[3] / "docs/python.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "Client" in block)
    assert "http://127.0.0.1:7700" in code
    exec(code.replace("http://127.0.0.1:7700", node._url), {"windrow": windrow, "token": node._token})
    assert capsys.readouterr().out == "0 22\n1 44\n", "a CSV has texts"


def test_sources(node, handler, tmp_path):
    handler[1].clear()
    register(node, handler[0])
    assert node.create("push", 5, start=False)["total"] == 5
    (tmp_path / "a.csv").write_text("n\n1\n2\n")
    assert node.create("push", tmp_path / "a.csv", start=False)["total"] == 2
    (tmp_path / "a.ndjson").write_text('{"n":1}\n' * 3)
    assert node.create("push", str(tmp_path / "a.ndjson"), start=False)["total"] == 3


def test_a_repeated_key_creates_nothing(node, handler):
    register(node, handler[0])
    first, second = (node.create("push", 5, start=False, key="k1") for _ in range(2))
    assert first["id"] == second["id"]


def test_wait_gives_up_and_returns_early_ends(node, handler):
    register(node, handler[0])
    task = node.create("push", 5, start=False)["id"]
    with pytest.raises(TimeoutError, match=f"{task} is created"):
        node.wait(task, timeout=0.2)
    waiting = threading.Timer(0.2, node.request, ["POST", f"/v1/tasks/{task}/cancel", {"reason": "test"}])
    waiting.start()
    assert node.wait(task)["status"] == "cancelled"
    waiting.join()


def test_problems_have_code_title_hint_and_status(node):
    with pytest.raises(windrow.Problem) as refused:
        node.wait("t999")
    assert (refused.value.code, refused.value.status) == ("not-found", 404)
    assert refused.value.title and refused.value.title in str(refused.value)
    with pytest.raises(windrow.Problem) as refused:
        node.request("POST", "/v1/businesses", {"name": "A B", "url": "ftp://x"})
    assert refused.value.status == 422
    assert "/name: " in str(refused.value) and "/url: " in str(refused.value)
    stranger = windrow.Client(node._url, "wrong")
    with pytest.raises(windrow.Problem) as refused:
        stranger.wait("t1")
    assert refused.value.status == 401


def test_without_a_node_there_is_a_problem_too():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(windrow.Problem) as refused:
        windrow.Client(f"http://127.0.0.1:{port}").wait("t1")
    assert (refused.value.code, refused.value.status) == ("unreachable", 0)


@pytest.mark.parametrize("body, kind", [(b"<html>502", "text/html"), (b"[]", "application/json")])
def test_responses_of_others_are_problems(body, kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection = listener.accept()[0]
            with connection:
                connection.recv(65536)
                head = f"HTTP/1.1 502 Bad Gateway\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(windrow.Problem) as refused:
            windrow.Client(f"http://127.0.0.1:{listener.getsockname()[1]}").wait("t1")
        thread.join()
    assert (refused.value.code, refused.value.status) == ("http-502", 502)


def test_results_that_are_cut_off_are_an_error():
    row = json.dumps({"index": 0, "key": "k", "output": 1, "data": None}).encode() + b"\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection = listener.accept()[0]
            with connection:
                connection.recv(65536)
                head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                connection.sendall(head + b"%x\r\n%s\r\n" % (len(row), row))

        thread = threading.Thread(target=answer)
        thread.start()
        found = windrow.Client(f"http://127.0.0.1:{listener.getsockname()[1]}").results("t1")
        assert next(found).output == 1
        with pytest.raises(Exception):
            next(found)
        thread.join()
