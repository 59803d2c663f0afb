# python3 examples/recipes/verify.py FILE: accepts only calls signed with a secret of the file
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import base64, hashlib, hmac, json, sys, time

SECRETS = [base64.b64decode(line.removeprefix("whsec_")) for line in open(sys.argv[1]).read().split()]
TOLERANCE = 300                                     # seconds; an older call may be a replay

def is_signed(headers, body):
    sent_at = headers.get("webhook-timestamp", "")
    if not sent_at.isdigit() or abs(time.time() - int(sent_at)) > TOLERANCE:
        return False
    signed = f'{headers.get("webhook-id")}.{sent_at}.'.encode() + body      # the raw body, byte for byte
    right = ["v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode() for secret in SECRETS]
    sent = headers.get("webhook-signature", "").split()                    # two while a secret is rotated
    return any(hmac.compare_digest(one, other) for one in right for other in sent)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if is_signed(self.headers, body):
            print("believed:", json.loads(body)["type"])
            self.send_response(204)
        else:
            self.send_response(401)
            self.send_header("content-length", "0")
        self.end_headers()

ThreadingHTTPServer(("127.0.0.1", 9001), Handler).serve_forever()
