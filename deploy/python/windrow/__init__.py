"""Calls a function once per row, at exactly the rate you set. Crash, stop, resume: nothing is lost.

`run` calls a function of this process, `worker` makes it a worker for `windrow run`, `Client` controls the tasks of a
node, and `verify` checks the signature of a call.
"""

from ._call import Fail, Item, Retry, Skip, current
from ._client import Client, Problem
from ._job import Failure, Job, JobError, Result, run
from ._verify import verify
from ._worker import worker

__all__ = ["Client", "Fail", "Failure", "Item", "Job", "JobError", "Problem", "Result", "Retry", "Skip", "current",
           "run", "verify", "worker"]
