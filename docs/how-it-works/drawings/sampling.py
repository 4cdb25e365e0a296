"""Drawings of the page about sampling."""

import random

from canvas import Drawing

MASK = 2**64 - 1
KEY = {"seed": 0, "epoch": 3, "step": 1, "hop": 0, "vertex": 7}
DEGREE, FANOUT = 8, 3


def splitmix64(x: int) -> int:
    """Return the pseudorandom number of a number."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def picks() -> list[int]:
    """Return the positions that ``rust/sampling/methods/uniform.rs`` picks for the key."""
    seed, *rest, vertex = KEY.values()
    key = splitmix64(seed)
    for number in rest:
        key = splitmix64(key ^ number)
    draws, found = splitmix64(key ^ vertex), []
    for index, last in enumerate(range(DEGREE - FANOUT, DEGREE)):
        bits = splitmix64((draws + index * 0x9E3779B97F4A7C15) & MASK)
        position = bits * (last + 1) >> 64
        found.append(last if position in found else position)
    return found


def draw_sample() -> None:
    """Draw how the in-edges of a vertex are picked."""
    drawing = Drawing(360, "A sample is a function of seed, epoch, step, hop and vertex")
    for index, (name, value) in enumerate(KEY.items()):
        drawing.label(16 + 82 * index, 16, 76, 52, f"{name}\n{value}")
        drawing.arrow([(54 + 82 * index, 70), (150 + 35 * index, 98)])
    drawing.label(120, 102, 200, 34, "splitmix64", style="mono")
    drawing.arrow([(220, 138), (220, 166)])
    drawing.text(16, 188, "in-edges of vertex 7, in the order of records", "strong")
    chosen = picks()
    fills = ["part1" if i in chosen else "plain" for i in range(DEGREE)]
    drawing.cells(16, 200, 51, [str(i) for i in range(DEGREE)], fills)
    text = f"Fanout {FANOUT} of degree {DEGREE}: positions {', '.join(map(str, sorted(chosen)))}."
    drawing.text(16, 256, text)
    drawing.text(
        16,
        288,
        "Every partition lists the in-edges of a vertex\nin this order. So all draw these edges of it.",
        "faint",
    )
    drawing.save("sample")


def draw_batch() -> None:
    """Draw the levels of a batch."""
    drawing = Drawing(430, "The levels of a batch, and the rows that each layer of a network reads")
    levels = [["a", "b"], ["c", "d", "e"], ["b", "f", "g", "h", "a"]]
    xs, at = (60, 160, 270), {}
    for level, names in enumerate(levels):
        for i, name in enumerate(names):
            at[level, name] = (xs[level], 176 + 50 * (i - (len(names) - 1) / 2))
    edges = [
        [("a", "c"), ("a", "d"), ("b", "d"), ("b", "e")],
        [("c", "b"), ("c", "f"), ("d", "f"), ("d", "g"), ("e", "h"), ("e", "a")],
    ]
    for hop, pairs in enumerate(edges):
        for target, source in pairs:
            (tx, ty), (sx, sy) = at[hop, target], at[hop + 1, source]
            drawing.arrow([(sx - 16, sy), (tx + 18, ty)])
    owner = dict.fromkeys("abcd", "part0") | dict.fromkeys("efgh", "part1")
    for (_, name), place in at.items():
        drawing.dot(place, 16, owner[name], name)
    for x, text in zip(xs, ("level 0\nseeds", "level 1\nhop 0", "level 2\nhop 1"), strict=True):
        drawing.text(x, 24, text, "", "middle")
    drawing.text(310, 150, "features are\nread for the\nnodes of all\nlevels", "faint")
    rows = [name for names in levels for name in names]
    side = 408 / len(rows)
    drawing.cells(16, 320, side, rows, [owner[name] for name in rows])
    drawing.line([(16, 360), (16 + side * 5 - 3, 360)], "ink", "bold")
    drawing.text(16, 382, "layer 1 computes levels 0, 1")
    drawing.line([(16, 394), (16 + side * 2 - 3, 394)], "cap", "bold")
    drawing.text(16, 416, "layer 2: level 0", "cap")
    drawing.save("batch")


def draw_same() -> None:
    """Draw one sample under three partitions."""
    drawing = Drawing(330, "The same sample under three partitions: only the owners of the vertices differ")
    owners = [
        dict.fromkeys("abcdefg", 0),
        {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 1, "g": 1},
        dict(zip("abcdefg", (0, 2, 1, 0, 2, 1, 0), strict=True)),
    ]
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "f"), ("c", "g")]
    for index, (owner, title) in enumerate(
        zip(owners, ("one part", "two parts", "three parts"), strict=True)
    ):
        left = 16 + 140 * index
        at = {
            "a": (64, 70),
            "b": (34, 130),
            "c": (94, 130),
            "d": (16, 190),
            "e": (48, 190),
            "f": (80, 190),
            "g": (112, 190),
        }
        at = {name: (x + left, y) for name, (x, y) in at.items()}
        drawing.text(left + 64, 34, title, "strong", "middle")
        remote = 0
        for target, source in edges:
            drawing.line([at[target], at[source]], "rule")
        for name, place in at.items():
            drawing.dot(place, 13, f"part{owner[name]}", name)
            remote += owner[name] != owner["a"]
        drawing.text(left + 64, 234, f"remote rows: {remote}", "cap" if remote else "", "middle")
    drawing.text(
        16,
        276,
        "Same vertices, same edges, same loss.\nOnly who owns the rows differs, and so what\nis sent.",
        "faint",
    )
    drawing.save("same-sample")


def draw_sampled_batches() -> None:
    """Draw how 64 batches are sampled at once."""
    drawing = Drawing(390, "Traffic prediction: a mask of bits per vertex, one bit per sampled batch")
    chance = random.Random(5)
    masks = {"t": [1, 0, 1, 1, 0, 1, 0, 1]}
    masks["s"] = [bit * (chance.random() < 0.5) for bit in masks["t"]]
    masks["u"] = [bit * (chance.random() < 0.5) for bit in masks["t"]]
    for name, y, fill in (("t", 70, "part0"), ("s", 200, "part0"), ("u", 270, "part1")):
        drawing.dot((40, y), 18, fill, name)
        shown = [str(int(bit)) for bit in masks[name]]
        drawing.cells(76, y - 14, 28, shown, ["plain" if bit == "0" else fill for bit in shown])
        drawing.text(308, y + 5.5, f"of part {fill[-1]}", "faint")
    drawing.text(16, 30, "which of 8 drawn batches hold the vertex", "strong")
    drawing.arrow([(40, 90), (40, 180)])
    drawing.text(60, 124, "each in-edge of t passes each bit on\nwith probability min(1, fanout / degree)")
    drawing.arrow([(24, 84), (10, 130), (10, 230), (24, 258)])
    count = sum(masks["u"])
    drawing.text(16, 326, f"Part 0 fetches u in {int(count)} of the 8 batches.", "cap")
    drawing.text(16, 354, "fastpart draws 64 batches at once, in one pass\nover the edges per hop.", "faint")
    drawing.save("sampled-batches")


def draw() -> None:
    """Draw all of them."""
    draw_sample()
    draw_batch()
    draw_same()
    draw_sampled_batches()
