"""Layers: every import leads down, and none in a circle, in both languages."""

from functools import cache
from pathlib import Path

import pytest

from layers import against_the_order, cycles, python_tree, rust_tree, within

HOME = Path(__file__).parents[1]

PYTHON = """
_core
errors
core
runtime
graphs
machines
datasets, generate, partitions
measures
algorithms, store, typing
export, loading
compat, report, pyg
train
options
cli
__main__
"""
"""Lowest first; commas separate units that do not import each other."""

INSIDE = {
    "core": """
notes pairs parameters system
calls
cache_size, frames, option_groups
options, parsing, protocols, row_groups, tensors, text_files
folders, ids
vertex_tables
inputs, outputs
rows
""",
    "graphs": """
conversion_cache, tables, types
sources, weights
sidecars
graph_directory
files, graph
given_splits, ingest
parquet
convert
converted
opening
splits
""",
    "machines": """
engine
job, on_ray
checking, tasks
partitioning
parts
starting
""",
    "partitions": """
coding, documents, loader_options, plan, results, saved
part_files
part_rows
clustering, parts
stored_graph
types
methods
partition
homes, partitioners, seeds
order
""",
    "train": """
plugged, ranks
graphs, options
method_options, models, registry
learning
data
inference
memory
runs
comparing, jobs, loggers
methods
costs, frames, opening
predictions
on_ray
""",
    "train.methods": """
bytegnn, distdgl, distgnn, full, sampled, sancus, sdt
armada, links
edges, embeddings
""",
    "train.methods.armada": """
messages
cache, schedule
groups
graphs
rendezvous
batch_worker, receiver
__main__, worker
driver
""",
    "train.methods.distgnn": """
wire
exchange
blocks, totals
staleness
worker
driver
""",
    "train.methods.embeddings": """
dataset
steps, trained
driver
vertices
worker
""",
    "train.methods.sampled": """
steps
sampled_scores
driver, worker
""",
    "train.methods.sdt": """
averaging
sizing
worker
driver
""",
    "train.jobs": """
launch, warnings
job
driver, process
""",
    "train.learning": """
batches, metrics, normalisation
local_graph, trainable
learner
""",
    "train.runs": """
baselines, identity, predicting
run_folder
beginning, history, summary, tables
trained
""",
    "measures": """
facts, ratios, vertex_counts
by_type
accesses, evaluate, expected, info, sampling_plan
reading
traffic
compare
doctor
""",
}
"""The files of a unit, the same way."""

RUST = """
base
sets
edges
exec
graph
capacity
partition
measure
clustering
algorithms
parts
traffic
sampling, convert, ingest, generate
choices, internals
"""

RUST_INSIDE = {
    "algorithms.multilevel": """
model
refinement
coarsening
driver
order refine update
""",
    "exec": """
side_by_side, scattered, division
scan
grouping, pass, rounds
batches, follow, pipeline, spill
shuffle
""",
    "sampling": """
random, reused_memory
topology
levels, rows
methods, temporal
batches
""",
}
"""The folders and files of a room, the same way."""

UPWARD = """
measures/compare/comparison.py, Comparison.__str__ -> report/text.py: comparison_text
measures/compare/comparison.py, Comparison._repr_html_ -> report/text.py: comparison_html
measures/compare/comparison.py, Comparison.plot -> report/comparisons.py: plot_comparison
measures/compare/comparison.py, Comparison.report -> report/pages.py: write_report
measures/compare/comparison.py, Comparison.save -> report/files.py: save_comparison
measures/info.py, _of_training -> train/costs.py: costs
measures/info.py, _of_training -> train/plugged.py: import_torch
partitions/methods.py -> loading/__init__.py: LinkLoader
partitions/methods.py -> loading/__init__.py: Loader
partitions/methods.py, Loadable.link_loader -> loading/__init__.py: LinkLoader
partitions/methods.py, Loadable.loader -> loading/__init__.py: Loader
partitions/methods.py, Loadable.plan -> loading/planning/building.py: plan
partitions/methods.py, Loadable.save_cache -> loading/cached_rows.py: save_cache
partitions/methods.py, Savable.save -> store/saving.py: save_at
partitions/partition.py, Partition.evaluate -> measures/evaluate.py: evaluate
partitions/partition.py, Partition.plot -> report/partitions.py: plot_partition
partitions/partition.py, read_partition -> store/loading.py: read
partitions/results.py, Evaluation.__str__ -> report/text.py: evaluation_text
partitions/results.py, Evaluation.plot -> report/partitions.py: draw
partitions/results.py, Evaluation.save -> report/files.py: save_evaluation
""".strip().split("\n")
"""The imports that lead up: those of methods of results and of ``info``, in the function that calls, or for types."""

