"""Runs a program in a pseudo-terminal: rows, columns, program and arguments.

What comes in is typed, what the terminal shows goes out. Input that begins with a zero byte is "rows columns": the
window gets that size. The exit code is the program's.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))


def pass_on(terminal, inputs):
    """Passes one piece on, either way; false when the terminal is closed."""
    for ready in select.select(inputs, [], [])[0]:
        try:
            piece = os.read(ready, 65536)
        except OSError:  # the program has ended
            return False
        if ready == terminal:
            os.write(1, piece)
        elif not piece:
            inputs.remove(ready)
        elif piece[0] == 0:
            resize(terminal, *piece[1:].split())
        else:
            os.write(terminal, piece)
    return True


rows, columns, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
resize(terminal, rows, columns)
inputs = [0, terminal]
while pass_on(terminal, inputs):
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
