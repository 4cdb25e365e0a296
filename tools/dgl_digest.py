"""Print a digest of all that the tests of DGL depend on, or compare it with the one of their last success.

    python tools/dgl_digest.py            # `make test-dgl` writes it to tests/dgl.digest
    python tools/dgl_digest.py --check    # exit 0 if nothing has changed since

DGL is no longer released and needs an environment of 6 GB of its own. So `.ci/run` runs its tests only if something
that they depend on has changed; `make test` and `.ci/run --all` always do.
"""

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIGEST = ROOT / "tests" / "dgl.digest"
PATTERNS = (
    "python/fastpart/export/**/*.py",
    "python/fastpart/store/schemas.py",
    "python/fastpart/train/methods/distdgl/**/*.py",
    "rust/parts/**/*.rs",
    "tests/requirements-common.txt",
    "tests/requirements-dgl.txt",
    "tests/exported.py",
    "tests/test_export*.py",
    "tests/test_train_distdgl.py",
    "tests/test_train_machines.py",
    "tests/faults/test_train_deaths.py",
)


def digest() -> str:
    """Return the digest of all files, by their names and contents."""
    found = hashlib.sha256()
    for pattern in PATTERNS:
        files = sorted(ROOT.glob(pattern))
        if not files:
            raise SystemExit(
                f"tools/dgl_digest.py: nothing is called {pattern}. Name what has taken its place"
            )
        for file in files:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            found.update(f"{file.relative_to(ROOT).as_posix()} {content}\n".encode())
    return found.hexdigest()


def main() -> None:
    """Print the digest, or compare it."""
    if sys.argv[1:] == ["--check"]:
        known = DIGEST.read_text().strip() if DIGEST.is_file() else ""
        raise SystemExit(digest() != known)
    print(digest())


if __name__ == "__main__":
    main()
