"""Find sentences for which the rules of ``prose.toml`` know better words.

    python tools/prose.py            fails if a file has more such sentences than the baseline allows, and names them
    python tools/prose.py PATH...    names all of these files and folders
    python tools/prose.py --shrink   writes the baseline again, after sentences were improved or files were renamed
    python tools/prose.py --wrap     wraps the comments of Rust again that have lines of more than 110 columns

``prose-baseline.json`` counts by file and rule what is still to be improved. It only shrinks: ``--shrink`` refuses to
raise the sum of a rule, and the check also fails while the baseline allows more than there is.
"""

import json
import re
import sys
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RULES = Path(__file__).with_suffix(".toml")
BASELINE = Path(__file__).with_name("prose-baseline.json")

PLACES = {
    ".md": ["docs", "CONTRIBUTING.md", "README.md", "SECURITY.md"],
    ".py": ["python", "tools"],
    ".rs": ["rust"],
}
"""Files and folders with prose, by suffix."""

SCOPES = {".md": "docs", ".py": "python", ".rs": "rust"}
"""The scope of docs and comments, by suffix. Literals are ``messages``."""

TOKENS = {
    ".py": re.compile(
        r"""(?P<comments>(?:^[ \t]*\#[^\n]*\n)+|\#[^\n]*)
        |(?P<docs>(?<=\n)[ \t]*[rf]?\"{3}(?:[^\\]|\\.)*?\"{3}|\A\"{3}.*?\"{3})
        |(?P<message>\"{3}(?:[^\\]|\\.)*?\"{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
        re.VERBOSE | re.DOTALL | re.MULTILINE,
    ),
    ".rs": re.compile(
        r"""(?P<comments>(?:^[ \t]*//[^\n]*\n)+|//[^\n]*)
        |'(?:\\[^\n]|[^\\'\n])'
        |r(?P<hashes>\#+)".*?"(?P=hashes)
        |(?P<message>"(?:[^"\\]|\\.)*")""",
        re.VERBOSE | re.DOTALL | re.MULTILINE,
    ),
}
"""The parts of a source that hold prose, or a quote that begins no literal."""

MARK = re.compile(r"[ \t]*(//[/!]?|#+)[ \t]?")
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod tests", re.MULTILINE)
PARAGRAPH = re.compile(r"\s*([-*+] |\d+\. |[|#]|>>>|\.\.\.|:\w+)")
"""The beginning of a line that no other line is joined to."""

FENCE = re.compile(r"\s*(```|~~~)")
WORDS = 4
"""Fewest words of a literal that is read as prose."""

COLUMNS = 110
"""Most columns of a wrapped comment."""

COMMENT = re.compile(r"(\s*//[/!]? )(\s*)((?:[-*+]|\d+\.) +)?(\S.*)")
PIECE = re.compile(r"(?:``[^`]*``|`[^`]{,60}`|\S)+")
"""A word, or code of several words that stays on one line."""

STICKY = re.compile(r"[-+*#|>=]+$|\d+\.$")
"""A word that would have another meaning at the beginning of a line."""

Lines = list[tuple[int, str]]
"""The lines of a text and their numbers in the source."""


class Rule(NamedTuple):
    """A pattern, and what to write instead."""

    name: str
    pattern: re.Pattern[str]
    scope: list[str]
    better: str
    bad: list[str]
    good: list[str]
    lines: bool = False


class Hit(NamedTuple):
    """A sentence for which a rule knows better words."""

    file: str
    line: int
    rule: str
    text: str
    better: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}\n    {self.rule}: {self.better}"


def read_rules() -> list[Rule]:
    """Return all rules."""
    described = tomllib.loads(RULES.read_text(encoding="utf-8"))
    return [
        Rule(name, re.compile(pattern, re.MULTILINE), **rest)
        for name, each in described.items()
        for pattern, rest in [(each["pattern"], {key: each[key] for key in each if key != "pattern"})]
    ]


