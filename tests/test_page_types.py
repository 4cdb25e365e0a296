"""The check of types of the code on pages: which lines it takes for code, and what it finds."""

import pytest
from page_types import NAMES, errors, module_of, pages

PAGE = """# A page

```python
p = fp.partition("g.bin", k=4)
p.loades
```

```bash
fastpart partition g.bin
```

- A list:

  ```python
  for batch in fp.open_partition("parts").loader(fanouts=[2]):
      print(batch.global_siz, batch.x)
  ```

```{code-cell} ipython3
%%bash
not python
```

```{code-cell} ipython3
:tags: [remove-input]
%matplotlib inline
fp.algorithms.dbh("g.bin", of_a_page_before).k
fp.algorithms.db
```
"""


def test_code_stands_in_the_lines_of_the_page():
    lines, page = module_of(PAGE).splitlines(), PAGE.splitlines()
    assert lines[0] == NAMES
    assert lines[3:5] == page[3:5]
    assert lines[14:16] == [line.removeprefix("  ") for line in page[14:16]]
    assert lines[24:28] == ["pass", "pass", *page[26:28]]
    code = [number for number, line in enumerate(lines[: len(page)]) if line]
    assert code == [0, 3, 4, 14, 15, 24, 25, 26, 27]


def test_a_page_without_code_is_no_module():
    assert module_of("# A page\n\n```bash\nls\n```\n") is None
    assert len([page for page in pages() if module_of(page.read_text())]) > 25


@pytest.mark.timeout(600)  # without its cache, mypy reads all of numpy and Polars
def test_both_checkers_name_page_and_line(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("pyright")
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = errors([page])
    for line, name in ((5, "loades"), (16, "global_siz"), (28, "db")):
        for checker in ("mypy", "pyright"):
            assert [
                each
                for each in found
                if each.startswith(f"{page}:{line}: {checker}: ") and f'"{name}"' in each
            ]
    assert len(found) == 6
