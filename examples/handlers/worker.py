# windrow run --csv users.csv --rate 500/s -- python3 examples/handlers/worker.py
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    user = message.get("data") or {}
    print("push to", user.get("user_id"), file=sys.stderr)    # stdout is for answers only
    print(json.dumps({"type": "result", "id": message["id"], "result": "ok"}), flush=True)