def texts(suffix: str, source: str) -> Iterator[tuple[str, Lines]]:
    """Yield the texts of a source with their scopes: a page, a docstring, a run of comments or a literal."""
    scope = SCOPES[suffix]
    if suffix == ".md":
        yield scope, list(enumerate(source.splitlines(), 1))
        return
    tests = TESTS.search(source)
    end = tests.start() if tests else len(source)
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    message: Lines = []
    behind = 0
    for token in TOKENS[suffix].finditer(source):
        first = bisect_right(starts, token.start())
        lines = list(enumerate(token[0].splitlines(), first))
        if message and (token.lastgroup != "message" or source[behind : token.start()].strip(" \n\tfr")):
            yield "messages", message
            message = []
        if token.lastgroup == "comments":
            marked = [(number, line, MARK.match(line)) for number, line in lines]
            for _, run in groupby(marked, lambda each: each[2] and each[2][1]):
                yield scope, [(number, line[mark.end() :]) for number, line, mark in run if mark]
        elif token.lastgroup == "docs":
            yield scope, [(number, line.replace('"""', "")) for number, line in lines]
        elif token.lastgroup == "message" and token.start() < end:
            message += [(number, line.strip("\"'\\")) for number, line in lines]
            behind = token.end()
    if message:
        yield "messages", message


def joined(lines: Lines) -> tuple[str, list[int]]:
    """Return a text with one line per paragraph, without blocks of code, and where each line of the source begins."""
    pieces: list[str] = []
    starts: list[int] = []
    length, fenced, apart = 0, False, True
    for _, line in lines:
        starts.append(length)
        fence = FENCE.match(line)
        fenced ^= fence is not None
        if fence or fenced or not line.strip():
            apart = True
            continue
        alone = PARAGRAPH.match(line)
        between = "" if not pieces else "\n" if apart or alone else " "
        pieces.append(between + " ".join(line.split()))
        starts[-1] += len(between)
        length += len(pieces[-1])
        apart = line.lstrip().startswith(("|", "#", ">>>"))
    return "".join(pieces), starts


def hits_of(rules: Iterable[Rule], file: str, source: str) -> Iterator[Hit]:
    """Yield what rules find in the source of a file."""
    rules = list(rules)
    suffix = Path(file).suffix
    for scope, lines in texts(suffix, source):
        text, starts = joined(lines)
        if scope == "messages" and text.count(" ") < WORDS - 1:
            continue
        for rule in rules:
            if scope in rule.scope and not rule.lines:
                for match in rule.pattern.finditer(text):
                    number, _ = lines[bisect_right(starts, match.start()) - 1]
                    yield Hit(file, number, rule.name, sentence(text, match), rule.better)
    for rule in rules:
        if rule.lines and SCOPES[suffix] in rule.scope:
            for number, line in enumerate(source.splitlines(), 1):
                if rule.pattern.search(line):
                    yield Hit(file, number, rule.name, line.strip(), rule.better)


def sentence(text: str, match: re.Match[str]) -> str:
    """Return the sentence of a paragraph that a match begins in."""
    begin = max(text.rfind("\n", 0, match.start()) + 1, text.rfind(". ", 0, match.start() + 1) + 2)
    begin = 0 if begin == 1 else begin
    ends = [at + 1 for at in (text.find(". ", match.end() - 1), text.find("\n", match.end()) - 1) if at >= 0]
    return text[begin : min(ends, default=len(text))]


def wrapped(source: str) -> str:
    """Return the source of a Rust file without long lines of prose: paragraphs that have one are wrapped again."""
    paragraphs: list[tuple[str, list[str]]] = []
    fenced = False
    for line in source.split("\n"):
        match = COMMENT.fullmatch(line)
        fence = match is not None and FENCE.match(match[4]) is not None
        fenced = match is not None and fenced ^ fence
        if match is None or fence or fenced or match[4].startswith(("|", "#", ">>>", "---", "===")):
            paragraphs.append(("", [line]))
            continue
        margin = match[1] + match[2] + " " * len(match[3] or "")
        if match[3] or not paragraphs or paragraphs[-1][0] != margin:
            paragraphs.append((margin, []))
        paragraphs[-1][1].append(line)
    return "\n".join(chain.from_iterable(_wrapped(*each) for each in paragraphs))


