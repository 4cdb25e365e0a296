"""Who imports whom in a Python package or a Rust crate, and what that breaks: the order of units, or freedom of cycles.

A tree is the modules by their dotted names, the root by the empty one, and the arrows between them.
"""

import ast
import re
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import NamedTuple


class Arrow(NamedTuple):
    """An import: the module that has it, the module that it names, what of that, and the function that it stands in."""

    source: str
    target: str
    symbol: str
    function: str = ""


@dataclass
class Tree:
    """Modules and their imports.

    ``parents`` says whether a module and its own children may name each other, as in Rust, where a module declares and
    exports its children.
    """

    root: Path
    parents: bool
    files: dict[str, Path] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)

    def add(self, source, target, symbol, function=""):
        if source != target:
            self.arrows.append(Arrow(source, target, symbol, function))

    def told(self, arrow):
        source, target = (self.files[end].relative_to(self.root) for end in arrow[:2])
        where = f", {arrow.function}" if arrow.function else ""
        return f"{source}{where} -> {target}: {arrow.symbol or 'itself'}"

    def without(self, told):
        """Return the tree without some of its arrows."""
        arrows = [arrow for arrow in self.arrows if self.told(arrow) not in told]
        return replace(self, arrows=arrows)


def joined(module, name):
    return f"{module}.{name}" if module else name


def parent(module):
    return module.rpartition(".")[0]


# What is refused.


def against_the_order(tree, units):
    """Return modules without a unit, and arrows that do not lead down.

    ``units`` has one line per layer, the lowest first; commas separate its units, which do not import each other, and a
    unit is one or several modules, which may. The root is above all.
    """
    layers = [line.split(",") for line in units.strip().split("\n")]
    unit_of = {
        module: (level, number)
        for level, layer in enumerate(layers)
        for number, unit in enumerate(layer)
        for module in unit.split()
    }
    tops = {module for module in tree.files if module and "." not in module}
    wrong = [
        f"{tree.files[module].relative_to(tree.root)}: no unit" for module in sorted(tops - set(unit_of))
    ]
    wrong += [f"{module}: a unit without a module" for module in sorted(set(unit_of) - tops)]
    unit_of[""] = (len(layers), 0)
    for arrow in tree.arrows:
        source, target = (unit_of.get(end.partition(".")[0]) for end in arrow[:2])
        if source and target and source != target and target[0] >= source[0]:
            wrong.append(tree.told(arrow))
    return wrong


def within(tree, unit):
    """Return the modules of a unit, by their names in it, and their imports of each other."""
    start = f"{unit}."
    inside = Tree(tree.root, tree.parents)
    inside.files = {
        name.removeprefix(start): file for name, file in tree.files.items() if name.startswith(start)
    }
    inside.files[""] = tree.files[unit]
    for source, target, symbol, function in tree.arrows:
        if source.startswith(start) and f"{target}.".startswith(start):
            inside.add(
                source.removeprefix(start),
                target.removeprefix(start) if target != unit else "",
                symbol,
                function,
            )
    return inside


def cycles(tree):
    """Return the arrows of a cycle among the children of each module; where there is none, files make none, either."""
    found = []
    for folder in sorted({parent(module) for module in tree.files if module}):
        between = {}
        for arrow in tree.arrows:
            source, target = (_child(folder, end) for end in arrow[:2])
            if (
                None not in (source, target)
                and source != target
                and not (tree.parents and "" in (source, target))
            ):
                between.setdefault((source, target), arrow)
        graph = {}
        for source, target in between:
            graph.setdefault(source, set()).add(target)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            *_, (*rest, last) = error.args
            ring = [last, *reversed(rest)]
            found += [tree.told(between[pair]) for pair in pairwise(ring)]
    return found


def _child(folder, module):
    """Return which child of the folder this is, or is in; empty for the folder itself; None for others."""
    if module == folder:
        return ""
    inside = module.removeprefix(f"{folder}." if folder else "")
    return inside.partition(".")[0] if not folder or inside != module else None


# Python.


