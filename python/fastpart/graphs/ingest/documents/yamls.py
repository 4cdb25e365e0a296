"""YAML in which a name may not occur twice, and whose aliases do not multiply.

PyYAML takes the last of two names and drops the others. It unfolds aliases of aliases without a limit: 500 bytes may
stand for a billion values.
"""

from __future__ import annotations

from typing import Any

import yaml

from ....core.parameters import one_line
from ....errors import ParameterError

_REPEATED = 100_000
"""Values that aliases may repeat. A document that writes each value itself may have any number."""


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        """Return the document. Refuse one that unfolds to far more than it writes, before anything is made of it."""
        root: yaml.Node | None = super().get_single_node()
        if root is not None:
            sizes: dict[yaml.Node, int] = {}
            if _size(root, sizes, set()) > len(sizes) + _REPEATED:
                raise ParameterError(
                    f"its aliases (`*name`) repeat more than {_REPEATED:,} values. Write the values instead"
                )
        return root

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, and refuse a key that occurs twice."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise ParameterError(
                        f"line {line}: {key.value!r} is already a key in line {seen[key.value]}. Rename one"
                    )
                seen[key.value] = line
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, known: dict[yaml.Node, int], above: set[yaml.Node]) -> int:
    """Return the number of values that a node unfolds to. ``known`` gets that of each node, which is counted once."""
    if node in above:
        line = node.start_mark.line + 1
        raise ParameterError(f"line {line}: a value that contains itself. Remove the alias (`*name`) in it")
    if node not in known:
        above.add(node)
        known[node] = 1 + sum(_size(each, known, above) for each in _below(node))
        above.remove(node)
    return known[node]


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def read(text: str) -> Any:
    """Return what a YAML text holds."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ParameterError(f"{line}not YAML: {one_line(error.problem or 'it is damaged', 200)}") from None
    except ParameterError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ParameterError(f"not YAML: {one_line(error, 200)}") from None
