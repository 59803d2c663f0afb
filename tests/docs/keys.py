"""keys.py KEYS COMMAND: runs a command on a terminal of 100 columns, prints what it shows there, and presses keys: of the
words of KEYS, one character is a key, a longer one is a text to wait for first, with _ for blanks. Ends as the command did."""
import fcntl, os, pty, struct, sys, termios

keys = [key.replace("_", " ") for key in sys.argv[1].split()]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    os.execvp("bash", ["bash", "-c", sys.argv[2]])
shown = ""
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:  # Linux: the program has closed it
        break
    if not data:
        break
    shown += data.decode(errors="replace")
    sys.stdout.write(data.decode(errors="replace"))
    sys.stdout.flush()
    while keys and (len(keys[0]) == 1 or keys[0] in shown):
        key = keys.pop(0)
        if len(key) == 1:
            os.write(terminal, key.encode())
            shown = ""  # what is awaited next has to come after it
if keys:
    sys.exit(f"never shown: {keys[0]}")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