TREES = {
    "python": lambda: python_tree(HOME / "python" / "fastpart"),
    "rust": lambda: rust_tree(HOME / "rust"),
    "bindings": lambda: rust_tree(HOME / "rust" / "python"),
}


@cache
def tree_of(name):
    """Read a tree once for all tests: that takes seconds."""
    return TREES[name]()


def test_every_import_leads_down_except_in_methods_of_results():
    assert sorted(against_the_order(tree_of("python"), PYTHON)) == UPWARD
    assert against_the_order(tree_of("rust"), RUST) == []


def test_every_import_inside_a_unit_leads_down():
    for tree, units in [("python", INSIDE), ("rust", RUST_INSIDE)]:
        for unit, order in units.items():
            assert against_the_order(within(tree_of(tree), unit), order) == [], unit


def test_no_import_leads_in_a_circle():
    for name in TREES:
        assert cycles(tree_of(name).without(UPWARD)) == [], name


# The checks themselves, on trees of a few lines.

ROOMS = "low\nleft, right\nhigh"


def grown(folder, files, read):
    """Write files, and empty ones where a unit has none, and read them."""
    root, suffix = {python_tree: ("__init__.py", ".py"), rust_tree: ("lib.rs", ".rs")}[read]
    there = {Path(name).parts[0].partition(".")[0] for name in files}
    empty = [root, *(f"{unit}{suffix}" for unit in ("low", "left", "right", "high") if unit not in there)]
    for name, text in {**dict.fromkeys(empty, ""), **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read(folder)


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"high.py": "from . import left, right\nfrom .low import x", "left.py": "import tiny.low"}, None),
        ({"low.py": "from .high import x"}, "low.py -> high.py: x"),
        ({"low.py": "import tiny.high"}, "low.py -> high.py: itself"),
        ({"low.py": "from tiny import high"}, "low.py -> high.py: itself"),
        ({"low.py": "def f():\n    from .high import x"}, "low.py, f -> high.py: x"),
        (
            {"low.py": "class A:\n    def f(self):\n        if 1:\n            from .high import x"},
            "low.py, A.f -> high.py: x",
        ),
        ({"low.py": "class A:\n    from .high import x"}, "low.py -> high.py: x"),
        ({"low.py": "if TYPE_CHECKING:\n    from .high import x"}, "low.py -> high.py: x"),
        ({"low.py": "from . import version"}, "low.py -> __init__.py: version"),
        ({"left.py": "from .right import x"}, "left.py -> right.py: x"),
        ({"left/__init__.py": "", "left/a.py": "from ..right import x"}, "left/a.py -> right.py: x"),
        ({"other.py": "from .high import x"}, "other.py: no unit"),
        ({"low.py": '"""from .high import x"""\n# from .high import x\nfrom high import x'}, None),
    ],
)
def test_order_of_python(tmp_path, files, wrong):
    assert against_the_order(grown(tmp_path / "tiny", files, python_tree), ROOMS) == (
        [wrong] if wrong else []
    )


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"big/high.py": "from .low import x\nfrom ..left import y", "left.py": ""}, []),
        ({"big/low.py": "from .high import x"}, ["big/low.py -> big/high.py: x"]),
        ({"big/low.py": "from . import x"}, ["big/low.py -> big/__init__.py: x"]),
        ({"big/other.py": ""}, ["big/other.py: no unit"]),
    ],
)
def test_order_inside_a_unit(tmp_path, files, wrong):
    there = {f"big/{name}.py": "" for name in ("__init__", "low", "left", "right", "high")}
    tree = grown(tmp_path / "tiny", there | files, python_tree)
    assert against_the_order(within(tree, "big"), ROOMS) == wrong


