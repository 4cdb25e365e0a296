"""Put links, pipes, devices and folders in the place of all files that commands read or write. Print what goes wrong.

planted.py [--command TEXT] [--jobs 1] [--no-torch]

The files are found by running each command once. Every case must end within 10 s (30 s with torch), with success or
with one line that says why not, and leave the user's own files as they were.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attack"))

from plants import Child, Refused, numbers
from verbs import COMMANDS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", default="", help="only commands with this text")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-torch", action="store_true")
    given = parser.parse_args()
    wanted = [number for number in numbers(not given.no_torch) if given.command in COMMANDS[number].name]
    done, began = Counter[str](), time.monotonic()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:

        def run(job: int) -> None:
            child = Child(Path(folder, f"job{job}"), torch=not given.no_torch)
            for number in wanted[job :: given.jobs]:
                try:
                    cases = child.cases(number)
                except Refused as error:
                    wrong.append(str(error))
                    print(error, flush=True)
                    continue
                for case in cases:
                    done[COMMANDS[number].name] += 1
                    if told := child.wrong(case):
                        wrong.append(str(case))
                        print(f"{case}\n  {told}", flush=True)
            child.close()

        threads = [threading.Thread(target=run, args=(job,)) for job in range(given.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name, count in done.items():
        print(f"{count:6} {name}")
    print(f"{sum(done.values())} cases in {time.monotonic() - began:.0f} s, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
