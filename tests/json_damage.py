"""What a stranger may write into a JSON file of fastpart, and what must come of it."""

import copy
import json

import pytest
from hypothesis import strategies as st

import fastpart as fp

DROP = object()

OF_ANY = (
    DROP,
    None,
    True,
    -1,
    0,
    1.5,
    2**70,
    "x",
    "../x",
    "/etc/passwd",
    "x\n",
    "a\0b",
    "\ud800",
    [],
    {},
    [[]],
    float("nan"),
)
"""What replaces a value, whatever it was."""  # fmt: skip

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(content, above=()):
    """Yield the place of every value in a JSON value, as keys and indices. Of a list only the first and the last."""
    keys = list(content) if isinstance(content, dict) else [0, len(content) - 1] if content else []
    for key in dict.fromkeys(keys):
        yield (*above, key)
        if isinstance(content[key], dict | list):
            yield from places(content[key], (*above, key))


def replacements(value):
    """Return what replaces a value: anything, and what is only just wrong."""
    more = []
    if type(value) is int:
        more = [value + 1, value - 1, float(value)]
    if isinstance(value, list) and value:
        more = [[*value, value[-1]], value[1:], value[0]]
    return [*OF_ANY, *more]


def replaced(content, place, value):
    """Return a JSON value with another value at a place, or without it."""
    content = copy.deepcopy(content)
    within = content
    for key in place[:-1]:
        within = within[key]
    if value is DROP:
        del within[place[-1]]
    else:
        within[place[-1]] = value
    return content


def is_refused(file, read, intact):
    """Read a damaged file. Return whether it is refused. If not, it must read as the intact one did."""
    refusal = ""
    try:
        found = read()
    except (fp.FastpartError, OSError) as error:
        refusal = str(error)
    if not refusal:
        assert found == intact
        return False
    assert file.name in refusal or file.parent.name in refusal, refusal
    refusal.encode()
    return True


def check_all(file, read, skip=(), encode=lambda content: json.dumps(content).encode(), decode=json.loads):
    """Damage every value of a file in every way. ``skip`` are the names of values that no reader compares."""
    whole = file.read_bytes()
    intact, content = read(), decode(whole)
    refused, unnoticed = 0, []
    for place in places(content):
        if any(name in skip for name in place):
            continue
        old = content
        for key in place:
            old = old[key]
        for value in replacements(old):
            file.write_bytes(encode(replaced(content, place, value)))
            try:
                refused += is_refused(file, read, intact)
            except Exception as error:
                unnoticed.append((place, "dropped" if value is DROP else value, repr(error)[:200]))
    file.write_bytes(whole)
    assert read() == intact
    assert not unnoticed, "\n".join(map(repr, unnoticed))
    assert refused


def check_version(file, read, name, newest):
    """Refuse a version that is newer than the newest that is known."""
    whole = file.read_bytes()
    file.write_text(json.dumps(json.loads(whole) | {name: newest + 1}))
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{file.name}.*Upgrade fastpart"):
        read()
    file.write_bytes(whole)
