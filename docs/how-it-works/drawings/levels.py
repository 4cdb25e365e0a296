"""Drawings of the page about levels."""

import math

from canvas import LINE, Drawing, Point

GROUPS, EACH = 4, 6
CENTRES = [(38, 32), (142, 32), (38, 108), (142, 108)]


def fine() -> tuple[list[Point], list[tuple[int, int]]]:
    """Return a small graph of four communities: places and edges."""
    step = math.tau / EACH
    places = [
        (cx + 24 * math.cos(step * i + g), cy + 24 * math.sin(step * i + g))
        for g, (cx, cy) in enumerate(CENTRES)
        for i in range(EACH)
    ]
    edges = [
        (EACH * g + i, EACH * g + j)
        for g in range(GROUPS)
        for i in range(EACH)
        for j in (i + 1, i + 2)
        if j < EACH
    ]
    edges += [(EACH * g, EACH * g + EACH - 1) for g in range(GROUPS)]
    between = [(0, 1, 3), (0, 2, 3), (1, 3, 2), (2, 3, 3)]
    for one, other, count in between:
        pairs = [(EACH * one + i, EACH * other + j) for i in range(EACH) for j in range(EACH)]
        edges += sorted(pairs, key=lambda pair: math.dist(places[pair[0]], places[pair[1]]))[:count]
    return places, edges


def contracted(
    places: list[Point], edges: list[tuple[int, int]], size: int
) -> tuple[list[Point], dict[tuple[int, int], int]]:
    """Return the graph of the clusters of so many consecutive vertices, with the weights of its edges."""
    found = []
    for first in range(0, len(places), size):
        members = places[first : first + size]
        found.append((sum(x for x, _ in members) / size, sum(y for _, y in members) / size))
    weights: dict[tuple[int, int], int] = {}
    for u, v in edges:
        pair = (min(u // size, v // size), max(u // size, v // size))
        if pair[0] != pair[1]:
            weights[pair] = weights.get(pair, 0) + 1
    return found, weights


def draw_levels() -> None:
    """Draw the way down and the way back."""
    drawing = Drawing(
        590,
        "Coarsening on the way down, refinement on the way back",
    )
    places, edges = fine()
    rows = [(1, 52, 6), (2, 226, 9), (6, 400, 17)]
    for column, left in ((0, 16), (1, 244)):
        for size, top, radius in rows:
            at, weights = contracted(places, edges, size)
            at = [(x + left, y + top) for x, y in at]
            for (u, v), weight in weights.items():
                part = [EACH * GROUPS // size // 2 <= w for w in (u, v)]
                is_cut = column and part[0] != part[1]
                drawing.line([at[u], at[v]], "cap" if is_cut else "rule", "bold" if weight > 1 else "")
            for v, place in enumerate(at):
                part = int(v >= EACH * GROUPS // size // 2)
                drawing.dot(place, radius, f"part{part}" if column else "plain")
    drawing.text(106, 30, "the way down", "strong", "middle")
    drawing.text(334, 30, "the way back", "strong", "middle")
    for y in (204, 378):
        drawing.arrow([(32, y), (32, y + 28)])
        drawing.text(44, y + 20, "cluster, contract")
        drawing.arrow([(260, y + 28), (260, y)])
        drawing.text(272, y + 20, "project, refine")
    drawing.arrow([(190, 470), (248, 470)], style="bold")
    drawing.text(220, 456, "partition", "", "middle")
    drawing.text(220, 566, "Thick: contracted edges. Red: cut edges.", "faint", "middle")
    drawing.save("levels")


def draw_files() -> None:
    """Draw what lies in files."""
    drawing = Drawing(560, "Which levels lie in memory and which in files, for each path")
    paths = [
        (
            "memory",
            "all levels in memory",
            [
                ("given graph", 1.0, "part0"),
                ("", 0.62, "part0"),
                ("", 0.36, "part0"),
                ("coarsest", 0.2, "part0"),
            ],
        ),
        (
            "one_level",
            "the top keeps at most half of the entries",
            [
                ("given graph", 1.0, "file"),
                ("top, sampled", 0.5, "file"),
                ("", 0.3, "part0"),
                ("coarsest", 0.2, "part0"),
            ],
        ),
        (
            "two_levels",
            "the top keeps 25 % or less",
            [
                ("given graph", 1.0, "file"),
                ("a level", 0.55, "file"),
                ("top, sampled", 0.28, "file"),
                ("coarsest", 0.2, "part0"),
            ],
        ),
    ]
    y = 28.0
    for name, meaning, levels in paths:
        drawing.text(16, y, f'path="{name}"', "strong")
        drawing.text(16, y + LINE, meaning, "faint")
        y += 32
        for label, share, fill in levels:
            width = 400 * share
            drawing.box(16, y, width, 22, "paper" if fill == "file" else fill, "faint", fill == "file")
            if label:
                inside = width > 140
                drawing.text(26 if inside else 24 + width, y + 16.5, label)
            y += 26
        y += 28
    drawing.box(16, y - 4, 22, 22, "part0", "faint")
    drawing.text(46, y + 12.5, "in memory")
    drawing.box(170, y - 4, 22, 22, "paper", "faint", True)
    drawing.text(200, y + 12.5, "in a temporary file")
    drawing.save("levels-in-files")


def draw_jet() -> None:
    """Draw why slack helps."""
    drawing = Drawing(330, "Bounded Jet: full parts exchange groups of vertices through the slack")
    heights = [
        ("both parts\nare full", 120, 120),
        ("groups move\ninto the slack", 132, 114),
        ("loads return\nto the cap", 120, 118),
    ]
    base, scale = 236.0, 1.5
    for index, (caption, one, other) in enumerate(heights):
        x = 62 + 128 * index
        for part, (load, left) in enumerate(((one, x), (other, x + 52))):
            drawing.box(left, base - load * scale, 44, load * scale, f"part{part}")
        if index == 1:
            drawing.box(x, base - one * scale, 44, 54, "part1")
            drawing.box(x + 52, base - other * scale, 44, 36, "part0")
        drawing.text(x + 48, 266, caption, "", "middle")
    cap, slack = base - 120 * scale, base - 132 * scale
    drawing.line([(56, cap), (426, cap)], "cap", "bold")
    drawing.line([(56, slack), (426, slack)], "cap", "dashed")
    drawing.text(16, cap + 6, "cap", "cap")
    drawing.text(16, slack - 8, "cap and slack of 10 %", "cap")
    drawing.text(16, 316, "The best state met within the caps is kept.", "faint")
    drawing.save("jet")


def draw() -> None:
    """Draw all of them."""
    draw_levels()
    draw_files()
    draw_jet()
