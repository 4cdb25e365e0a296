"""Drawings of the pages about streams, and of the way from file to training."""

import math

from canvas import Drawing


def draw_overview() -> None:
    """Draw what happens to a graph."""
    drawing = Drawing(
        560, "From an edge file through a partitioner to a partition directory, and to training"
    )
    drawing.text(16, 30, "edge file", "strong")
    drawing.cells(16, 42, 58, ["0 1", "1 2", "0 2", "2 3", "3 4", "…", "6 7"], ["plain"] * 7)
    drawing.arrow([(40, 80), (40, 112)])
    drawing.text(56, 102, "mapped, checked block by block")
    drawing.label(16, 120, 408, 48, "partitioner: O(vertices) in memory", "plain", "strong")
    drawing.arrow([(40, 176), (40, 208)])
    drawing.text(56, 198, "one part for each vertex")
    drawing.cells(
        16,
        218,
        51,
        list("01234567"),
        ["part0", "part0", "part0", "part1", "part1", "part0", "part1", "part1"],
    )
    drawing.arrow([(40, 256), (40, 288)])
    drawing.text(56, 278, "two passes over the edges")
    drawing.text(16, 312, "partition directory", "strong")
    for part in (0, 1):
        text = f"part-0000{part}\nin-edges, halo\nfeatures, labels"
        drawing.label(16 + 212 * part, 324, 196, 84, text, f"part{part}")
    drawing.arrow([(114, 416), (114, 448)])
    drawing.arrow([(326, 416), (326, 448)])
    drawing.text(220, 438, "mapped", "", "middle")
    for part in (0, 1):
        drawing.label(16 + 212 * part, 456, 196, 40, f"worker {part}")
    drawing.text(
        220,
        530,
        "fastpart train, your own loop with the\nloader, or another system by an export",
        "faint",
        "middle",
    )
    drawing.save("overview")


def draw_spring() -> None:
    """Draw the two passes of SPRING and what follows."""
    drawing = Drawing(670, "SPRING: degrees, clusters, merging, dealing to parts")
    drawing.text(16, 30, "kept of each vertex: 16 bytes", "strong")
    for index, text in enumerate(("degree", "cluster", "richest\nneighbour", "its\ndegree")):
        drawing.label(16 + 102 * index, 42, 102, 52, text)
    drawing.text(16, 128, "pass 1: degrees", "strong")
    drawing.cells(16, 140, 58, ["0 1", "1 2", "0 2", "2 3", "3 4", "…", "6 7"], ["plain"] * 7)
    drawing.text(16, 204, "pass 2: clusters", "strong")
    drawing.cells(
        16,
        216,
        58,
        ["0 1", "1 2", "0 2", "2 3", "3 4", "…", "6 7"],
        ["plain"] * 3 + ["part1"] + ["plain"] * 3,
    )
    for x, radius, inside, fill in ((110, 52, ("2", "0", "1"), "part0"), (290, 30, ("3",), "part2")):
        drawing.dot((x, 316), radius, fill, edge="rule")
        for index, text in enumerate(inside):
            angle = math.tau * index / 3
            spread = 28 if len(inside) > 1 else 0
            drawing.dot((x + spread * math.cos(angle), 316 + spread * math.sin(angle)), 14, "paper", text)
    drawing.line([(152, 316), (276, 316)], "faint", "dashed")
    drawing.arrow([(276, 296), (170, 284)], "ink")
    drawing.text(16, 392, "The end in the smaller cluster moves over.", "faint")
    drawing.text(16, 432, "then, without edges: merge and deal", "strong")
    sizes = [(86, "part0"), (64, "part1"), (44, "part2"), (30, "part3"), (18, "part0"), (12, "part1")]
    x = 16.0
    for size, fill in sizes:
        drawing.box(x, 444, size, 26, fill)
        x += size + 6
    drawing.text(x + 4, 463, "clusters")
    drawing.arrow([(120, 480), (120, 506)])
    drawing.text(136, 499, "largest first, to the emptiest part")
    for row, (content, y) in enumerate(
        (
            ([(86, "part0"), (30, "part3"), (12, "part1")], 520),
            ([(64, "part1"), (44, "part2"), (18, "part0")], 560),
        )
    ):
        drawing.text(16, y + 20, f"part {row}")
        x = 80.0
        for size, fill in content:
            drawing.box(x, y, size * 2, 28, fill)
            x += size * 2
    cap = 80 + 2 * 134
    drawing.line([(cap, 512), (cap, 596)], "cap", "bold")
    drawing.text(cap + 8, 558, "cap", "cap")
    drawing.text(16, 626, "A cluster that fits nowhere is split, so that\nno part exceeds the cap.", "faint")
    drawing.save("spring")


