# windrow run --csv users.csv --failures-out failed.ndjson -- python3 examples/handlers/picky.py
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    user, answer = message["data"], {"result": "ok"}
    if not user["token"]:
        answer = {"result": "skip"}                                # settled, not an error
    elif user["token"].startswith("expired-"):
        answer = {"result": "fail", "code": "TOKEN_EXPIRED", "message": "expired " + user["token"][8:]}
    elif user["time_zone"] == "Asia/Seoul":
        answer = {"result": "retry", "retry_after": "200ms", "code": "BUSY", "message": "not now"}
    print(json.dumps({"type": "result", "id": message["id"], **answer}), flush=True)
