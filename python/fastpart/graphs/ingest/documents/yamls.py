"""YAML in which a name may not occur twice. PyYAML takes the last and drops the others."""

from __future__ import annotations

from typing import Any

import yaml

from ....core.parameters import one_line
from ....errors import ParameterError


class _Loader(yaml.SafeLoader):
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
