"""Bodies of the methods of results that need packages above their own.

Type checkers compare parameters and results with those of the methods. Slow modules are imported on use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from .core import parameters
from .core.declared import bind
from .core.options import Options
from .core.parameters import CacheCriterion, StrPath
from .errors import FastpartError, ParameterError
from .machines.engine import Engine
from .measures.compare import Comparison
from .measures.evaluate import evaluate
from .partitions.loader_options import EdgeKey, Fanouts, LinkOptions, LoaderOptions, PlanOptions
from .partitions.partition import Partition, VertexPartition, read_partition
from .partitions.plan import Plan
from .partitions.results import Evaluation
from .partitions.saved import SaveOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .loading import LinkLoader, Loader, TypedLinkLoader, TypedLoader


@bind(Partition.evaluate)
def _evaluate(
    partition: Partition,
    labels: Any = None,
    splits: Any = None,
    *,
    split: int | None = None,
    relation_weights: Mapping[str, float] | None = None,
    cluster: str | Engine | None = None,
    shared: StrPath | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    if partition.graph is None:
        raise FastpartError(
            "evaluate: this partition does not know its graph. Call fp.evaluate(graph, p), or open it with graph="
        )
    return evaluate(
        partition.graph,
        partition,
        labels,
        splits,
        split=split,
        relation_weights=relation_weights,
        cluster=cluster,
        shared=shared,
        **options,
    )


@bind(Partition.save)
def _save(
    partition: Partition,
    out: StrPath,
    *,
    graph: Any = None,
    cluster: str | Engine | None = None,
    shared: StrPath | None = None,
    overwrite: bool = False,
    **given: Unpack[SaveOptions],
) -> None:
    from .store import save

    save(partition, out, graph=graph, cluster=cluster, shared=shared, overwrite=overwrite, **given)


@bind(read_partition)
def _read(source: StrPath, k: int | None = None, of: Literal["vertices", "edges"] | None = None) -> Partition:
    from .store import open_partition

    return open_partition(source, k=k, of=of)


@bind(VertexPartition.loader)
def _loader(
    partition: VertexPartition,
    vertices: Any = "train",
    *,
    fanouts: Fanouts,
    input: str | None = None,
    plan: StrPath | None = None,
    **given: Unpack[LoaderOptions],
) -> Loader | TypedLoader:
    from .loading import Loader, TypedLoader

    if partition.is_typed:
        return TypedLoader(partition, vertices, fanouts=fanouts, input=input, plan=plan, **given)
    if input is not None:
        raise ParameterError(
            "input: this graph has no types, so all of its vertices are of one. Leave it out"
        )
    return Loader(partition, vertices, fanouts=parameters.fanouts_of(fanouts), plan=plan, **given)


@bind(VertexPartition.plan)
def _plan(
    partition: VertexPartition,
    epochs: int = 1,
    *,
    fanouts: Sequence[int],
    vertices: Any = "train",
    workers: int = 1,
    memory: int | str | None = None,
    pack: StrPath | None = None,
    **given: Unpack[PlanOptions],
) -> Plan:
    from .loading.planning.building import plan

    return plan(
        partition,
        epochs,
        fanouts=fanouts,
        vertices=vertices,
        workers=workers,
        memory=memory,
        pack=pack,
        **given,
    )


@bind(VertexPartition.link_loader)
def _link_loader(
    partition: VertexPartition,
    edges: Any = "train",
    *,
    fanouts: Fanouts,
    relation: str | EdgeKey | None = None,
    **given: Unpack[LinkOptions],
) -> LinkLoader | TypedLinkLoader:
    from .loading import LinkLoader, TypedLinkLoader

    if partition.is_typed:
        return TypedLinkLoader(partition, edges, fanouts=fanouts, relation=relation, **given)
    if relation is not None:
        raise ParameterError("relation: this graph has no types, so it has one relation. Leave it out")
    return LinkLoader(partition, edges, fanouts=parameters.fanouts_of(fanouts), **given)


@bind(VertexPartition.save_cache)
def _save_cache(
    partition: VertexPartition,
    cache: float | str = 0.1,
    *,
    fanouts: Fanouts,
    batch_size: int = 1024,
    cache_by: CacheCriterion = "access",
    input: str | None = None,
) -> None:
    from .loading import save_cache

    save_cache(partition, cache, fanouts=fanouts, batch_size=batch_size, cache_by=cache_by, input=input)


@bind(Evaluation.__str__)
def _evaluation_text(evaluation: Evaluation) -> str:
    from .report import evaluation_text

    return evaluation_text(evaluation)


@bind(Evaluation.save)
def _save_evaluation(evaluation: Evaluation, out: StrPath) -> None:
    from .report.files import save_evaluation

    save_evaluation(evaluation, out)


@bind(Evaluation.plot)
def _plot_evaluation(evaluation: Evaluation, out: StrPath | None = None) -> Figure:
    from .report.partitions import draw

    return draw({f"{evaluation.algorithm}, k = {evaluation.k:,}": evaluation}, out)


@bind(Partition.plot)
def _plot_partition(partition: Partition, out: StrPath | None = None) -> Figure:
    from .report.partitions import plot_partition

    return plot_partition(partition, out)


@bind(Comparison.__str__)
def _comparison_text(comparison: Comparison) -> str:
    from .report import comparison_text

    return comparison_text(comparison)


@bind(Comparison._repr_html_)
def _comparison_html(comparison: Comparison) -> str:
    from .report.text import comparison_html

    return comparison_html(comparison)


@bind(Comparison.save)
def _save_comparison(comparison: Comparison, out: StrPath) -> None:
    from .report.files import save_comparison

    save_comparison(comparison, out)


@bind(Comparison.plot)
def _plot_comparison(comparison: Comparison, out: StrPath | None = None) -> Figure:
    from .report.comparisons import plot_comparison

    return plot_comparison(comparison, out)


@bind(Comparison.report)
def _report(comparison: Comparison, out: StrPath) -> None:
    from .report.pages import write_report

    write_report(comparison, out)
