"""What this process uses."""

from __future__ import annotations

from pathlib import Path


def anonymous_bytes() -> int:
    """Return the anonymous memory: mapped files are the kernel's to give and take."""
    return _of_status("RssAnon")


def peak_bytes() -> int:
    """Return the most memory that this process ever had, with the files that it had mapped."""
    return _of_status("VmHWM")


def _of_status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
