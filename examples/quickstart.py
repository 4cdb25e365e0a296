"""The main job on real graphs: convert, partition, measure, save, draw. Run it with `make quickstart`."""

from pathlib import Path

import polars as pl

import fastpart as fp
from fastpart.report.text import table

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "python" / "fastpart" / "datasets"
GRAPHS = {"cora": 2708, "amazon-computers": 13752}
PARTS = (4, 8, 32)


def main() -> None:
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    rows, pictures = [], {}
    for name, n in GRAPHS.items():
        graph = fp.convert(SHIPPED / f"{name}.txt.gz", out / f"{name}.bin", num_vertices=n)
        for k in PARTS:
            p = fp.partition(graph, k=k)
            evaluation = fp.evaluate(graph, p, labels=SHIPPED / f"{name}.labels.npy")
            p.save(out / f"{name}-{k}", graph=graph, labels=SHIPPED / f"{name}.labels.npy")
            rows.append(evaluation.summary.insert_column(0, pl.Series("graph", [name])).drop("of"))
            if k == 8:
                pictures[f"{name}, k = {k}"] = evaluation
    picture = out / "quickstart.png"
    fp.report.draw(pictures, picture)

    print("\n" + table(pl.concat(rows)) + "\n")
    print(f"partitions   {out.name}/NAME-K/   (manifest.json, assignment.npy, metrics.parquet, part-*/)")
    print(f"edges        {out.name}/NAME.bin (raw u32 pairs, sidecar NAME.bin.json)")
    print(f"picture      {out.name}/{picture.name}\n")
    print("next: .venv/bin/fastpart partition out/cora.bin -k 8 --effort best")
    print("      make train-demo    # trains a network on the parts of one of them")


if __name__ == "__main__":
    main()
