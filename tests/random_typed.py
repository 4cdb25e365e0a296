"""Small typed graphs for tests."""

import json

import numpy as np

import fastpart as fp


def typed_graph(folder, types, relations, **options):
    """Write and open a graph of these numbers of vertices by type, and (source, target, records) by relation.

    Ids in the records count within the types.
    """
    firsts = dict(zip(types, np.cumsum([0, *types.values()]).tolist(), strict=False))
    records, described = [np.zeros((0, 2), np.int64)], []
    for name, (source, target, ends) in relations.items():
        ends = np.asarray(ends, np.int64).reshape(-1, 2)
        records.append(ends + np.array([firsts[source], firsts[target]]))
        described.append({"name": name, "source": source, "target": target, "m": len(ends)})
    records = np.concatenate(records)
    folder.mkdir(exist_ok=True)
    file = folder / "g.bin"
    records.astype("<u4").tofile(file)
    n = sum(types.values())
    content = {"fastpart": 1, "dtype": "u32", "n": n, "m": len(records), "directedness": "undirected"}
    content["types"] = [{"name": name, "n": size} for name, size in types.items()]
    content["relations"] = described
    file.with_name("g.bin.json").write_text(json.dumps(content))
    return fp.open_graph(file, **options)


def random_typed_graph(folder, seed, scale=1, **options):
    """Write and open a random graph of authors, fields and papers."""
    rng = np.random.default_rng(seed)
    types = {"author": 40 * scale, "field": 5 * scale, "paper": 60 * scale}

    def records(source, target, count):
        return np.stack([rng.integers(types[source], size=count), rng.integers(types[target], size=count)], 1)

    relations = {
        name: (source, target, records(source, target, scale * count))
        for name, source, target, count in (
            ("cites", "paper", "paper", 150),
            ("has_topic", "paper", "field", 90),
            ("writes", "author", "paper", 120),
        )
    }
    return typed_graph(folder, types, relations, **options)


def records_of(graph):
    """Return all records."""
    return graph._source.block(0, graph.num_edges).astype(np.int64)
