# A stand-in for a language model API: chat completions, an API key, a rate limit per second, token counts.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json, os, threading, time

KEY = os.environ.get("LLM_KEY", "sk-demo-0815")
PER_SECOND = int(os.environ.get("PER_SECOND", 10))
calls, lock = [], threading.Lock()                             # times of the latest ones

def is_too_fast():
    with lock:
        now = time.monotonic()
        calls[:] = [at for at in calls if now - at < 1]
        if len(calls) < PER_SECOND:
            calls.append(now)
            return False
        return True

class Llm(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if self.headers.get("authorization") != f"Bearer {KEY}":
            return self.answer(401, {"error": {"type": "invalid_api_key"}})
        if is_too_fast():
            return self.answer(429, {"error": {"type": "rate_limit_exceeded"}}, {"retry-after": "1"})
        prompt = body["messages"][-1]["content"]
        text = f"A line about {prompt.split()[-1]}"
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self.answer(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def answer(self, status, reply, headers={}):
        text = json.dumps(reply, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", 9005), Llm).serve_forever()
