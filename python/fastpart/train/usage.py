"""Memory of this process."""

from __future__ import annotations

from pathlib import Path


def anonymous_bytes() -> int:
    """Return the anonymous memory. Mapped files do not count, because the kernel can reclaim them."""
    return _of_status("RssAnon")


def peak_bytes() -> int:
    """Return the peak of resident memory, including mapped files."""
    return _of_status("VmHWM")


def _of_status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
