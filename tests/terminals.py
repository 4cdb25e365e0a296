"""Processes whose stderr is a terminal."""

import os
import pty
import subprocess
import termios


def terminal(*command):
    """Run a command whose stderr is a terminal; return exit code, stdout and what the terminal got."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(ours, "rb", buffering=0) as shown_on:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = shown_on.read(4096)
            except OSError:  # what Linux answers when the other end is closed
                more = b""
            if not more:
                break
            shown += more
        out, _ = process.communicate(timeout=30)
    return process.returncode, out, shown
