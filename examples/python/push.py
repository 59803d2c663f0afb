# python3 examples/python/push.py: sends 200 rows at 25/s; Ctrl-C or kill -9 stops it, the same command resumes
import windrow


async def push(row):
    if not row["token"]:
        raise windrow.Skip
    if row["token"].startswith("expired-"):
        raise windrow.Fail("TOKEN_EXPIRED", row["token"])
    return f"pushed to {row['user_id']} as {windrow.current().key}"


job = windrow.run("examples/data/users.csv", push, name="push", rate="25/s")
for result in job:
    print(result.index, result.output)
print(f"{job.succeeded} succeeded, {job.skipped} skipped, {job.failed} failed")
for failure in job.failures():
    print(failure.index, failure.code, failure.row["user_id"])
