"""The scheduler: any schedule makes the batches of a plain loop, in order, and launches by the score of the paper."""

import itertools
import json
import math
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpart.loading.scheduler import SIGMA, Dag, Launching, Operator, Pieces, Scheduler
from fastpart.loading.scheduler import operators as operators_of
from fastpart.loading.trace import Trace, save_events
from soaked import examples


def scheduler(threads=2, free_bytes=1 << 20, size=lambda batch: 1, trace=None, launching=None):
    return Scheduler(threads, launching or Launching(2), free_bytes, size, trace)


def threads_of():
    return [thread for thread in threading.enumerate() if thread.name.startswith("fastpart-sample")]


def test_a_thread_that_fails_outside_of_tasks_ends_the_loop_with_its_cause():
    def fails(batch):
        raise ZeroDivisionError("no size")

    operators = Dag([Operator("seed", lambda making: making.step)])
    with pytest.raises(ZeroDivisionError, match="no size"):
        list(scheduler(threads=1, size=fails).batches(operators, 5))
    assert threads_of() == []


# The graph of operators.


@st.composite
def dags(draw):
    """Names in an order, and for each those before it that it waits for."""
    count = draw(st.integers(1, 6))
    names = [f"op{number}" for number in range(count)]
    waits = {
        name: tuple(draw(st.sets(st.sampled_from(names[:number]))) if number else ())
        for number, name in enumerate(names)
    }
    others = set(names[:-1])
    waits[names[-1]] = tuple(others)  # the last one gives the batch
    return waits


@examples(15)
@given(waits=dags(), steps=st.integers(0, 12), threads=st.integers(1, 4), pieces=st.integers(0, 3))
def test_any_graph_gives_what_a_loop_gives(waits, steps, threads, pieces):
    def operator(name):
        def run(making):
            value = (name, making.step, tuple(making[other] for other in sorted(waits[name])))
            done = []
            if not pieces:
                return value
            return Pieces([lambda: done.append(1)] * pieces, (value, done))

        return Operator(name, run, waits[name])

    def expected(step):
        results = {}
        for name in waits:  # in the order of the names, which is one of the graph
            value = (name, step, tuple(results[other] for other in sorted(waits[name])))
            results[name] = (value, [1] * pieces) if pieces else value
        return results[name]

    shuffled = sorted((operator(name) for name in waits), key=lambda each: hash(each.name))
    found = list(scheduler(threads).batches(Dag(shuffled), steps))
    assert found == [expected(step) for step in range(steps)]
    assert not threads_of()


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ([("a", ()), ("a", ())], "a name occurs twice"),
        ([("a", ("b",))], "b is waited for, but not there"),
        ([("a", ("b",)), ("b", ("a",))], "they wait for each other"),
    ],
)
def test_graphs_that_cannot_run_are_refused(operators, message):
    with pytest.raises(ValueError, match=message):
        Dag([Operator(name, print, after) for name, after in operators])


def test_the_graphs_of_the_paper():
    run = [print] * 3
    assert [(each.name, each.after) for each in operators_of(*run).operators.values()] == [
        ("seed", ()),
        ("neighbourhood", ("seed",)),
        ("features", ("neighbourhood",)),
    ]
    of_edges = operators_of(*run, positive=print, negative=print)
    waits = {each.name: each.after for each in of_edges.operators.values()}
    assert waits["positive"] == waits["negative"] == ("seed",)
    assert set(waits["neighbourhood"]) == {"positive", "negative"}


# The fine level.


def test_earlier_batches_come_first_and_then_cheaper_tasks():
    began, costs = [], {"cheap": 0.001, "dear": 0.02}
    blocked = threading.Event()

    def run(name):
        def work(making):
            if making.step == 0:
                blocked.wait(10)  # until all batches are launched
            began.append((making.step, name))
            time.sleep(costs[name])

        return work

    dag = Dag(
        [
            Operator("dear", run("dear")),
            Operator("cheap", run("cheap")),
            Operator("end", lambda making: making.step, ("dear", "cheap")),
        ]
    )
    schedule = scheduler(threads=1)
    for name, cost in costs.items():
        schedule.costs[name].add(cost)
    blocked.set()
    assert list(schedule.batches(dag, 4)) == [0, 1, 2, 3]
    assert began == [(step, name) for step in range(4) for name in ("cheap", "dear")]


