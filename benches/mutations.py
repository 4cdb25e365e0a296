"""Change files that fastpart reads, and print what crashes, hangs, or is refused by no named exception.

mutations.py [--cases 10000] [--first 0] [--case NUMBER] [--keep FOLDER] [--jobs 1] [--readers all]

A case is a number: it decides which file is changed and how. ``--case NUMBER`` makes one again and says all about it.
What needs torch runs where torch is installed.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attack"))

from attempts import Outcome, outcomes


class Report:
    """Counts of cases, and an example of each kind of problem."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()
        self.problems: dict[tuple[str, str], list[tuple[Outcome, dict[str, str]]]] = {}
        self._lock = threading.Lock()

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            self.files[outcome.specimen] += 1
            self.reads["read"] += outcome.read
            self.reads["refused"] += outcome.refused
            self.reads["wrong"] += len(outcome.problems)
            for found in outcome.problems:
                self.problems.setdefault((found["what"], found["where"]), []).append((outcome, found))
                print(
                    f"case {outcome.number}: {outcome.specimen}/{outcome.file}: {outcome.told}: "
                    f"{found['reader']}: {found['what']} at {found['where']}",
                    flush=True,
                )

    def print(self, seconds: float) -> None:
        for (what, where), found in sorted(self.problems.items(), key=lambda item: -len(item[1])):
            outcome, first = found[0]
            readers = ", ".join(sorted({one["reader"] for _, one in found}))
            print(f"\n== {len(found)} times {what} at {where} (by {readers})")
            print(f"case {outcome.number}: {outcome.specimen}/{outcome.file}: {outcome.told}")
            print(first["text"])
        print(f"\n{sum(self.files.values())} cases in {seconds:.0f} s: {dict(self.reads)}")
        print(dict(sorted(self.files.items())))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--keep", type=Path, help="folder of the specimens and of the changed copy; kept")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--readers", choices=("all", "torch", "others"), default="all")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.cases) if given.case is None else [given.case]
    report, began = Report(), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        roots = [Path(given.keep or temporary, f"job{job}") for job in range(given.jobs)]
        threads = [
            threading.Thread(target=_attack, args=(root, numbers[job :: given.jobs], given.readers, report))
            for job, root in enumerate(roots)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report.print(time.monotonic() - began)
    sys.exit(bool(report.problems))


def _attack(root: Path, numbers: range | list[int], which: str, report: Report) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes(root, numbers, which):
        report.add(outcome)


if __name__ == "__main__":
    main()
