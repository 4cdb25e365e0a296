"""One case of an attack: a changed file, all that reads it, and what is wrong with how that ends."""

import linecache
import os
import re
import shutil
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from catalogue import HERE, NEEDS_TORCH, SPECIMENS, WEIGHTS
from changes import change
from oracle import Noted, State, digest
from readers import Reader, Refused
from specimens import WITH_TORCH
from work_readers import READERS

import fastpart as fp

PACKAGE = str(Path(fp.__file__).parent)

INSIDE = re.compile(
    r"\b(Key|Index|Value|Attribute|Assertion|Recursion|UnicodeDecode|ZeroDivision|Overflow|Type|Lookup|EOF)Error\b"
    "|internal error"
)
"""What the text of a refusal by another process must not name."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with how a reader ended. ``what`` is short and the same for the same defect."""

    reader: str
    what: str
    where: str
    text: str


@dataclass(frozen=True)
class Case:
    """A changed file of a specimen. The number decides all. Those below 0 are the specimens without a change."""

    number: int
    specimen: str
    file: str
    told: str


class Attack:
    """The folders of an attack: ``pristine`` specimens, and ``work`` for the copy that is changed.

    ``which`` readers take part: "all", those that need "torch", or the "others".
    """

    def __init__(self, root: Path, which: str) -> None:
        self._which = which
        self.pristine, self.work, self.out = root / "pristine", root / "work", root / "work" / "out"
        self._whole: dict[tuple[str, str], tuple[str, set[str]] | None] = {}
        """What strict readers return and say of specimens without a change. None: it is not the same each time."""

    def changed(self, number: int) -> tuple[Case, Path] | None:
        """Make the case of a number: a fresh copy of a specimen with one change. None if that needs torch."""
        chance = Random(number)
        names = sorted(SPECIMENS)
        if number < 0:
            whole = names[-1 - number]
            return (
                (Case(number, whole, "", "unchanged"), self._copy(whole)) if self._is_there(whole) else None
            )
        specimen = chance.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
        if not self._is_there(specimen):
            return None
        folder = self._copy(specimen)
        files = sorted(file.relative_to(folder) for file in folder.rglob("*"))
        file = chance.choice(files)
        told = change(folder / file, chance, [folder / other for other in files if other != file])
        return Case(number, specimen, str(file), told), folder

    def _is_there(self, specimen: str) -> bool:
        return WITH_TORCH or specimen not in NEEDS_TORCH

    def _copy(self, specimen: str) -> Path:
        shutil.rmtree(self.work, ignore_errors=True)
        folder = self.work / specimen
        shutil.copytree(self.pristine / specimen, folder, copy_function=shutil.copyfile)
        if specimen in HERE:
            with warnings.catch_warnings(action="ignore"):
                HERE[specimen](folder)
        return folder

    def readers(self, case: Case) -> list[Reader]:
        """Return what reads the changed file. Those that take long take part in a share of the cases.

        What is unchanged is read by all, but those that take longest only where all readers take part.
        """
        chance = Random(f"readers {case.number}")
        of_kind = [r for r in READERS if self._which in ("all", "torch" if r.torch else "others")]
        if case.number < 0:
            least = 0 if self._which == "all" else 0.1
            return [r for r in of_kind if r.is_of(case.specimen) and r.share > least]
        return [r for r in of_kind if r.takes(case.specimen, case.file) and chance.random() < r.share]

    def run(self, number: int) -> Iterator[tuple[str, Any]]:
        """Yield the case, and of each of its readers the name when it begins, and how it ended."""
        made = self.changed(number)
        if made is None:
            return
        case, folder = made
        yield "case", case
        fresh = True
        for reader in sorted(self.readers(case), key=lambda reader: reader.in_place):
            if not fresh:
                self.changed(number)
            yield "begin", reader.name
            yield "end", self._read(reader, case, folder)
            fresh = not reader.in_place

    def _read(self, reader: Reader, case: Case, folder: Path) -> Problem | str:
        """Return how a reader ended: what is wrong, "refused" or "read"."""
        whole = self._of_whole(reader, case) if reader.strict and case.number >= 0 else None
        others = [self.pristine, *([] if reader.in_place else [folder])]
        before = State(others)
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        unnoticed = reader.name == "verified" and self._is_content_changed(case, folder)
        value, error, said = self._ends(reader, folder)
        if written := before.changed(State(others)):
            return Problem(reader.name, "writes outside of its output", case.file, "\n".join(written))
        if error is not None:
            if case.number < 0:
                text = "".join(traceback.format_exception(error))
                return Problem(reader.name, "refused without a change", "", text)
            return problem(reader.name, error) or self._leftovers(reader) or "refused"
        if unnoticed:
            return Problem(reader.name, "a change that verify does not notice", case.file, case.told)
        if whole is not None and not said - whole[1] and digest(value) != whole[0]:
            where = f"{case.specimen}/{case.file}"
            return Problem(reader.name, "a change of the result that nothing notices", where, case.told)
        return self._leftovers(reader) or "read"

    def _ends(self, reader: Reader, folder: Path) -> tuple[Any, BaseException | None, set[str]]:
        """Return what a reader returned, what it raised, and what it said."""
        with Noted() as noted, fp.config(threads=2):
            try:
                value, error = reader.read(folder, self.out), None
            except BaseException as raised:
                value, error = None, raised
        return value, error, noted.said

    def _of_whole(self, reader: Reader, case: Case) -> tuple[str, set[str]] | None:
        """Return what a reader returns and says of the specimen without a change. The change is made anew."""
        key = case.specimen, reader.name
        if key not in self._whole:
            found = []
            for _ in range(2):
                folder = self._copy(case.specimen)
                self.out.mkdir()
                value, error, said = self._ends(reader, folder)
                if error is not None:
                    raise error
                found.append((digest(value), said))
            self._whole[key] = found[0] if found[0][0] == found[1][0] else None
            self.changed(case.number)
        return self._whole[key]

    def _leftovers(self, reader: Reader) -> Problem | None:
        left = [name for name in os.listdir(self.out) if name.startswith(".")]
        return Problem(reader.name, "temporary files are left", str(left), "") if left else None

    def _is_content_changed(self, case: Case, folder: Path) -> bool:
        """Return whether any file of the directory differs from what was saved."""
        before, after = self.pristine / case.specimen / "parts", folder / "parts"
        return any(
            not (after / file.relative_to(before)).is_file()
            or (after / file.relative_to(before)).read_bytes() != file.read_bytes()
            for file in before.rglob("*")
            if file.is_file()
        )


