"""Calls a node through the client that was generated from its document: what it sends is taken, what comes back fits."""
import sys

from windrow_client import AuthenticatedClient
from windrow_client import models as m
from windrow_client.api.access import create_token, list_tokens, revoke_token, whoami
from windrow_client.api.businesses import register_business, show_business
from windrow_client.api.failures import list_failures
from windrow_client.api.node import list_nodes, version
from windrow_client.api.tasks import change_task, create_task, list_tasks, show_task, task_revisions

url, token = sys.argv[1:3]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
called = 0


def call(operation, kind, *path, **more):
    """The answer, which is of this model."""
    global called
    answer = operation.sync_detailed(*path, client=client, **more)
    assert answer.status_code < 300 and isinstance(answer.parsed, kind), (operation.__name__, answer)
    called += 1
    return answer.parsed


assert call(whoami, m.Whoami).role == "admin"
assert call(version, m.Version).name == "windrow"
assert len(call(list_nodes, m.PageNode).items) == 1
register = m.RegisterBusiness.from_dict({"name": "push", "url": "http://127.0.0.1:9/"})
call(register_business, m.Business, body=register, check=m.RegisterBusinessCheck.SKIP)
assert call(show_business, m.Business, "push").name == "push"
wish = m.CreateTask.from_dict({"business": "push", "source": {"type": "range", "total": 10}, "rate": "5/s"})
task = call(create_task, m.Task, body=wish).id
assert call(show_task, m.Task, task).counts.pending == 10
changed = call(change_task, m.Task, task, body=m.EditTask.from_dict({"rate": "7/s", "reason": "try"}))
assert changed.rate == "7/s", changed
assert [one.id for one in call(list_tasks, m.PageTask, business="push").items] == [task]
assert len(call(task_revisions, m.PageAuditEntry, task).items) == 2
assert call(list_failures, m.PageFailure, task).items == []
made = call(create_token, m.Token, body=m.CreateToken.from_dict({"name": "ann", "role": "viewer"}))
assert any(one.name == "ann" for one in call(list_tokens, m.PageToken).items)
gone = revoke_token.sync_detailed(made.id, client=client)
assert gone.status_code == 204, gone
print(f"{called + 1} passed, 0 failed")
