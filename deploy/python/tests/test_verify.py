"""`windrow.verify` on calls that the real program has signed."""

import base64
import os
import secrets
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import windrow

ID, NOW = "msg_1", 1_700_000_000


def secret():
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
def signed(tmp_path):
    """Signs a call with the program: returns the secret, the headers and the body that it sent."""
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            calls.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    def sign(*of):
        (tmp_path / "secrets").write_text("\n".join(of))
        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        command = [os.environ["WINDROW"], "run", "--total", "1", "--url", url, "--secret-file", tmp_path / "secrets"]
        subprocess.run(command, check=True)
        server.shutdown()
        server.server_close()
        return calls[-1]

    return sign


def test_calls_of_the_program_are_verified(signed):
    own, other = secret(), secret()
    headers, body = signed(own)
    assert windrow.verify(own, headers, body)
    assert windrow.verify([other, own + "\n"], headers, body)
    assert not windrow.verify(other, headers, body)
    assert not windrow.verify([], headers, body)
    assert not windrow.verify(own, headers, body + b" ")
    assert not windrow.verify(own, {**headers, "webhook-id": "another"}, body)


def test_during_a_rotation_either_secret_verifies(signed):
    new, old = secret(), secret()
    headers, body = signed(new, old)
    assert len(headers["webhook-signature"].split()) == 2
    assert windrow.verify(new, headers, body) and windrow.verify(old, headers, body)


def test_old_calls_and_broken_headers_are_refused(signed):
    own = secret()
    headers, body = signed(own)
    sent_at = int(headers["webhook-timestamp"])
    assert windrow.verify(own, headers, body, now=sent_at + 300)
    assert not windrow.verify(own, headers, body, now=sent_at + 301)
    assert not windrow.verify(own, headers, body, now=sent_at - 301)
    assert windrow.verify(own, headers, body, now=sent_at + 301, max_age=600)
    upper = {name.upper(): value for name, value in headers.items()}
    assert windrow.verify(own, upper, body)
    for name in ("webhook-timestamp", "webhook-signature", "webhook-id"):
        assert not windrow.verify(own, {key: value for key, value in headers.items() if key != name}, body)
    for broken in ("", "soon", "-1", "1e9", "²"):
        assert not windrow.verify(own, {**headers, "webhook-timestamp": broken}, body)


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!", "nonsense"])
def test_a_broken_secret_is_an_error_and_verifies_nothing(text):
    headers = {"webhook-id": "a", "webhook-timestamp": str(NOW), "webhook-signature": "v1,"}
    with pytest.raises(ValueError):
        windrow.verify(text, headers, b"", now=NOW)