def draw_sigma() -> None:
    """Draw preassignment and the rising limit of SIGMA."""
    drawing = Drawing(540, "SIGMA: clusters, preassignment, and a stream under a limit that rises")
    drawing.text(16, 30, "1. clusters, and a part for each cluster", "strong")
    fills = ["part0", "part0", "part0", "part1", "part1", "part0", "part1", "part1"]
    drawing.cells(16, 42, 51, list("01234567"), fills)
    drawing.text(16, 104, "2. preassignment, in order of ids", "strong")
    drawing.cells(
        16,
        116,
        51,
        list("01234567"),
        ["part0", "part0", "part0", "plain", "part1", "part0", "plain", "part1"],
    )
    drawing.text(16, 168, "Vertices 3 and 6 have a neighbour that went\nto another part: they wait.", "faint")
    drawing.text(16, 226, "3. the others, each to the best score", "strong")
    left, bottom, width, height = 96, 440, 310, 180
    start = 0.9

    def place(t: float, load: float) -> tuple[float, float]:
        return left + width * t, bottom - height * (load - 0.85) / 0.17

    drawing.line([place(0, 0.85), place(1, 0.85)], "rule")
    drawing.line([place(0, 0.85), place(0, 1.01)], "rule")
    drawing.line([place(0, 1.0), place(1, 1.0)], "cap", "dashed")
    drawing.line([place(t / 50, start + (1 - start) * math.sqrt(t / 50)) for t in range(51)], "ink", "bold")
    drawing.text(86, place(0, 1.0)[1] + 5.5, "cap", "cap", "end")
    drawing.text(86, place(0, 0.9)[1] + 5.5, "0.9", "", "end")
    drawing.text(200, place(0, 0.93)[1] + 8, "limit of a part's load")
    drawing.text(left, bottom + 22, "0")
    drawing.text(left + width, bottom + 22, "1", "", "end")
    drawing.text(left + width / 2, bottom + 22, "share of the stream", "", "middle")
    drawing.text(16, 494, "The limit keeps capacity in every part for those\nthat come last.", "faint")
    drawing.save("sigma")


def draw_grem() -> None:
    """Draw the chunks of GREM and its bisections."""
    drawing = Drawing(
        600, "GREM: chunks of a shuffled stream, decided again with each chunk, then bisected further"
    )
    drawing.text(16, 30, "all records, shuffled on disk, in chunks", "strong")
    drawing.cells(16, 42, 81.6, ["1", "2", "3", "…", "10"], ["part2"] + ["plain"] * 4)
    drawing.arrow([(56, 78), (56, 108)])
    drawing.arrow([(260, 78), (260, 108)])
    drawing.label(16, 116, 150, 72, "partition it\nin memory", "part2")
    drawing.label(182, 116, 242, 72, "each vertex counts again,\nand may change sides")
    drawing.arrow([(166, 152), (182, 152)])
    drawing.text(16, 222, "counts of vertex v", "strong")
    drawing.text(16, 246, "chunk 1: 3 left, 2 right", "")
    drawing.text(16, 268, "chunk 2: 1 left, 4 right", "")
    drawing.text(16, 290, "0.8 · 3 + 1 = 3.4 left, 0.8 · 2 + 4 = 5.6 right", "")
    drawing.text(16, 312, "v goes to the right.", "faint")
    drawing.text(16, 354, "then the records inside each side", "strong")
    boxes = {0: [(16, 408)], 1: [(16, 199), (225, 199)], 2: [(16, 95), (120, 95), (225, 95), (329, 95)]}
    texts = {
        0: ["all: 4 parts"],
        1: ["left: 2 parts", "right: 2 parts"],
        2: ["part 0", "part 1", "part 2", "part 3"],
    }
    for level, items in boxes.items():
        for index, (x, width) in enumerate(items):
            fill = f"part{index}" if level == 2 else "plain"
            drawing.label(x, 368 + 58 * level, width, 34, texts[level][index], fill)
    for one, two in (
        ((120, 402), (116, 426)),
        ((320, 402), (324, 426)),
        ((70, 460), (64, 484)),
        ((160, 460), (166, 484)),
        ((280, 460), (274, 484)),
        ((370, 460), (376, 484)),
    ):
        drawing.arrow([one, two])
    drawing.text(
        16,
        556,
        "Cut records are not read again. A sub-problem\nthat fits one chunk is partitioned whole.",
        "faint",
    )
    drawing.save("grem")


def draw() -> None:
    """Draw all of them."""
    draw_overview()
    draw_spring()
    draw_sigma()
    draw_grem()