def problem(reader: str, error: BaseException) -> Problem | None:
    """Return what is wrong with an exception, if it is none that is documented."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    last = ours[-1] if ours else frames[-1]
    where = f"{last.filename.removeprefix(PACKAGE + '/')}:{last.lineno} {last.name}"
    wrong = _wrong(error, frames[-1] is last, last)
    if wrong is None:
        return None
    text = "".join(traceback.format_exception(error, limit=-6))
    return Problem(reader, wrong, where, text[-3000:])


def _wrong(error: BaseException, raised_by_us: bool, last: traceback.FrameSummary) -> str | None:
    name = type(error).__name__
    text = str(error)
    match error:
        case Refused():
            return (
                "an internal error of a command" if "internal error" in text or "Traceback" in text else None
            )
        case fp.errors.TrainingError():
            inside = INSIDE.search(text)
            return f"{inside[0]} in another process" if inside else None
        case fp.errors.InternalError():
            return name
        case fp.FastpartError():
            return None
        case OSError():
            return None if error.filename is not None or "/" in text else f"{name} without a path"
        case ModuleNotFoundError():
            return None
        case TypeError():
            line = linecache.getline(last.filename, last.lineno or 0)
            deliberate = raised_by_us and ("raise" in line or "_core" in line or "expected" in text)
            return None if deliberate else name
    return name
