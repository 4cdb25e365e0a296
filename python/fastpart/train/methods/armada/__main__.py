"""The processes without torch: ``python -m fastpart.train.methods.armada ROLE SETTINGS.json WHICH``.

The role is "batch_worker", of which the rest says the number, or "receiver", of which it says the address.
"""

import sys
from pathlib import Path

from ....runtime.reporting import Reports, run


def main(reports: Reports) -> None:
    """Be a batch worker or a receiver."""
    # As if it were not installed: it takes seconds to import, and hundreds of megabytes.
    sys.modules["torch"] = None  # type: ignore[assignment]
    from . import batch_worker, receiver

    role, file, which = sys.argv[1:]
    if role == "receiver":
        receiver.work(reports, Path(file), which)
    else:
        batch_worker.work(reports, Path(file), int(which))


if __name__ == "__main__":
    run(main)
