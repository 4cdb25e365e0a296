"""The verbs of the command line. The parameters of the functions that a verb calls become its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..core.parameters import choice
from .call import REQUIRED, Option, algorithms, read, summary

_RUNNING = ("threads", "memory_limit", "tmp_dir")
"""Parameters that do not change a result. A verb has only those of its first function."""

_NOT_OPTIONS = {
    "self",
    "graph",
    "source",
    "partition",
    "degrees",
    "cache_ids",
    "progress",
    "on_epoch",
    "callbacks",
    "loss",
    "optimizer",
    "scheduler",
    "metrics",
    "on_outcome",
}
"""Parameters that hold objects, which no command line can give."""

_TITLE_OF = {
    "open_graph": "How to read FILE",
    "evaluate": "What else to measure",
    "save": "What else a partition directory holds",
}

WITH_TRAIN = "What to train, with --train"

TITLES = ("Options", WITH_TRAIN, *_TITLE_OF.values(), "Common options")
"""Groups of options, in the order of the help."""


def _file(name: str, doc: str, default: Any = None) -> Option:
    return Option(name, "StrPath", default, doc=doc)


def _switch(name: str, doc: str) -> Option:
    return Option(name, "bool", None, doc=doc)


GROUPS = {
    "The first day": "info partition evaluate compare report train predict doctor",
    "Graphs": "ingest convert generate split-edges order",
    "Other partitions": "refine update edges-of cluster",
    "Partition directories": "export plan restore verify upgrade",
    "Work that goes on": "work conversions",
}
"""The verbs by what they are for, as the help lists them."""

_COMMON = (
    _file("config", "A .toml with options by name, or with a table of them for each verb."),
    _switch("json", "Print JSON instead of tables."),
    _switch("quiet", "No progress bar, no notes."),
    _switch("debug", "Show the traceback of an error."),
)

_TRAINING = "training:train_over"

_IN_MEMORY = ("features", "labels", "splits", "edge_splits", "edge_labels", "edge_label_splits")
"""Parameters of a training that a partition in memory needs. A directory has its own."""

OF_TRAINING = ("fanouts", "batch_size", "workers", "sampling", "seed", "model", "hidden", "layers", "target")
"""Parameters of a training that decide what it reads and takes."""

_FILE = {
    "file": "Edges: raw pairs, .npy, text, .parquet, .graph, .mtx, a folder or glob of these, or - (stdin)."
}


_PARTITION_FILE = {"partition": "A .npy, .txt or .parquet file, or a partition directory."}


@dataclass(frozen=True)
class Verb:
    """A verb. The parameters of its functions are its options."""

    run: str
    """``module:function``, imported when it runs."""
    takes: tuple[str, ...]
    """Names of functions. The first one also gives the run options and the first line of the help."""
    arguments: Mapping[str, str]
    examples: str
    """Without ``fastpart``."""
    own: tuple[Option, ...] = ()
    without: frozenset[str] = frozenset()
    training: tuple[str, ...] = ()
    """Names of options of ``train.sampled``."""
    saves: bool = False
    """Whether it has the options that say where a partition goes."""
    several: bool = False
    """Whether the last argument may be given any number of times."""
    says: str = ""
    """Replaces the first line of the help."""
    more: str = ""
    """Text of the help before the examples."""

    @property
    def line(self) -> str:
        """The first line of its help."""
        return self.says or summary(self.takes[0])

    @property
    def outputs(self) -> tuple[str, ...]:
        """The options whose files nobody else may write meanwhile. The processes of a training see to that together."""
        return () if self.run == _TRAINING else ("out", "checkpoints")

    def options(self) -> dict[str, tuple[str, Option]]:
        """Return title and option by name, in the order of the help."""
        hidden = {*_NOT_OPTIONS, *_RUNNING, *self.without, *self.arguments}
        hidden |= {*_IN_MEMORY} if self.run == _TRAINING else set()
        running = [
            option for first in self.takes[:1] for name, option in read(first).items() if name in _RUNNING
        ]
        own = (*self.own, *(_saved() if self.saves else ()))
        options = {option.name: ("Options", option) for option in own}
        for function in self.takes:
            for name, option in read(function).items():
                if name not in hidden:
                    options.setdefault(name, (_TITLE_OF.get(function, "Options"), option))
        if self.training:
            options |= {name: (WITH_TRAIN, read("train.sampled")[name]) for name in self.training}
        return options | {option.name: ("Common options", option) for option in (*running, *_COMMON)}


@dataclass(frozen=True)
class Family:
    """A verb with subcommands, such as the methods of ``train``."""

    line: str
    run: str
    arguments: tuple[str, ...]
    examples: Mapping[str, str]
    """By the names of the functions."""
    more: dict[str, Verb]
    own: tuple[Option, ...] = ()

    def members(self) -> dict[str, Verb]:
        """Return its verbs by name."""
        members = {}
        for name, example in self.examples.items():
            described = {argument: read(name)[argument].doc for argument in self.arguments}
            members[name.rpartition(".")[2]] = Verb(self.run, (name,), described, example, self.own)
        return members | self.more


def verbs(words: Sequence[str]) -> dict[str, Verb | Family]:
    """Return all verbs, by group. ``partition`` has the options of the algorithm that the words name."""
    completing = "--install-completion" in words
    named = {"partition": _partition(words)} if completing or "partition" in words[:1] else {}
    return {name: (_VERBS | named)[name] for names in GROUPS.values() for name in names.split()}


def _partition(words: Sequence[str]) -> Verb:
    """Return the verb for the named algorithm. Without a name, :func:`fastpart.partition` chooses."""
    flag, names = "--algorithm", list(algorithms())
    named = [value for word, value in pairwise(words) if word == flag]
    named += [word.removeprefix(f"{flag}=") for word in words if word.startswith(f"{flag}=")]
    function = choice(flag, named[-1], tuple(names)) if named else "partition"
    of_others = names if "--install-completion" in words else []  # completion knows the options of all
    doc = "Run this one instead of choosing. `fastpart partition --help` lists them."
    lines = [f"  {name:12} {summary(name)}" for name in names]
    more = "\n".join(["Algorithms (`--algorithm NAME --help` lists the options of each):", *lines, "", ""])
    return replace(
        _PARTITION,
        takes=(function, *of_others, *_PARTITION.takes[1:]),
        own=(Option("algorithm", f"Literal{names}", None, doc=doc), _DRY_RUN),
        without=_HERE if named else frozenset(),
        says="" if named else _PARTITION.says,
        more="" if named else more,
    )


def algorithms_with(flag: str) -> list[str]:
    """Return the algorithms that have an option."""
    return [
        name
        for name in algorithms()
        if flag in {option.flag for option in read(name).values() if option.name not in _NOT_OPTIONS}
    ]


def _out(doc: str, default: Any = None) -> tuple[Option, ...]:
    return (_file("out", doc, default),)


_LOG = Option(
    "log",
    "str | Mapping[str, Any] | None",
    None,
    doc="Where each epoch is logged: a .jsonl, or jsonl=FILE, tensorboard=DIR, wandb=PROJECT, mlflow=URI.",
)

_RESTORE = _file(
    "restore",
    "The folder that `fastpart ingest` wrote. --predictions is then a .parquet or .csv with its ids.",
)


def _saved() -> tuple[Option, ...]:
    """Return the options that say where a partition goes, if anywhere."""
    return (
        replace(read("save")["out"], default=None),
        _switch("resume", "Go on from OUT.partial, where a command that failed has kept its partition."),
        Option(
            "export",
            "Literal['dgl', 'glt', 'pyg', 'text', 'wholegraph']",
            None,
            doc="Also write the directory OUT in the format of a training system, to OUT-dgl or the like.",
        ),
    )


_DRY_RUN = _switch(
    "dry_run", "Say what would run, and what memory it needs. The graph is read, and nothing is written."
)

_HERE = frozenset({"cluster", "shared"})
"""Options of verbs that make partitions on clusters. Others measure and save on the machine that makes them."""

_PARTITION = Verb(
    "partitioning:partition",
    ("partition", "open_graph", "evaluate", "save"),
    _FILE,
    "partition g.bin -k 8\n"
    "partition g.bin -k 8 --effort best -o parts/\n"
    "partition g.bin -k 8 --memory-limit 2G --dry-run\n"
    "partition g.bin -k 8 --of edges -o edges.npy\n"
    "partition g.bin -k 8 --algorithm spring --balance 1.02 -o part.npy\n"
    "partition g.bin -k 4 --algorithm bytegnn --splits s.npz -o parts/\n"
    "partition g.bin -k 8 --algorithm sigma -o parts/ --features x.npy --labels y.npy --splits s.npz",
    saves=True,
    says="Partition a graph, print the measures, and save the partition with -o.",
)

_VERBS: dict[str, Verb | Family] = {
    "generate": Family(
        "Generate a graph for experiments.",
        "commands:generate",
        ("out",),
        {
            "generate.rmat": "generate rmat g.bin --n 4194304 --m 64000000 --seed 1",
            "generate.ba": "generate ba g.bin --n 1000000 --m 8000000",
            "generate.planted": "generate planted g.bin --n 100000 --m 1000000 --classes 10 --features 32",
            "generate.grid": "generate grid g.bin --rows 1000 --columns 1000",
            "generate.typed": "generate typed mag/ --scale 0.01",
        },
        {},
    ),
    "convert": Verb(
        "commands:convert",
        ("convert",),
        {
            "source": "Text, .graph (METIS), .mtx, .parquet, .binedgelist, .npy or raw pairs, also packed. - is stdin.",
            "out": "A .txt, .tsv, .graph, .parquet or .binedgelist, else raw pairs with the sidecar OUT.json.",
        },
        "convert soc-LiveJournal1.txt.gz lj.bin\n"
        "convert hashed-ids.csv g.bin --relabel    # dense ids, their map in g.bin.ids.npy\n"
        "convert 'days/*.csv' g.bin --columns follower,followed\n"
        "convert mesh.graph g.bin                  # METIS, or .parquet, .binedgelist, .npy\n"
        "convert g.bin simple.bin --drop-loops --dedup --shuffle --seed 1\n"
        "convert g.bin g.graph                     # also .parquet, .binedgelist, .txt, .tsv\n"
        "convert big-endian.bin g.bin --swap",
    ),
    "ingest": Verb(
        "commands:ingest",
        ("ingest",),
        {
            "schema": "A .yaml, .toml or .json that says what the tables hold, a dataset of OGB or DGL, or an export "
            "of neo4j. With --guess, a folder of tables."
        },
        "ingest --guess lake/ -o schema.yaml    # to look over\n"
        "ingest schema.yaml --check             # lists all problems, writes nothing\n"
        "ingest schema.yaml -o graph/           # the same command goes on after a kill\n"
        "ingest schema.yaml -o graph/ --restart --memory-limit 2G",
        (
            *_out("A folder for the graph. With --guess, a .yaml that does not exist yet."),
            _switch("guess", "Write a schema for a folder of tables. Nothing is run."),
        ),
    ),
    "split-edges": Verb(
        "commands:split_edges",
        ("split_edges", "open_graph"),
        _FILE
        | {"out": "A file of raw pairs for the training records. OUT.splits.npz gets the held-out pairs."},
        "split-edges g.bin train.bin\nsplit-edges g.bin train.bin --val 0.05 --test 0.1 --seed 1",
        more="Then: partition train.bin -k 4 -o parts/ --edge-splits train.bin.splits.npz, and train links parts/\n\n",
    ),
    "info": Verb(
        "commands:info",
        ("info", "open_graph"),
        {"file": f"{_FILE['file']} Or a partition directory."},
        "info g.bin\ninfo edges.npy --json\ninfo g.bin -k 64 --cluster 4\ninfo parts/\n"
        "info parts/ --train --fanouts 15,10 --workers 2",
        (
            _switch(
                "train",
                "Say what an epoch of `train sampled` would read, what its workers take, and what pays.",
            ),
        ),
        training=OF_TRAINING,
    ),
    "partition": _PARTITION,
    "refine": Verb(
        "partitioning:succeed",
        ("refine", "open_graph", "evaluate", "save"),
        _FILE | _PARTITION_FILE,
        "refine g.bin parts/ -o refined/\nrefine g.bin part.npy -k 8 --balance 1.05 -o refined.npy",
        saves=True,
        without=_HERE,
        says="Refine a partition of the vertices, print the measures, and save the result with -o.",
    ),
    "update": Verb(
        "partitioning:succeed",
        ("update", "open_graph", "evaluate", "save"),
        _FILE | _PARTITION_FILE,
        "update grown.bin parts/ -o parts/\nupdate g.bin parts/ -k 9 --moves 0.1 -o more-parts/",
        saves=True,
        without=_HERE,
        says="Update a partition of the vertices for a graph that has changed, print the measures, and save with -o.",
    ),
    "edges-of": Verb(
        "partitioning:succeed",
        ("edges_of", "open_graph", "evaluate", "save"),
        _FILE | _PARTITION_FILE,
        "edges-of g.bin parts/ -o edges.npy\nedges-of g.bin part.npy -k 8 --balance 1.02 -o edge-parts/",
        saves=True,
        without=_HERE,
        says="Partition the edges by a partition of the vertices, print the measures, and save the result with -o.",
    ),
    "evaluate": Verb(
        "commands:evaluate",
        ("evaluate", "open_partition", "open_graph"),
        _FILE | _PARTITION_FILE,
        "evaluate g.bin parts/ -o table.tex\nevaluate g.bin part.npy -k 8 --labels y.npy --splits split.npz",
        _out("A .json (all), .csv or .parquet (the table of the parts), .md or .tex (all tables)."),
    ),
    "cluster": Verb(
        "commands:cluster",
        ("cluster", "open_graph"),
        _FILE,
        "cluster g.bin -o clusters.npy\ncluster g.bin --method hollocou --max-volume 100000",
        _out("A .npy with the cluster of each vertex."),
    ),
    "order": Verb(
        "commands:order",
        ("order", "open_graph"),
        _FILE,
        "order g.bin -o ordered.bin    # the old ids in ordered.bin.ids.npy\n"
        "order g.bin --partition parts/ -o ordered.bin",
        (_file("partition", "Parts of the vertices, which then come part by part."),),
    ),
    "compare": Verb(
        "commands:compare",
        ("compare", "open_graph"),
        {**_FILE, "others": "More graphs, which are compared one after the other."},
        "compare g.bin -k 8\n"
        "compare g.bin -k 4,8,32 --algorithms spring,spring:passes=2,metis -o comparison.json\n"
        "compare g.bin -k 8 --labels y.npy --splits split.npz -o report.html\n"
        "compare g.bin -k 4 --fanouts 15,10 --cache 0,0.1 --splits split.npz\n"
        "compare a.bin b.bin -k 8 --algorithms metis,multilevel --balance 1.05 --seeds 5",
        _out(
            "A .json (all, for `fastpart report`), .csv or .parquet (the table), .md or .tex (as printed), "
            ".html (the report), .svg, .png or .pdf."
        ),
        several=True,
    ),
    "report": Verb(
        "commands:report",
        ("evaluate", "open_partition", "open_graph"),
        {
            "file": "Edges, or a .json of `fastpart compare`.",
            "partitions": "Partitions of FILE.",
        },
        "report comparison.json -o report.html\n"
        "report g.bin parts/ other.npy -o report.html\n"
        "report comparison.json -o plots.svg",
        _out("An .html (one self-contained page), .svg, .png or .pdf.", REQUIRED),
        without=_HERE,
        several=True,
        says="Write a page with tables and plots of a comparison or of partitions.",
    ),
    "export": Family(
        "Write a partition directory in the format of DGL, PyG, GLT or WholeGraph, or as text.",
        "commands:export",
        ("source", "out"),
        {
            "export.dgl": "export dgl parts/ dgl/ --graph-name papers    # dgl/papers.json is the part_config",
            "export.glt": "export glt parts/ glt/",
            "export.pyg": "export pyg parts/ pyg/",
            "export.text": "export text parts/ text/",
            "export.wholegraph": "export wholegraph parts/ wholegraph/",
        },
        {},
    ),
    "plan": Verb(
        "commands:plan",
        ("plan",),
        {"source": "A partition directory of vertices, saved with features."},
        "plan parts/ --epochs 3 --fanouts 10,10 --batch-size 1000\n"
        "plan parts/ --epochs 3 --fanouts 10,10 --batch-size 1000 --memory 2G -o packed/",
        _out("A folder for the packed rows. Without it, the plan only tells."),
        without=frozenset({"pack"}),
        says="Say what the next epochs will read and, with -o, pack it in the order of its use.",
    ),
    "conversions": Verb(
        "commands:conversions",
        (),
        {},
        "conversions\nconversions --clear",
        (_switch("clear", "Remove them."),),
        says="List the conversions of files that hold no raw records, which are kept for the next time.",
    ),
    "doctor": Verb("commands:doctor", ("doctor",), {}, "doctor --tmp-dir /scratch\ndoctor --json"),
    "upgrade": Verb("commands:upgrade", ("upgrade",), {"source": "A partition directory."}, "upgrade parts/"),
    "restore": Verb(
        "commands:restore",
        ("restore",),
        {
            "result": "A partition of the vertices, or a .npy of a row per vertex or record, as predictions are."
        },
        "restore parts/ --graph graph/ -o parts.parquet\n"
        "restore predictions.npy --graph graph/ -o predictions.parquet --column class\n"
        "restore embeddings.npy --graph graph/ -o embeddings/    # a file for each type",
        (
            *_out(
                "A .parquet or .csv. For several types also a folder, which gets a file for each.", REQUIRED
            ),
            _file("graph", "The folder that `fastpart ingest` wrote.", REQUIRED),
        ),
    ),
    "work": Verb(
        "commands:work",
        ("work",),
        {"shared": "The folder --shared of a command with --cluster tasks."},
        "work /mnt/job --task 3",
    ),
    "verify": Verb("commands:verify", ("verify",), {"source": "A partition directory."}, "verify parts/"),
    "train": Family(
        "Train a graph neural network over a partition directory (pip install 'fastpart[train]').",
        _TRAINING,
        ("source",),
        {
            "train.full": "train full parts/ --model gcn --hidden 32 --epochs 200 --patience 20 -o run/",
            "train.sampled": "train sampled parts/ --batch-size 1000 --fanouts 15,10 --epochs 20\n"
            "train sampled parts/ --batch-size 1000 --fanouts 10,10 --workers 1 --epochs 3 --plan packed/",
            "train.bytegnn": "train bytegnn parts/ --fanouts 15,10 --trace trace.json",
            "train.armada": "train armada parts/ --batch-workers 2 --compute-workers 4 --cache 0.1",
            "train.distdgl": "train distdgl parts/ --trainers-per-part 2 --batch-size 1000 --fanouts 15,10",
            "train.sdt": "train sdt parts/ --workers 2 --average-every 5 -o run/",
            "train.distgnn": "train distgnn parts/ --delay 5",
            "train.sancus": "train sancus parts/ --rows boundary",
        },
        {
            "links": Verb(
                _TRAINING,
                ("train.links",),
                {"source": "A partition directory with edge splits."},
                "train links parts/ --epochs 20 --patience 3 -o run/\n"
                "train links parts/ --embeddings 64 --negatives uniform=4,batch=4 -o run/    # without features",
                (_LOG,),
            ),
            "edges": Verb(
                _TRAINING,
                ("train.edges",),
                {"source": "A partition directory with labels of edges."},
                "train edges parts/ --epochs 20 --patience 3 -o run/\n"
                "train edges parts/ --model gatv2 --predictions classes.npy    # of all records",
                (_LOG, _file("predictions", "A .npy for the class of every record."), _RESTORE),
            ),
            "embeddings": Verb(
                _TRAINING,
                ("train.embeddings",),
                {"source": "A partition directory with edge splits."},
                "train embeddings parts/ --width 200 --reciprocal --dropout 0.4 --eval-every 10 -o run/\n"
                "train embeddings parts/ --decoder complex --negatives degree --relation-weights cites=2,writes=0.5\n"
                "train embeddings parts/ --encoder rgcn --hidden 64 --lr 0.01",
                (_LOG,),
            ),
            "compare": Verb(
                "training:compare",
                ("train.compare", "open_graph"),
                _FILE,
                "train compare g.bin -k 4 --features x.npy --labels y.npy --splits s.npz "
                "--methods sampled,sdt,full --partitioners spring,sigma,random --epochs 50\n"
                "train compare g.bin -k 4 --features x.npy --labels y.npy --splits s.npz "
                "--methods distgnn,sancus --partitioners sigma,hdrf,dbh,random -o report.html",
                _out(
                    "A .csv or .parquet (the table), .md or .tex (as printed), .html (a page), .svg, .png or .pdf."
                ),
            ),
        },
        (
            _LOG,
            _file("predictions", "A .npy for the class of every vertex."),
            _RESTORE,
        ),
    ),
    "predict": Verb(
        "training:predict",
        ("train.predict",),
        {"run": "The folder of a training.", "source": "A partition directory."},
        "predict run/ parts/ -o classes.npy\n"
        "predict run/ parts/ -o classes.parquet --restore graph/    # with the ids of the tables\n"
        "predict run/ parts/ -o venues.parquet --restore graph/ --what probabilities",
        (
            *_out("A .npy with a row per vertex or record. With --restore, a .parquet or .csv.", REQUIRED),
            _file("restore", "The folder that `fastpart ingest` wrote. The result has its ids."),
        ),
        without=frozenset({"vertices", "edges"}),
    ),
}