@pytest.mark.parametrize(
    ("files", "ring"),
    [
        ({"high.py": "from .low import x", "left.py": "from .low import x"}, set()),
        (
            {"high.py": "from .low import x", "low.py": "def f():\n    from .high import y"},
            {"high.py -> low.py: x", "low.py, f -> high.py: y"},
        ),
        (
            {
                "low/__init__.py": "from .a import x",
                "low/a.py": "from .b import x",
                "low/b.py": "from . import y",
            },
            {"low/__init__.py -> low/a.py: x", "low/a.py -> low/b.py: x", "low/b.py -> low/__init__.py: y"},
        ),
        ({"low/__init__.py": "from .a import x", "low/a.py": "from . import b", "low/b.py": ""}, set()),
    ],
)
def test_cycles_of_python(tmp_path, files, ring):
    tree = grown(tmp_path / "tiny", files, python_tree)
    assert set(cycles(tree)) == ring
    assert cycles(tree.without(ring)) == []


EXPORTING = {"high/mod.rs": "pub use deep::Thing;", "high/deep.rs": ""}


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        (
            {
                "high.rs": "use crate::{left::{self, a as b}, right::*};",
                "left.rs": "fn f() -> crate::low::X {}",
            },
            None,
        ),
        ({"low.rs": "use crate::{left::{self, a}, right};"}, "low.rs -> left.rs: itself"),
        ({"low.rs": "pub(crate) use crate::left::{b::{c, d as e}};"}, "low.rs -> left.rs: b::c"),
        ({"low.rs": "fn f() {\n    use crate::high::f;\n}"}, "low.rs -> high.rs: f"),
        ({"low.rs": "fn f() -> crate::high::X<Y> {}"}, "low.rs -> high.rs: X"),
        ({"low.rs": "macro_rules! m { () => { $crate::high::f() } }"}, "low.rs -> high.rs: f"),
        ({"left/mod.rs": "", "left/a.rs": "use super::super::right::X;"}, "left/a.rs -> right.rs: X"),
        ({"left.rs": "mod a { use super::super::right::X; }"}, "left.rs -> right.rs: X"),
        ({"low.rs": "use crate::high::Thing;", **EXPORTING}, "low.rs -> high/deep.rs: Thing"),
        ({"low.rs": "use crate::Thing;"}, "low.rs -> lib.rs: Thing"),
        ({"low.rs": "use crate::Thing;", "lib.rs": "pub use high::Thing;"}, "low.rs -> high.rs: Thing"),
        ({"other.rs": "use crate::high::X;"}, "other.rs: no unit"),
        (
            {
                "low.rs": "#[cfg(test)]\nmod tests { use crate::high::X; }\n#[cfg(test)]\nuse crate::{high::Y};"
            },
            None,
        ),
        ({"low/mod.rs": "#[cfg(test)]\nmod tests;", "low/tests.rs": "use crate::high::X;"}, None),
        ({"low.rs": '//! use crate::high::X;\n/* crate::high::X */ const S: &str = "crate::high::X";'}, None),
        (
            {"low.rs": "fn f<'a>(c: &'a char) -> bool { *c == '\"' || crate::high::f('\"') }"},
            "low.rs -> high.rs: f",
        ),
        ({"low.rs": "pub(in crate::high) fn f() {}\nuse high::X;\nuse std::high::X;"}, None),
    ],
)
def test_order_of_rust(tmp_path, files, wrong):
    found = against_the_order(grown(tmp_path, files, rust_tree), ROOMS)
    assert found[:1] == ([wrong] if wrong else [])


@pytest.mark.parametrize(
    ("files", "ring"),
    [
        (
            {
                "low/mod.rs": "mod a;",
                "low/a.rs": "use super::b::x;",
                "low/b.rs": "fn f() { crate::low::a::y() }",
            },
            {"low/a.rs -> low/b.rs: x", "low/b.rs -> low/a.rs: y"},
        ),
        (
            {"low/mod.rs": "pub use a::X;", "low/a.rs": "use super::b::y;", "low/b/mod.rs": "use super::X;"},
            {"low/a.rs -> low/b/mod.rs: y", "low/b/mod.rs -> low/a.rs: X"},
        ),
        ({"low/mod.rs": "pub use a::X; pub struct Y;", "low/a.rs": "use super::Y;"}, set()),
    ],
)
def test_cycles_of_rust(tmp_path, files, ring):
    assert set(cycles(grown(tmp_path, files, rust_tree))) == ring
