"""``llms.txt`` at the root of the site: what fastpart is, all calls, and all pages, for programs that read text.

The build of the site writes it, from the pages and the docstrings. The form is that of llmstxt.org.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import fastpart as fp
from fastpart import Options

RULES = """\
- A graph is what `fp.open_graph` takes: a path of edges in any format, an array of shape (m, 2), a frame, a graph of
  networkx, PyG, DGL or OGB. Every function takes it directly.
- Vertices are 0 to n-1. Text, gaps and several types: `fp.ingest`, and `fp.store.restore` brings the ids back.
- `p = fp.partition(graph, k)`; `p.assignment` has the part of each vertex, `p.evaluate()` the measures.
- `p.save("parts", features=, labels=, splits=)` writes the directory that training, loaders and exports read.
- Results depend on the graph, the parameters and the seed, never on the number of threads.
- Errors name the parameter or the file, and the remedy.
- All calls below that do work also take `threads`, `tmp_dir`, `progress` and `memory_limit`.
- The shell has the same: `fastpart VERB --help`."""

OF_ALL = (*Options.__annotations__, "options")
"""Parameters that hardly any call lacks."""


def text(docs: Path) -> str:
    """Return the file, for a folder of sources."""
    index, readme = ((docs / name).read_text() for name in ("index.md", "../README.md"))
    example = re.search(r"^```python\n.*?^```$", readme, re.M | re.S)[0]
    calls = "\n".join(f"- `{signature}`: {line}" for signature, line in functions())
    chapters = "\n\n".join(
        f"## {caption}\n\n" + "\n".join(entry(docs, page) for page in pages) for caption, pages in tree(index)
    )
    return f"# fastpart\n\n> {opening(readme)}\n\n{example}\n\n{RULES}\n\n## Calls\n\n{calls}\n\n{chapters}\n"


def functions() -> Iterator[tuple[str, str]]:
    """Yield each public function with the names of its parameters, and the first line of its docs. Needs torch."""
    seen = set()
    for module in (fp, fp.algorithms, fp.datasets, fp.generate, fp.train, fp.export):
        place = module.__name__.replace("fastpart", "fp")
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.isroutine(value) and value not in seen:
                seen.add(value)
                names = [each for each in inspect.signature(value).parameters if each not in OF_ALL]
                line = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", inspect.getdoc(value).partition("\n")[0])
                yield f"{place}.{name}({', '.join(names)})", line


def tree(index: str) -> list[tuple[str, list[str]]]:
    """Return the chapters of the site with their pages, as the tables of contents list them."""
    return [
        (caption, [re.sub(r".*<(.*)>", r"\1", line) for line in pages.strip().splitlines()])
        for caption, pages in re.findall(r"^:caption: ([^\n]*)\n\n(.*?)^```$", index, re.M | re.S)
    ]


def entry(docs: Path, page: str) -> str:
    """Return the line of a page: its title, its address, and what one can do after it."""
    source = (docs / f"{page}.md").read_text()
    title = re.search(r"^# (.*)$", source, re.M)[1]
    return f"- [{title}]({page}.html): {opening(source)}".removesuffix(": ")


def opening(source: str) -> str:
    """Return the first sentence below the title, without links. Empty if the page begins with something else."""
    first = re.search(r"^# .*\n\n((?:[A-Za-z].*\n)+)", source, re.M)
    if not first:
        return ""
    paragraph = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first[1].split()))
    return re.split(r"(?<=\.) ", paragraph)[0]
