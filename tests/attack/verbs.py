"""Commands over specimens, whose files and outputs something else may take the place of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command that runs in the copy of a specimen, which is HERE. Its words are separated by blanks."""

    specimen: str
    words: str
    torch: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.specimen}: {self.words}"


_TRAINING = "--hidden 4 --epochs 2 --threads 1"
_ROWS = "--features g.bin.features.npy --labels g.bin.labels.npy --splits s.npz"

COMMANDS: tuple[Command, ...] = tuple(
    Command(specimen, words)
    for specimen, words in (
        ("raw", "info g.bin"),
        ("raw", f"partition g.bin -k 3 -o parts {_ROWS}"),
        ("raw", "partition g.bin -k 3 --algorithm multilevel -o p.npy"),
        (
            "raw",
            "partition g.bin -k 3 --algorithm multilevel --balance-on on.npy --checkpoints work -o p.txt",
        ),
        ("raw", "partition g.bin -k 3 --algorithm hdrf -o e.parquet"),
        ("raw", "order g.bin -o o.bin"),
        ("raw", "split-edges g.bin train.bin"),
        ("raw", "cluster g.bin -o c.npy"),
        ("raw", "compare g.bin -k 2 --algorithms spring,random -o c.json"),
        ("raw", "convert g.bin g.graph"),
        ("raw", "convert g.bin g.txt"),
        ("relabelled", "convert g.txt new.bin --relabel --weights 3"),
        ("wide", "convert swapped.bin new.bin --swap"),
        ("text", "convert g.csv new.bin"),
        ("text", "convert g.txt.gz new.parquet"),
        ("text", "info g.graph"),
        ("conversions", "partition g.csv -k 2 -o p.npy"),
        ("conversions", "conversions --clear"),
        ("tables", "convert g.parquet new.bin --weights w"),
        ("rows", "partition g.bin -k 2 -o parts --features x.npz --labels many.npy --splits s.npz"),
        ("rows", "partition g.bin -k 2 -o parts --features x.npy --edge-features e.npy"),
        ("assignments", "evaluate g.bin p.npy -o table.json"),
        ("assignments", "evaluate g.bin e.parquet"),
        ("assignments", "refine g.bin p.txt -o new.npy"),
        ("assignments", "update g.bin p.parquet -o p.parquet"),
        ("assignments", "edges-of g.bin p.npy -o edges.npy"),
        ("vertices", "evaluate g.bin parts"),
        ("vertices", "verify parts"),
        ("vertices", "info parts"),
        ("vertices", "export text parts out"),
        ("vertices", "export wholegraph parts out"),
        ("plain", "update g.bin parts -o parts --overwrite"),
        ("plain", "plan parts --fanouts 2,2 --batch-size 8 -o packed"),
        ("edges", "evaluate g.bin parts"),
        ("schema2_vertices", "upgrade parts"),
        ("typed", "export text parts out"),
        ("typed", "evaluate g.bin parts"),
        ("links", "partition train.bin -k 2 -o new --edge-splits train.bin.splits.npz"),
        ("comparisons", "report c.json -o r.html"),
        ("exports", "export text parts text"),
        ("ingested", "ingest schema.yaml -o new"),
        ("ingested", "ingest schema.yaml -o graph --overwrite"),
        ("ingested", "ingest --guess tables -o guessed.yaml"),
        ("ingested", "partition graph -k 2 -o new"),
        ("ingested", "restore y.npy --graph graph --column y -o restored"),
        ("ingested", "restore parts --graph graph -o restored"),
        ("ingested", "update graph parts -o parts --overwrite"),
        ("interrupted", "ingest HERE/schema.yaml -o graph"),
        ("interrupted", "ingest HERE/schema.yaml -o graph --restart"),
        ("tasks", "work shared --task 1"),
        ("configured", "partition g.bin -o p.npy --config options.toml"),
    )
) + tuple(
    Command(specimen, words, torch=True)
    for specimen, words in (
        ("plain", f"train full parts -o run {_TRAINING}"),
        ("trained", f"train full parts -o run {_TRAINING} --overwrite"),
        ("trained", "train full parts -o run --hidden 4 --epochs 3 --threads 1 --patience 3 --resume"),
        (
            "planned",
            f"train sampled parts {_TRAINING} --fanouts 2,2 --batch-size 8 --seed 3 --workers 1 --plan packed",
        ),
        ("vertices", "info parts --train --fanouts 2,2 --workers 1"),
        ("vertices", "export pyg parts out"),
        ("vertices", "export glt parts out"),
    )
)
"""What is tried."""
