"""The cut of GREM by the size of its chunks, expected and measured, refined and not: Figure 6 of the paper, redrawn.

``python benches/grem.py fb15k.npy --out figure.svg`` prints a table, and draws it if matplotlib is installed.
"""

from __future__ import annotations

import argparse
import warnings

import fastpart as fp

CHUNKS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3)


def measured(graph: fp.Graph, chunk: float, revise: bool, seeds: int) -> float:
    """Return the mean cut of several seeds."""
    partitions = [fp.grem(graph, 2, chunk=chunk, revise=revise, seed=seed) for seed in range(seeds)]
    return sum(float(fp.evaluate(graph, p).summary["cut_ratio"][0]) for p in partitions) / seeds


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", help="where the figure goes")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    graph = fp.open_graph(given.graph)
    best = fp.grem(graph, 2, chunk=1.0)
    curves: dict[str, list[float]] = {}
    for revise in (True, False):
        word = "refined" if revise else "greedy"
        curves[f"{word}, expected"] = [
            fp.algorithms.expected_cut(graph, best, chunk, revise=revise) for chunk in CHUNKS
        ]
        curves[f"{word}, measured"] = [measured(graph, chunk, revise, given.seeds) for chunk in CHUNKS]
    whole = float(fp.evaluate(graph, best).summary["cut_ratio"][0])
    print(f"whole graph in memory: {whole:.4f}")
    print("chunk", *curves, sep="\t")
    for chunk, *cuts in zip(CHUNKS, *curves.values(), strict=True):
        print(f"{chunk:.0%}", *(f"{cut:.4f}" for cut in cuts), sep="\t")
    if given.out:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots()
        for name, cuts in curves.items():
            axes.plot(
                [100 * chunk for chunk in CHUNKS], cuts, "--" if "expected" in name else "o-", label=name
            )
        axes.axhline(whole, color="grey", label="whole graph in memory")
        axes.set(xlabel="chunk (% of the records)", ylabel="cut ratio", ylim=(0, None))
        axes.legend()
        figure.savefig(given.out)


if __name__ == "__main__":
    main()
