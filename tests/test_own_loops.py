"""The page about loops of your own: its code runs, and does what it says."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

needed = [name for name in ("torch", "torch_geometric", "tensorboard") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(needed), reason=f"needs {needed}")

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "own-loops.md"


def script():
    """Return the cells of the page as one program. A cell that writes a file becomes a call."""
    cells = re.findall(
        r"```\{code-cell\} ipython3\n(?::tags:[^\n]*\n\n)?(.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert len(cells) > 8
    for cell in cells:
        if written := re.fullmatch(r"%%writefile (\S+)\n(.*)", cell, re.DOTALL):
            yield f"open({written[1]!r}, 'w').write({written[2]!r})\nsys.path.insert(0, '')"
            continue
        body = ast.parse(cell).body
        if isinstance(body[-1], ast.Expr):  # a notebook shows its value
            last = ast.unparse(body[-1])
            cell = (
                ast.unparse(ast.Module(body[:-1], []))
                + f"\nif (value := {last}) is not None:\n    print(value)"
            )
        yield cell


@pytest.mark.timeout(400)
def test_the_page_runs(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(script()))
    command = [sys.executable, "page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    epochs = re.findall(
        r"^epoch (\d): loss ([\d.]+), accuracy [\d.]+, ([\d.]+) MB", done.stdout, re.MULTILINE
    )
    assert [int(epoch) for epoch, *_ in epochs[:18]] == [*range(6)] * 3
    alone, pair, interrupted = epochs[:6], epochs[6:12], epochs[12:18]
    assert interrupted == alone
    assert {moved for *_, moved in alone} == {"0.00"}
    assert "0.00" not in {moved for *_, moved in pair}
    stopped = int(re.search(r"stopped after (\d+) epochs", done.stdout)[1])
    assert stopped == len(epochs) - 18 < 50
    losses = [float(loss) for loss in re.findall(r"^epoch \d: loss ([\d.]+)$", done.stdout, re.MULTILINE)]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    traffic, negatives = map(ast.literal_eval, re.findall(r"^{.*", done.stdout, re.MULTILINE))
    assert traffic["parts"] < traffic["random"]
    assert negatives["local"] < negatives["batch"] < negatives["uniform"]
