"""Makes one business, one task and one token of each role; prints a line of role and token for each."""
import json
import sys
import urllib.request

url, admin = sys.argv[1], sys.argv[2]


def post(path, body):
    headers = {"content-type": "application/json", "authorization": "Bearer " + admin}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


post("/v1/businesses?check=skip", {"name": "push", "url": "http://127.0.0.1:9/"})
post("/v1/tasks", {"business": "push", "source": {"type": "range", "total": 10}})
print("none", "-")
for role in ["viewer", "operator", "admin", "business"]:
    body = {"name": "fuzz-" + role, "role": role}
    if role == "business":
        body["business"] = "push"
    print(role, post("/v1/tokens", body)["token"])
