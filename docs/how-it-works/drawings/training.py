"""Drawings of the page about training: who sends what to whom."""

from canvas import Drawing


def lifelines(drawing: Drawing, names: list[str], top: float, bottom: float) -> list[float]:
    """Draw a lifeline for each process, and return their middles."""
    width = 408 / len(names)
    middles = [16 + width * (i + 0.5) for i in range(len(names))]
    for part, (x, name) in enumerate(zip(middles, names, strict=True)):
        drawing.line([(x, top + 34), (x, bottom)], "rule", "dashed")
        drawing.label(x - width / 2 + 6, top, width - 12, 34, name, f"part{part}")
    return middles


def draw_sampled() -> None:
    """Draw ``sampled``."""
    drawing = Drawing(
        420,
        "sampled: each worker samples from the edges of all parts, and fetches rows of features of other parts",
    )
    drawing.label(16, 16, 408, 40, "in-edges of all parts, mapped by every worker")
    for worker in (0, 1):
        x = 16 + 228 * worker
        drawing.label(x, 104, 180, 96, f"worker {worker}\nbatches of its own\ntraining vertices", "plain")
        drawing.arrow([(x + 90, 58), (x + 90, 102)])
        drawing.label(x, 300, 180, 56, f"features\nof part {worker}", f"part{worker}")
        drawing.arrow([(x + 90, 298), (x + 90, 202)], style="bold")
    drawing.text(220, 86, "sampling sends nothing", "", "middle")
    drawing.arrow([(198, 152), (242, 152)], "ink", both=True)
    drawing.arrow([(180, 298), (290, 202)], "cap")
    drawing.arrow([(260, 298), (150, 202)], "cap")
    drawing.text(16, 384, "Between the workers: gradients, at every step.", "")
    drawing.text(16, 406, "Red: rows of other parts. A small cut has fewer.", "cap")
    drawing.save("train-sampled")


def draw_sdt() -> None:
    """Draw ``sdt``."""
    drawing = Drawing(
        390,
        "sdt: each worker trains a copy of the model on its parts one after another, and the copies are averaged",
    )
    for worker in (0, 1):
        x = 16 + 228 * worker
        drawing.label(x, 16, 180, 76, f"worker {worker}\na copy of the model")
        drawing.arrow([(x + 90, 140), (x + 90, 94)], style="bold")
        drawing.label(x, 142, 180, 56, f"part {worker} with its halo\nin memory", f"part{worker}")
        drawing.label(x, 214, 180, 36, f"part {worker + 2}: next", f"part{worker + 2}", dashed=True)
        drawing.label(x, 262, 180, 36, f"part {worker + 4}: later", "plain", dashed=True)
    drawing.arrow([(198, 54), (242, 54)], "ink", both=True)
    drawing.text(
        16,
        332,
        "Between the workers: weights and the moments\nof Adam, once per round. Nothing about vertices.",
    )
    drawing.text(16, 378, "The halo lies with the part, so memory pays.", "cap")
    drawing.save("train-sdt")


def draw_distgnn() -> None:
    """Draw a layer of ``distgnn``."""
    drawing = Drawing(
        492, "distgnn: leaves send sums to their root, and the root returns the total, in every layer"
    )
    at = lifelines(drawing, ["leaf of v", "root of v", "leaf of v"], 16, 352)
    for x in at:
        drawing.label(x - 58, 60, 116, 52, "sums over\nown edges")
    drawing.arrow([(at[0], 132), (at[1] - 3, 132)], "ink", "bold")
    drawing.arrow([(at[2], 132), (at[1] + 3, 132)], "ink", "bold")
    drawing.text(at[0] + 16, 160, "partial sums")
    drawing.text(at[1] + 16, 160, "partial sums")
    drawing.label(at[1] - 58, 176, 116, 34, "total")
    drawing.arrow([(at[1], 238), (at[0] + 3, 238)], "cap", "bold")
    drawing.arrow([(at[1], 238), (at[2] - 3, 238)], "cap", "bold")
    drawing.text(at[0] + 46, 266, "total", "cap")
    drawing.text(at[1] + 46, 266, "total", "cap")
    for x in at:
        drawing.label(x - 58, 284, 116, 52, "linear layer,\nevery copy")
    drawing.text(
        16,
        384,
        "So in every layer, and back again for gradients:\na vertex with c copies costs 2 (c - 1) rows.",
    )
    drawing.text(
        16,
        440,
        "With delay=R the messages of an R-th of the\nvertices are sent, and used R epochs later.",
        "faint",
    )
    drawing.save("train-distgnn")


def draw_sancus() -> None:
    """Draw a layer of ``sancus``."""
    drawing = Drawing(
        466, "sancus: blocks of rows are broadcast one after another, unless the copies are fresh enough"
    )
    at = lifelines(drawing, ["rows of part 0", "part 1", "part 2"], 16, 342)
    for owner, y in enumerate((92, 172, 252)):
        others = [x for i, x in enumerate(at) if i != owner]
        skipped = owner == 1
        for x in others:
            gap = 3 if x < at[owner] else -3
            drawing.arrow(
                [(at[owner], y), (x + gap, y)], "rule" if skipped else "cap", "dashed" if skipped else "bold"
            )
        if skipped:
            drawing.text(at[0] + 10, y + 24, "skipped: copies are fresh enough", "faint")
        else:
            drawing.text(at[0] + 10, y + 24, f"broadcast {owner + 1}: all rows of part {owner}", "")
        drawing.dot((at[owner], y), 7, f"part{owner}")
    drawing.text(16, 374, "Each adds what its in-edges need. Gradients\nreturn the same way.")
    drawing.text(16, 424, 'rows="boundary": only the rows that a reader\nhas edges from.', "faint")
    drawing.save("train-sancus")


def draw_distdgl() -> None:
    """Draw ``distdgl``."""
    drawing = Drawing(410, "distdgl: trainers ask the servers of all parts for neighbours and features")
    for part in (0, 1):
        x = 16 + 228 * part
        drawing.label(x, 16, 180, 76, f"trainer {part}\nits part of the\ntraining vertices")
        drawing.label(
            x, 236, 180, 76, f"server of part {part}\nedges and features\nin /dev/shm", f"part{part}"
        )
        drawing.arrow([(x + 90, 94), (x + 90, 234)], style="bold", both=True)
    drawing.arrow([(198, 54), (242, 54)], "ink", both=True)
    drawing.arrow([(150, 94), (290, 234)], "cap", both=True)
    drawing.arrow([(290, 94), (150, 234)], "cap", both=True)
    drawing.text(16, 346, "Between the trainers: gradients, at every step.")
    drawing.text(16, 370, "Red: neighbours and features of other parts.", "cap")
    drawing.text(16, 394, "Trainers have equally many vertices.", "faint")
    drawing.save("train-distdgl")


def draw() -> None:
    """Draw all of them."""
    draw_sampled()
    draw_sdt()
    draw_distgnn()
    draw_sancus()
    draw_distdgl()
