"""Drawings of the page about parts, all of one graph of eight vertices."""

from canvas import Drawing, towards

PLACES = {
    0: (50, 60),
    1: (50, 150),
    2: (130, 105),
    5: (175, 175),
    3: (235, 60),
    4: (325, 45),
    6: (290, 150),
    7: (385, 120),
}
RECORDS = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 5), (3, 4), (4, 6), (6, 7), (3, 6), (5, 6)]
PART_OF = {0: 0, 1: 0, 2: 0, 5: 0, 3: 1, 4: 1, 6: 1, 7: 1}


def in_edges(vertex: int) -> list[int]:
    """Return the sources of the in-edges, in the order of the records."""
    return [u if v == vertex else v for u, v in RECORDS if vertex in (u, v)]


def rows_of(part: int) -> tuple[list[int], list[int]]:
    """Return the inner vertices of a part, and its halo."""
    inner = sorted(v for v in PART_OF if PART_OF[v] == part)
    sources = {source for v in inner for source in in_edges(v)}
    return inner, sorted(sources - set(inner))


def draw_graph(drawing: Drawing, y: float, of: int | None) -> None:
    """Draw the graph, or a part with its halo."""
    for u, v in RECORDS:
        ends = [(PLACES[w][0], PLACES[w][1] + y) for w in (u, v)]
        owners = {PART_OF[u], PART_OF[v]}
        if of is None:
            drawing.line(towards(*ends, 17), "cap" if len(owners) > 1 else "faint")
        elif owners == {of}:
            drawing.arrow(towards(*ends, 18), both=True)
        elif of in owners:
            outside, inside = ends if PART_OF[u] != of else ends[::-1]
            drawing.arrow(towards(outside, inside, 18), "cap")
    for v, (x, place) in PLACES.items():
        inner, halo = rows_of(of or 0)
        is_halo = of is not None and v in halo
        if of is None or v in inner or is_halo:
            drawing.dot(
                (x, place + y), 16, f"part{PART_OF[v]}", str(v), "ink" if not is_halo else "faint", is_halo
            )


def draw_parts() -> None:
    """Draw the graph in two parts, and the first of them with its halo."""
    drawing = Drawing(500, "A graph in two parts, and what the first part stores of it")
    drawing.text(16, 30, "the graph, in two parts", "strong")
    draw_graph(drawing, 10, None)
    drawing.text(250, 216, "Red: cut edges.", "faint")
    drawing.text(16, 258, "what part 0 stores", "strong")
    draw_graph(drawing, 240, 0)
    drawing.text(320, 350, "its halo: 3, 6", "faint")
    drawing.text(
        16,
        460,
        "Arrows: in-edges of the inner vertices. Those\nfrom the halo are stored, those to it are not.",
        "faint",
    )
    drawing.save("parts")


def draw_rows() -> None:
    """Draw the arrays of the first part."""
    inner, halo = rows_of(0)
    local = {v: i for i, v in enumerate(inner + halo)}
    lists = [in_edges(v) for v in inner]
    drawing = Drawing(480, "The arrays of part 0: vertices, halo, in-edges by row, features")
    drawing.text(16, 30, "vertices: global ids", "strong")
    fills = ["part0"] * len(inner) + ["part1"] * len(halo)
    drawing.cells(16, 42, 44, [str(v) for v in inner + halo], fills)
    for i in range(len(inner + halo)):
        drawing.text(38 + 44 * i, 90, str(i), "faint", "middle")
    drawing.text(300, 62, "inner, then halo")
    drawing.text(300, 90, "local ids", "faint")
    drawing.text(16, 128, "indptr: where each row begins", "strong")
    ends = [sum(map(len, lists[:i])) for i in range(len(inner) + 1)]
    drawing.cells(16, 140, 44, [str(end) for end in ends], ["plain"] * len(ends))
    drawing.text(16, 204, "indices: local ids of the sources", "strong")
    sources = [local[source] for row in lists for source in row]
    side = 400 / len(sources)
    drawing.cells(16, 216, side, [str(s) for s in sources], [fills[s] for s in sources])
    for end in ends[1:-1]:
        drawing.line([(16 + side * end, 212), (16 + side * end, 250)], "ink", "bold")
    drawing.text(16, 282, "address of the halo", "strong")
    drawing.text(16, 312, "halo_parts")
    drawing.cells(116, 292, 44, [str(PART_OF[v]) for v in halo], ["part1"] * len(halo))
    drawing.text(16, 346, "halo_rows")
    drawing.cells(116, 326, 44, [str(rows_of(1)[0].index(v)) for v in halo], ["part1"] * len(halo))
    drawing.text(220, 330, "row in the other part", "faint")
    drawing.text(16, 392, "features, labels, masks", "strong")
    for row in range(len(inner)):
        drawing.box(16, 404 + 15 * row, 180, 15, "part0")
    drawing.text(212, 436, "one row per inner vertex", "faint")
    drawing.save("rows")


def draw_copies() -> None:
    """Draw a vertex of an edge partition."""
    drawing = Drawing(
        330, "In an edge partition a vertex has a copy in each part that holds one of its edges"
    )
    drawing.text(16, 30, "edges are dealt, vertices are copied", "strong")
    centres = [(82, 140), (220, 140), (358, 140)]
    for part, (x, y) in enumerate(centres):
        drawing.box(x - 62, 52, 124, 170, "paper")
        drawing.text(x, 78, f"part {part}", "", "middle")
        others = [(x - 34, 190), (x + 34, 190), (x, 196)][: 2 + part % 2]
        for other in others:
            drawing.line(towards((x, y), other, 17, 9), "faint")
            drawing.dot(other, 8, f"part{part}")
        drawing.dot((x, y), 17, f"part{part}", "v", "ink" if part == 1 else "faint", part != 1)
    for x, text in ((82, "leaf"), (220, "root"), (358, "leaf")):
        drawing.text(x, 246, text, "strong" if text == "root" else "", "middle")
    drawing.arrow([(102, 128), (200, 128)], "ink")
    drawing.arrow([(338, 128), (240, 128)], "ink")
    drawing.arrow([(200, 152), (102, 152)], "cap")
    drawing.arrow([(240, 152), (338, 152)], "cap")
    drawing.text(16, 282, "Leaves send sums over their edges to the root.", "")
    drawing.text(16, 306, "The root returns the total.", "cap")
    drawing.save("copies")


def draw() -> None:
    """Draw all of them."""
    draw_parts()
    draw_rows()
    draw_copies()