def python_tree(package):
    """Read a package; imports in functions count, and so do those for types only."""
    tree = Tree(package, parents=False)
    for file in sorted(
        [*package.rglob("*.py"), *package.rglob("*.pyi")], key=lambda file: (file.suffix == ".py", file)
    ):
        inside = file.relative_to(package).with_suffix("").parts
        tree.files[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = file
    for module, file in tree.files.items():
        if file.suffix == ".pyi":
            continue  # compiled: it imports nothing when it runs. A stub beside a module gave way to it
        folder = module if file.name == "__init__.py" else parent(module)
        for node, function in _statements(ast.parse(file.read_bytes())):
            for name, symbol in _imported(node, folder, package.name):
                whole = joined(name, symbol)
                target, symbol = (whole, "") if whole in tree.files else (name, symbol)
                tree.add(module, target, symbol, function)
    return tree


def _statements(node, scope="", function=""):
    """Yield all nodes, each with the qualified name of the function that it stands in, if it stands in one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = joined(scope, child.name)
            yield from _statements(child, name, function if isinstance(child, ast.ClassDef) else name)
        else:
            yield child, function
            yield from _statements(child, scope, function)


def _imported(node, folder, package):
    """Yield module and symbol of what a statement imports from the package."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if alias.name.split(".")[0] == package]
        yield from ((name.partition(".")[2], "") for name in names)
    elif isinstance(node, ast.ImportFrom):
        above = node.module or ""
        if node.level:
            steps = folder.split(".") if folder else []
            above = ".".join([*steps[: len(steps) - node.level + 1], *filter(None, [node.module])])
        elif above.split(".")[0] == package:
            above = above.partition(".")[2]
        else:
            return
        yield from ((above, alias.name) for alias in node.names)


# Rust.

_QUIET = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']+|\\'|[^\\'])'""", re.DOTALL
)
_TEST = re.compile(r"#\[cfg\((?:all\()?\s*test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
_INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:])(?<!\(in )(?:crate|self|super)(?:\s*::\s*\w+)+")
_STEP = re.compile(r"[\w*]+")


def rust_tree(root):
    """Read a crate; comments, strings, what is compiled for tests only, and crates below it are left out."""
    tree, texts, tests = Tree(root, parents=True), {}, set()
    below = [manifest.parent for manifest in root.rglob("Cargo.toml")]
    for file in sorted(root.rglob("*.rs")):
        if any(file.is_relative_to(crate) for crate in below):
            continue
        inside = file.relative_to(root).with_suffix("").parts
        module = ".".join(inside[:-1] if inside[-1] in ("mod", "lib") else inside)
        text, gone = _without_tests(_QUIET.sub(" ", file.read_text()))
        tests |= {joined(module, name) for name in gone}
        for name, body in _modules(module, text):
            tree.files[name], texts[name] = file, body
    for module in [name for name in texts if any(f"{name}.".startswith(f"{test}.") for test in tests)]:
        del tree.files[module], texts[module]
    uses = {module: list(_uses(module, text, tree.files)) for module, text in texts.items()}
    names = {module: dict(pairs) for module, pairs in uses.items()}
    for module, text in texts.items():
        inline = (
            _absolute(module, _STEP.findall(path), tree.files) for path in _PATH.findall(_USE.sub("", text))
        )
        for path in dict.fromkeys([*(path for _, path in uses[module]), *inline]):
            tree.add(module, *_resolved(path, tree.files, names))
    return tree


def _without_tests(text):
    """Return the text without items for tests, and the names of the modules whose files are for tests."""
    gone = []
    while found := _TEST.search(text):
        end = _end(text, found.end())
        gone += re.findall(r"\bmod\s+(\w+)\s*;", text[found.end() : end])
        text = text[: found.start()] + text[end:]
    return text, gone


def _modules(module, text):
    """Yield the modules that are written inside of this one, then this one, each with the text of its own."""
    while found := _INLINE.search(text):
        end = _end(text, found.start())
        yield from _modules(joined(module, found[1]), text[found.end() : end - 1])
        text = text[: found.start()] + text[end:]
    yield module, text


def _end(text, start):
    """Return where the item ends that begins here: behind its semicolon, or behind the brace that closes its body."""
    depth, use = 0, re.compile(r"(pub(\([^)]*\))?\s+)?use\b").match(text, start)
    for found in re.compile(r"[{};]").finditer(text, start):
        depth += {"{": 1, "}": -1, ";": 0}[found[0]]
        if depth == 0 and (found[0] == ";" or not use):
            return found.end()
    return len(text)


def _uses(module, text, files):
    """Yield each name that ``use`` gives the module, and the path from the root that it stands for."""
    for use in _USE.findall(text):
        for path, alias in _branches(use):
            path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
            if (absolute := _absolute(module, path, files)) is not None:
                yield alias or path[-1], absolute


def _branches(use):
    """Yield the paths of a tree of ``use``, and what each is called here, if it is called otherwise."""
    head, _, rest = use.partition("{")
    if not rest:
        path, _, alias = use.partition(" as ")
        if path.strip():
            yield _STEP.findall(path), alias.strip()
        return
    depth, branches = 0, [""]
    for character in rest.rstrip()[:-1]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            branches.append("")
        else:
            branches[-1] += character
    for branch in branches:
        yield from (([*_STEP.findall(head), *path], alias) for path, alias in _branches(branch))


def _absolute(module, path, files):
    """Return a path from the root, or None if it is one of another crate."""
    if path[0] == "crate":
        return tuple(path[1:])
    here = module.split(".") if module else []
    rest = list(dropwhile(("self", "super").__contains__, path))
    if len(rest) == len(path) and joined(module, path[0]) not in files:
        return None
    return (*here[: len(here) - path.count("super")], *rest)


def _resolved(path, files, names, depth=0):
    """Return the module that has what a path names, through what others export, and what it is called there."""
    module = ""
    for i, name in enumerate(path):
        if (child := joined(module, name)) in files:
            module = child
        elif name in names[module] and depth < 9:
            return _resolved((*names[module][name], *path[i + 1 :]), files, names, depth + 1)
        else:
            return module, "::".join(path[i:])
    return module, ""
