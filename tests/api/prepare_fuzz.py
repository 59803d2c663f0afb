"""Makes what a role's run needs: a business that is not archived, tasks, an upload, a token. Prints the token."""
import json
import sys
import urllib.error
import urllib.request

url, admin, role = sys.argv[1:4]


def send(method, path, body, kind="application/json"):
    headers = {"content-type": kind, "authorization": "Bearer " + admin}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


# Another role's run may have changed both.
node = send("GET", "/v1/nodes", {})["items"][0]["id"]
send("PATCH", "/v1/nodes/" + node, {"capacity_rate": "2000/s", "log_filter": "info"})
try:
    send("POST", "/v1/businesses?check=skip", {"name": "push", "url": "http://127.0.0.1:9/"})
except urllib.error.HTTPError as error:
    assert error.code == 409, error.read()
    send("POST", "/v1/businesses/push/unarchive", {})
for start in [False, True]:
    send("POST", "/v1/tasks", {"business": "push", "source": {"type": "range", "total": 10}, "start": start})
send("POST", "/v1/uploads", b"to\na@example.org\n", "text/csv")
if role == "none":
    print("-")
else:
    body = {"name": "fuzz-" + role, "role": role}
    if role == "business":
        body["business"] = "push"
    print(send("POST", "/v1/tokens", body)["token"])
