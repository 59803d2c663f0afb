"""Starts the program of a job, as a script of its own: _launch.py PARENT LOCK SPOOL COMMAND…

The program ends with its parent, so that nothing runs on after `kill -9`. It begins when the program of a killed script
has saved its progress; only then are the rows put in place that the other one may still read.
"""

import ctypes
import fcntl
import os
import signal
import sys

parent, lock, spool, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() != int(parent):  # It ended before the line above.
    sys.exit(1)
held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(held, fcntl.LOCK_EX)
os.set_inheritable(held, True)
if spool:
    os.replace(spool + ".new", spool)
os.execv(command[0], command)
