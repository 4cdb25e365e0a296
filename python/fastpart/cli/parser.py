"""What the command line accepts."""

from __future__ import annotations

import argparse
from typing import Any

from .. import _core
from .. import generate as generators
from ..clustering import METHODS
from ..comparing.peers import PEERS
from ..converting import FORMATS
from ..graph import DIRECTEDNESS, LAYOUTS
from ..partitioners import PARTITIONERS
from . import clustering, commands, comparing, exporting, upgrading
from .arguments import Parser, add_input, add_verb, count
from .train_parser import add_train


def make_parser() -> Parser:
    """Return the parser of all verbs."""
    parser = Parser(
        prog="fastpart",
        description="Partition graphs larger than memory for distributed GNN training.",
        epilog="examples:\n"
        "  fastpart generate rmat g.bin --n 1000000 --m 10000000\n"
        "  fastpart partition g.bin -k 8 --algorithm spring -o parts/\n"
        "  fastpart evaluate g.bin parts/\n\n"
        "`fastpart VERB --help` has more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fastpart {_core.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_generate(verbs)
    _add_convert(verbs)
    _add_info(verbs)
    _add_partition(verbs)
    _add_evaluate(verbs)
    _add_cluster(verbs)
    _add_compare(verbs)
    _add_report(verbs)
    _add_export(verbs)
    _add_upgrade(verbs)
    add_train(verbs)
    return parser


def _add_measures(verb: Parser) -> None:
    group = verb.add_argument_group("what else to measure")
    group.add_argument(
        "--labels", metavar="NPY", help="class of each vertex, or 0 and 1 for each class: adds label skew"
    )
    group.add_argument("--splits", metavar="NPZ", help="train, val, test: adds their balances")
    group.add_argument("--split", type=int, metavar="I", help="row of train_masks, val_masks, test_masks")


def _add_generate(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "generate",
        commands.generate,
        "Write a graph to try things on: the same bytes for the same seed, on any number of threads.",
        "fastpart generate rmat g.bin --n 4194304 --m 64000000 --seed 1\n"
        "fastpart generate ba g.bin --n 1000000 --m 8000000\n"
        "fastpart generate planted g.bin --n 100000 --m 1000000 --classes 10 --features 32\n"
        "fastpart generate grid g.bin --rows 1000 --columns 1000",
    )
    verb.add_argument(
        "model",
        choices=generators.__all__,
        help="preferential attachment (Barabasi-Albert); a grid; communities with labels; or R-MAT's skewed degrees",
    )
    verb.add_argument("out", metavar="OUT.bin", help="edges; the sidecar OUT.bin.json goes beside it")
    verb.add_argument("--n", type=count, help="number of vertices (ba, planted, rmat)")
    verb.add_argument("--m", type=count, help="number of edge records (ba, planted, rmat)")
    verb.add_argument("--rows", type=count, metavar="R", help="grid: number of rows")
    verb.add_argument("--columns", type=count, metavar="C", help="grid: number of columns")
    verb.add_argument("--classes", type=count, metavar="C", help="planted: number of communities (default 8)")
    verb.add_argument(
        "--features", type=count, metavar="F", help="planted: width of OUT.features.npy (default 0: none)"
    )
    verb.add_argument("--seed", type=count, help="ba, planted, rmat: default 0")


def _add_convert(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "convert",
        commands.convert,
        "Turn edges of any format into raw u32 edges with a sidecar, or these into another format.",
        "fastpart convert soc-LiveJournal1.txt.gz lj.bin\n"
        "fastpart convert hashed-ids.csv g.bin --relabel    # dense ids; the map goes to g.bin.ids.npy\n"
        "fastpart convert mesh.graph g.bin                  # METIS; also .parquet, .binedgelist, .npy\n"
        "fastpart convert g.bin simple.bin --drop-loops --dedup --shuffle --seed 1\n"
        "fastpart convert g.bin g.graph                     # also .parquet, .binedgelist, .txt, .tsv\n"
        "fastpart convert big-endian.bin g.bin --swap",
    )
    verb.add_argument(
        "input",
        metavar="IN",
        help="text (plain or .gz), .graph (METIS), .parquet, .binedgelist, .npy, or raw pairs",
    )
    verb.add_argument(
        "out",
        metavar="OUT",
        help="raw pairs, with the sidecar OUT.json beside them; or .txt, .tsv, .graph, .parquet, .binedgelist",
    )
    verb.add_argument("--format", choices=FORMATS, help="what IN is, if its suffix does not say it")
    verb.add_argument(
        "--relabel", action="store_true", help="dense ids in order of appearance, map in OUT.ids.npy"
    )
    verb.add_argument("--drop-loops", action="store_true", help="leave out records whose two ids are equal")
    verb.add_argument(
        "--dedup",
        action="store_true",
        help="keep the first record of each undirected pair, in the order of IN",
    )
    verb.add_argument("--shuffle", action="store_true", help="random order of the records that are left")
    verb.add_argument("--seed", type=count, default=0, help="for --shuffle (default 0)")
    verb.add_argument("--swap", action="store_true", help="IN is raw and big-endian")
    verb.add_argument("--dtype", metavar="TYPE", help="IN is raw pairs of u32 or u64")
    verb.add_argument("--layout", choices=LAYOUTS, help="which axis of a .npy counts the records")
    verb.add_argument(
        "--num-vertices",
        type=count,
        metavar="N",
        help="n, if there are isolated vertices behind the largest id",
    )
    verb.add_argument(
        "--directedness",
        choices=DIRECTEDNESS,
        help="for the sidecar (default: as IN's sidecar says, or undirected)",
    )


def _add_info(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "info",
        commands.info,
        "Say what a graph is: n, m, loops, degrees, isolated vertices, and the memory each algorithm would take.",
        "fastpart info g.bin\nfastpart info edges.npy --json",
    )
    add_input(verb)


def _add_partition(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "partition",
        commands.partition,
        "Partition a graph and print the measures; with -o, save it.",
        "fastpart partition g.bin -k 8 --algorithm spring\n"
        "fastpart partition g.bin -k 8 --algorithm spring --balance 1.03 -o parts/\n"
        "fastpart partition g.bin -k 8 --algorithm spring --balance-on split.npz:train --splits split.npz\n"
        "fastpart partition g.bin -k 8 --algorithm spring --passes 2 -o part.npy\n"
        "fastpart partition g.bin -k 8 --algorithm spring -o parts/ --features x.npy --labels y.npy --splits split.npz",
    )
    add_input(verb)
    verb.add_argument("-k", type=int, required=True, help="number of parts")
    names = ", ".join(PARTITIONERS)
    verb.add_argument(
        "--algorithm",
        required=True,
        metavar="NAME",
        help=f"one of: {names}; give any other parameter it has as --name value",
    )
    verb.add_argument(
        "--balance", type=float, metavar="B", help="largest part relative to the mean, at least 1"
    )
    verb.add_argument(
        "--balance-on",
        metavar="WEIGHTS",
        help="weights of the vertices, or a mask, that the parts share evenly, too: .npy, or an array of an .npz as "
        "split.npz:train",
    )
    verb.add_argument(
        "--balance-on-ratio",
        type=float,
        metavar="R",
        help="largest weight of a part relative to the mean, at least 1 (default 1.05)",
    )
    verb.add_argument("--seed", type=count, default=0, help="default 0")
    verb.add_argument(
        "-o", dest="out", metavar="OUT", help=".npy, .txt, .parquet, or no suffix for a partition directory"
    )
    _add_contents(verb)
    _add_measures(verb)


def _add_contents(verb: Parser) -> None:
    group = verb.add_argument_group("what a partition directory holds of each part, besides labels and masks")
    group.add_argument("--features", metavar="FILE", help="one row per vertex: .npy, sparse .npz, .parquet")
    group.add_argument("--edge-features", metavar="FILE", help="one row per edge record, likewise")
    group.add_argument(
        "--halo-hops",
        type=int,
        default=1,
        metavar="H",
        help="in-edges of vertices fewer than H hops from the part: 0, 1 (default) or 2",
    )
    group.add_argument("--halo-features", action="store_true", help="also features of the halo")


def _add_evaluate(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "evaluate",
        commands.evaluate,
        "Measure a saved partition.",
        "fastpart evaluate g.bin parts/\nfastpart evaluate g.bin part.npy -k 8 --labels y.npy --splits split.npz",
    )
    add_input(verb)
    verb.add_argument("partition", metavar="PARTITION", help=".npy, .txt, .parquet or a partition directory")
    verb.add_argument("-k", type=int, help="number of parts, for .npy and .txt (default: largest part + 1)")
    verb.add_argument("--of", choices=("vertices", "edges"), help="for .npy and .txt (default: by the array)")
    _add_measures(verb)


def _add_cluster(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "cluster",
        clustering.cluster,
        "Group the vertices into clusters; print their number, the largest, and the modularity.",
        "fastpart cluster g.bin -o clusters.npy\n"
        "fastpart cluster g.bin --method hollocou --max-volume 100000",
    )
    add_input(verb)
    verb.add_argument("--method", choices=METHODS, default="modularity", help="default: modularity")
    verb.add_argument("--max-size", type=count, metavar="N", help="vertices that a cluster may have")
    verb.add_argument("--max-volume", type=count, metavar="V", help="bound on the degrees of a cluster")
    verb.add_argument("--batch", type=count, metavar="B", help="1 is the sequential rule")
    verb.add_argument("-o", dest="out", metavar="OUT.npy", help="where to save the cluster of each vertex")


def _add_compare(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "compare",
        comparing.compare,
        "Run partitioners one after the other and print their measures, seconds and memory beside one another.",
        "fastpart compare g.bin -k 8\n"
        "fastpart compare g.bin -k 4,8,32 --algorithms spring,spring:passes=2,metis -o comparison.json\n"
        "fastpart compare g.bin -k 8 --labels y.npy --splits split.npz -o report.html",
    )
    add_input(verb)
    verb.add_argument("-k", required=True, metavar="K,...", help="numbers of parts, as 8 or 4,8,32")
    names = ", ".join([*PARTITIONERS, *PEERS])
    verb.add_argument(
        "--algorithms",
        metavar="NAME,...",
        help=f"some of: {names}; with parameters as NAME:PARAMETER=VALUE (default: all, their variants, and the peers "
        "that are installed)",
    )
    verb.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        help="add the installed peers to --algorithms; or leave them out",
    )
    verb.add_argument(
        "--time-limit",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds for a run of a peer (default 600)",
    )
    verb.add_argument("--tmp-dir", metavar="DIR", help="where temporary files go")
    verb.add_argument("--seed", type=count, default=0, help="default 0")
    verb.add_argument(
        "-o",
        dest="out",
        metavar="OUT",
        help=".json (all, for `fastpart report`), .parquet (the table), .html (the report), .svg, .png or .pdf (its "
        "plots)",
    )
    _add_measures(verb)