def _wrapped(margin: str, lines: list[str]) -> Iterator[str]:
    if not margin or max(map(len, lines)) <= COLUMNS:
        yield from lines
        return
    pieces: list[str] = []
    for piece in PIECE.findall(" ".join(line[len(margin) :] for line in lines)):
        if pieces and STICKY.match(piece):
            pieces[-1] += " " + piece
        else:
            pieces.append(piece)
    line = lines[0][: len(margin)] + pieces[0]
    for piece in pieces[1:]:
        if len(line) + 1 + len(piece) > COLUMNS:
            yield line
            line = margin + piece
        else:
            line += " " + piece
    yield line


def files() -> list[Path]:
    """Return all files with prose."""
    return sorted(
        chain.from_iterable(_in(suffix, ROOT / place) for suffix in PLACES for place in PLACES[suffix])
    )


def _in(suffix: str, place: Path) -> Iterable[Path]:
    return [place] if place.is_file() else place.rglob(f"*{suffix}")


def find(paths: Iterable[Path]) -> list[Hit]:
    """Return what all rules find in files."""
    rules = read_rules()
    return [
        hit
        for path in paths
        for hit in hits_of(rules, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]


Counts = dict[str, dict[str, int]]
"""Numbers of hits, by file and rule."""


def counted(hits: Iterable[Hit]) -> Counts:
    """Return how many hits there are, by file and rule."""
    counts: Counts = {}
    for (file, rule), count in sorted(Counter((hit.file, hit.rule) for hit in hits).items()):
        counts.setdefault(file, {})[rule] = count
    return counts


def read_baseline() -> Counts:
    """Return the baseline."""
    baseline: Counts = json.loads(BASELINE.read_text(encoding="utf-8"))
    return baseline


def beyond(hits: Iterable[Hit], baseline: Counts) -> list[Hit]:
    """Return all hits of the files and rules that have more than the baseline allows."""
    hits = list(hits)
    counts = counted(hits)
    return [hit for hit in hits if counts[hit.file][hit.rule] > baseline.get(hit.file, {}).get(hit.rule, 0)]


def shrunk(baseline: Counts, counts: Counts) -> Counts:
    """Return the new baseline, or raise ``ValueError`` if a rule would have a larger sum."""
    before, after = (sums(each) for each in (baseline, counts))
    if more := [f"{rule}: {after[rule]} > {before[rule]}" for rule in after if after[rule] > before[rule]]:
        raise ValueError("the baseline only shrinks, and there are new sentences. " + ", ".join(more))
    return counts


def sums(counts: Counts) -> Counter[str]:
    """Return how many hits each rule has in all files."""
    total: Counter[str] = Counter()
    for each in counts.values():
        total.update(each)
    return total


def main(words: list[str]) -> int:
    """Run the check."""
    if words == ["--wrap"]:
        for path in files():
            if (
                path.suffix == ".rs"
                and (text := wrapped(source := path.read_text(encoding="utf-8"))) != source
            ):
                path.write_text(text, encoding="utf-8")
        return 0
    if words and words != ["--shrink"]:
        paths = [Path(word).resolve() for word in words]
        hits = find(path for path in files() if any(path.is_relative_to(each) for each in paths))
        print(*hits, sep="\n")
        return 0
    hits = find(files())
    baseline, counts = read_baseline(), counted(hits)
    if words:
        try:
            counts = shrunk(baseline, counts)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        lines = ",\n".join(f"{json.dumps(file)}: {json.dumps(each)}" for file, each in counts.items())
        BASELINE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    elif more := beyond(hits, baseline):
        print(*more, sep="\n")
        print(
            f"{len(more)} sentences in files that have more of their kind than tools/{BASELINE.name} allows"
        )
        return 1
    elif counts != baseline:
        print("fewer sentences than before: run `python tools/prose.py --shrink`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
