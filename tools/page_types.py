"""Check the types of the Python code of README and docs by mypy and pyright: ``python tools/page_types.py [PAGE...]``.

Each page becomes a module whose lines are those of the page, so that an error names page and line. Pages show pieces of
programs. Names that a page does not define have any type, a name may get another type in the next piece, and what may
be None is taken to be there. pyright also reads ``tests/typed.py``, which says what checkers accept and refuse.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

TYPED = ROOT / "tests" / "typed.py"

FENCE = re.compile(r"^(?P<indent> *)```(?:python|\{code-(?:cell|block)\} (?:ipython3|python))$")

NAMES = "import fastpart as fp, numpy as np"
"""The imports of all pages. They take the place of the first line, which is never code."""

MYPY = (
    "# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-any-generics, "
    "no-strict-optional, allow-redefinition, "
    'disable-error-code="name-defined, no-redef, no-any-return, misc, unused-ignore, import-not-found, method-assign"'
)
"""Options of mypy for a page, in its module. So the others are those of the package, and its cache is used."""

EXPANDED = 'incompatible type "**dict['
"""An error of mypy about a dictionary of arguments. It takes all entries for one type."""

PYRIGHT = {
    "pythonVersion": "3.11",
    "reportMissingImports": False,
    "reportUndefinedVariable": False,
    "reportInvalidTypeForm": False,
    "reportRedeclaration": False,
    "reportPossiblyUnbound": False,
    "reportUnboundVariable": False,
    "reportOptionalIterable": False,
    "reportOptionalMemberAccess": False,
    "reportOptionalOperand": False,
    "reportOptionalSubscript": False,
}


def pages() -> list[Path]:
    """Return the pages that may have code."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def module_of(page: str) -> str | None:
    """Return the code of a page in the lines where it stands. None if there is none."""
    lines = page.splitlines()
    code = [""] * len(lines)
    for first, last in _fences(lines):
        text = textwrap.dedent("\n".join(lines[first:last]))
        code[first:last] = [re.sub(r"^(\s*)[%!:].*", r"\1pass", line) for line in text.split("\n")]
    if not any(code):
        return None
    return "\n".join([NAMES, *code[1:], MYPY, ""])


def _fences(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of the code of each fence, and the line behind it."""
    begun, end = None, ""
    for number, line in enumerate(lines):
        if begun is None and (found := FENCE.match(line)):
            begun, end = number + 1, f"{found['indent']}```"
        elif begun is not None and line == end:
            if begun < number and not lines[begun].startswith("%%"):  # the cell of a shell
                yield begun, number
            begun = None


def written(folder: Path, chosen: Sequence[Path]) -> dict[str, Path]:
    """Write the modules of pages to a folder, and return the page of each by its name."""
    modules = {}
    for page in chosen:
        code = page.read_text() if page.suffix == ".py" else module_of(page.read_text())
        if code is not None:
            name = f"page_{len(modules)}.py"
            (folder / name).write_text(code)
            modules[name] = page
    return modules


def of_mypy(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield module, line and text of each error of mypy, with the options and the cache of the package."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--no-pretty",
            "--no-error-summary",
            *(str(folder / name) for name in names),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    every = list(re.finditer(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", done.stdout, re.MULTILINE))
    if done.returncode and not every:
        raise SystemExit(done.stdout + done.stderr)
    yield from ((each[1], int(each[2]), each[3]) for each in every if EXPANDED not in each[3])


def of_pyright(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield module, line and text of each error of pyright."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": [*names], **PYRIGHT}))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pyright",
            "--outputjson",
            "--pythonpath",
            sys.executable,
            "--project",
            str(folder),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["generalDiagnostics"]
    except ValueError:
        raise SystemExit(done.stdout + done.stderr) from None
    for each in found:
        if each["severity"] == "error":
            line, text = each["range"]["start"]["line"] + 1, each["message"].replace("\n", " ")
            yield Path(each["file"]).name, line, f"{text} ({each.get('rule', 'syntax')})"


def errors(chosen: Sequence[Path]) -> list[str]:
    """Return a line for each error of either checker: page, line, checker and text."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        modules = written(folder, chosen)
        told = [
            (modules[name], line, checker, text)
            for checker, found in (("mypy", of_mypy), ("pyright", of_pyright))
            for name, line, text in found(folder, [*modules])
        ]
    shown = {page: page.relative_to(ROOT) if page.is_relative_to(ROOT) else page for page in modules.values()}
    return [f"{shown[page]}:{line}: {checker}: {text}" for page, line, checker, text in sorted(told)]


def main() -> None:
    """Print the errors, and fail if there are any."""
    given = [Path(each).resolve() for each in sys.argv[1:]]
    if found := errors(given or [*pages(), TYPED]):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