# The coarse level.


class Clocks:
    """A time and a processor time that tests set."""

    now = used = 0.0


def launching(gap, utilisation, making, training):
    clocks = Clocks()
    found = Launching(2, lambda: clocks.now, lambda: clocks.used)
    for seconds in making:
        found.making.add(seconds)
    for seconds in training:
        found.training.add(seconds)
    clocks.now, clocks.used = gap, utilisation * gap * 2
    return found


@examples(25)
@given(
    gap=st.floats(0.001, 10),
    utilisation=st.floats(0, 1),
    making=st.lists(st.floats(0.001, 5), min_size=1, max_size=4),
    training=st.lists(st.floats(0.001, 5), min_size=1, max_size=4),
    queue=st.integers(0, 20),
)
def test_the_score_is_that_of_the_paper(gap, utilisation, making, training, queue):
    found = launching(gap, utilisation, making, training)
    sample, train = sum(making) / len(making), sum(training) / len(training)
    balance = sample / (train * (queue or 1))
    f = 101 - math.e ** (100 * utilisation / (100 / math.log(101)))
    assert found.score(queue) == pytest.approx(gap / train * f * balance, rel=1e-6, abs=1e-9)
    assert found.is_due(queue) == (found.score(queue) >= SIGMA)


def test_the_ends_of_the_score():
    assert launching(1, 1, [1], [1]).score(1) == pytest.approx(
        0, abs=1e-9
    )  # nothing is left of the processors
    assert launching(1, 0, [1], [1]).score(0) == launching(1, 0, [1], [1]).score(1) == 100
    assert launching(1, 0, [1], []).score(1) == launching(1, 0, [], [1]).score(1) == 0  # not known yet
    assert launching(1, 0.5, [1], [0]).score(5) == math.inf
    assert launching(0, 0, [1], [1]).utilisation == 1  # no time has passed
    found = launching(4, 0, [1], [1])
    found.launched()
    assert found.gap == 0


class Never(Launching):
    """A score that never launches."""

    def is_due(self, queue):
        return False


class Always(Launching):
    """A score that always launches."""

    def is_due(self, queue):
        return True


def ahead_of(schedule, steps=30, sleep=0.002):
    """Return how many batches were made or begun, before each was asked for."""
    began = []
    dag = operators_of(lambda making: began.append(making.step), lambda _: None, lambda making: making.step)
    seen = []
    for step in schedule.batches(dag, steps):
        time.sleep(sleep)
        seen.append(len(began) - step - 1)
    assert sorted(began) == list(range(steps))
    return seen


def test_without_a_score_one_batch_is_under_way():
    assert max(ahead_of(scheduler(threads=3, launching=Never(2)))[2:]) == 1


def test_memory_bounds_what_waits():
    free = ahead_of(scheduler(launching=Always(2), free_bytes=1000, size=lambda batch: 10))
    assert max(free) > 8
    tight = ahead_of(scheduler(launching=Always(2), free_bytes=45, size=lambda batch: 10))
    assert 2 <= max(tight[2:]) <= 4
    none = ahead_of(scheduler(launching=Always(2), free_bytes=0, size=lambda batch: 10))
    assert max(none[2:]) == 1  # one is always made


def test_long_batches_are_begun_early():
    def made(launch):
        schedule = scheduler(threads=2, launching=launch)
        dag = operators_of(
            lambda making: None,
            lambda making: time.sleep(0.05 if making.step % 10 == 5 else 0.002),
            lambda making: making.step,
        )
        idle, batches = 0.0, schedule.batches(dag, 40)
        while True:
            start = time.perf_counter()
            step = next(batches, None)
            idle += time.perf_counter() - start
            if step is None:
                return idle
            time.sleep(0.015)

    assert made(Launching(2)) < 0.5 * made(Never(2))