def _add_report(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "report",
        comparing.report,
        "Write a page with tables and plots of a comparison, or of partitions.",
        "fastpart report comparison.json -o report.html\n"
        "fastpart report g.bin parts/ other.npy -o report.html\n"
        "fastpart report comparison.json -o plots.svg",
    )
    add_input(verb)
    verb.add_argument(
        "partitions",
        nargs="*",
        metavar="PARTITION",
        help="of FILE; without any, FILE is a comparison, as .json",
    )
    verb.add_argument("-k", type=int, help="number of parts, for .npy and .txt (default: largest part + 1)")
    verb.add_argument("--of", choices=("vertices", "edges"), help="for .npy and .txt (default: by the array)")
    verb.add_argument(
        "-o",
        dest="out",
        metavar="OUT",
        required=True,
        help=".html (one page that needs nothing else), .svg, .png or .pdf (its plots)",
    )
    _add_measures(verb)


def _add_export(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "export",
        exporting.export,
        "Write a partition directory in the format of a training system.",
        "fastpart export dgl parts/ dgl/ --graph-name papers    # dgl/papers.json is the part_config\n"
        "fastpart export pyg parts/ pyg/",
    )
    verb.add_argument(
        "format",
        choices=exporting.FORMATS,
        help="DGL's partitions; PyG's partitions; or text for DGL's dispatch pipeline",
    )
    verb.add_argument(
        "source", metavar="SOURCE", help="a partition directory of vertices, saved with its edges"
    )
    verb.add_argument("out", metavar="OUT", help="the directory to write, or an earlier export to replace")
    verb.add_argument("--graph-name", metavar="NAME", help="dgl: name of the graph (default: graph)")


def _add_upgrade(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "upgrade",
        upgrading.upgrade,
        "Rewrite a partition directory of an earlier schema to the present one; arrays are not touched.",
        "fastpart upgrade parts/",
    )
    verb.add_argument("source", metavar="DIR", help="a partition directory")
