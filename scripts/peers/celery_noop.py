"""The application that Celery serves; it is read by the process that enqueues and by the worker."""

import os

import celery
from celery.signals import worker_ready

app = celery.Celery("celery_noop", broker=os.environ["REDIS_URL"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=1000, worker_hijack_root_logger=False)


@app.task
def noop(_index: int) -> None:
    pass


@worker_ready.connect
def tell_ready(**_told) -> None:
    with app.connection_for_write() as connection:
        connection.default_channel.client.set("ready", 1)