# Errors and ends.


def test_an_error_comes_in_the_place_of_its_batch():
    def fails(making):
        if making.step == 3:
            raise LookupError("batch 3")
        return making.step

    dag = Dag([Operator("a", lambda making: making.step), Operator("b", fails, ("a",))])
    batches = scheduler(threads=3).batches(dag, 10)
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError, match="batch 3"):
        next(batches)
    assert not threads_of()


def test_an_error_of_a_piece():
    def broken():
        raise LookupError("a piece")

    dag = Dag([Operator("a", lambda making: Pieces([broken, lambda: None, broken], making.step))])
    with pytest.raises(LookupError, match="a piece"):
        list(scheduler().batches(dag, 3))
    assert not threads_of()


def test_the_other_tasks_of_a_batch_that_failed_change_nothing():
    def broken(making):
        if making.step == 2:
            raise LookupError("a task")

    dag = Dag(
        [
            Operator("broken", broken),
            Operator("slow", lambda making: time.sleep(0.05)),
            Operator("end", lambda making: making.step, ("broken", "slow")),
        ]
    )
    batches = scheduler(threads=3, launching=Always(2)).batches(dag, 6)
    assert [next(batches), next(batches)] == [0, 1]
    time.sleep(0.3)  # so that all tasks end before the error is asked for
    with pytest.raises(LookupError, match="a task"):
        next(batches)


def test_an_epoch_that_is_left_ends_its_threads():
    dag = operators_of(lambda making: None, lambda _: None, lambda making: making.step)
    batches = scheduler(threads=4).batches(dag, 1000)
    assert next(batches) == 0
    assert threads_of()
    batches.close()
    assert not threads_of()


# The trace.


def test_a_trace_tells_who_waited_for_what(tmp_path):
    trace = Trace(3, "worker 3")
    schedule = scheduler(threads=2, trace=trace)
    dag = operators_of(
        lambda making: None,
        lambda making: time.sleep(0.01),
        lambda making: Pieces([lambda: None] * 2, making.step),
    )
    start = time.perf_counter()
    for _ in range(2):
        assert list(schedule.batches(dag, 5)) == list(range(5))
    seconds = time.perf_counter() - start
    trace.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    tasks = {name: [span for span in spans if span["name"] == name] for name in dag.operators}
    assert [len(found) for found in tasks.values()] == [10, 10, 30]  # the third has two pieces
    assert all(span["dur"] >= 10_000 for span in tasks["neighbourhood"])
    waits = [span for span in spans if span["name"] == "wait"]
    assert waits[0]["args"]["step"] == 0
    assert waits[0]["args"]["waits_for"][-2:] == ["neighbourhood", "features"]
    assert 0.01 <= sum(span["dur"] for span in waits) / 1e6 <= seconds
    launches = [event for event in events if event["name"] == "launch"]
    assert [event["args"]["step"] for event in launches] == [*range(5), *range(5)]
    for before, after in itertools.pairwise(launches):
        assert after["args"]["gap"] == pytest.approx((after["ts"] - before["ts"]) / 1e6, abs=0.004)
    arrows = {kind: [event["id"] for event in events if event["ph"] == kind] for kind in "sf"}
    assert sorted(arrows["s"]) == sorted(arrows["f"])
    assert len(set(arrows["s"])) == 10
    assert {event["pid"] for event in events} == {3}
    assert min(event["ts"] for event in events if "ts" in event) == 0
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"worker 3", "MainThread", "fastpart-sample-0"} <= names


def test_traces_of_processes_share_their_time(tmp_path):
    traces = [Trace(number, f"worker {number}") for number in range(2)]
    for trace, name in zip(traces, ("first", "second"), strict=True):
        start = trace.now()
        time.sleep(0.01)
        trace.span(name, start)
    save_events([event for trace in traces for event in trace.events()], tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    first, second = (event for event in events if event["ph"] == "X")
    assert first["ts"] == 0 < first["dur"] <= second["ts"]
    save_events([], tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text()) == {"traceEvents": []}
