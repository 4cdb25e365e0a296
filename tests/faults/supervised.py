"""What the tests of the supervisor let it start: ``python -m supervised WHAT``."""

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

from fastpart.runtime.reporting import FAILED, PARENT, RUN, Reports, run


def main(reports: Reports) -> None:
    what = sys.argv[1]
    if what == "never ready":
        time.sleep(1000)
    if "RUN" in os.environ:
        Path(f"/dev/shm/{os.environ['RUN']}-{os.getpid()}").write_text("x")
    (Path(os.environ["TMPDIR"]) / "temporary").write_text("x")
    reports.ready()
    if what == "works a second":
        time.sleep(1)
    if what == "works aloud":
        print("one\ntwo")
        print("no end", end="")
        warnings.warn("beware", stacklevel=1)
        print("an error", file=sys.stderr)
    if what == "describes itself":
        environment = {name: value for name, value in os.environ.items() if name not in (RUN, PARENT)}
        path = [os.path.realpath(each) for each in sys.path]
        own = {"parent": os.getppid(), "tmp": environment.pop("TMPDIR"), "path": path, "words": sys.argv[1:]}
        masks = {name: signal.getsignal(name).__class__.__name__ for name in (signal.SIGCHLD, signal.SIGINT)}
        files = sorted(os.readlink(f"/proc/self/fd/{i}")[:4] for i in range(3))
        state = {"folder": os.getcwd(), "signals": list(masks.values()), "files": files}
        state["limits"] = [resource.getrlimit(resource.RLIMIT_NOFILE), [*os.sched_getaffinity(0)]]
        reports.send("found", {"environment": environment, **own, **state, "name": __name__})
        reports.done()
    if what == "draws":
        import random

        reports.send("found", random.random())
        reports.done()
    if what.startswith("works"):
        reports.send("found", {"answer": 42})
        reports.done()
    elif what in ("describes itself", "draws"):
        pass
    elif what == "waits in vain":
        time.sleep(0.5)
        reports.send(FAILED, [True, time.monotonic()])
        os._exit(1)
    elif what == "fails":
        print("\n".join(f"line {i}" for i in range(10_000)), file=sys.stderr)
        raise ValueError("no such thing")
    elif what == "leaves early":
        pass
    elif what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        if what == "is stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if what == "has children":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            reports.send("child", child.pid)
        reports.send("pid", os.getpid())
        time.sleep(1000)


if __name__ == "__main__":
    if sys.argv[1] == "hangs while it starts":
        time.sleep(1000)
    run(main)
