"""Scores of links: ranks, MRR, Hits and AUC of logits against a ranking by hand, and the decoders that make logits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from fastpart.train.methods.links import ranking  # noqa: E402
from fastpart.train.methods.links.decoders import MLP, Cosine, Dot  # noqa: E402
from fastpart.train.methods.links.scoring import ranks_among  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@settings(max_examples=100)
@given(st.integers(1, 12), st.integers(0, 9), st.integers(1, 4), st.integers(0, 99))
def test_ranks_against_brute_force(count, candidates, levels, seed):
    random = np.random.default_rng(seed)
    positives, others = random.integers(0, levels, count), random.integers(0, levels, (count, candidates))
    counted = random.random((count, candidates)) < 0.8
    logits = torch.tensor(positives), torch.tensor(others)
    found = (1 + ranking.ahead(*logits, torch.tensor(counted))).tolist()
    expected = []
    for own, row, mask in zip(positives, others, counted, strict=True):
        ordered = sorted([*row[mask].tolist(), own], reverse=True)
        places = [place for place, each in enumerate(ordered, 1) if each == own]
        expected.append(sum(places) / len(places))  # the mean place of equal ones
    assert found == expected
    scores = ranking.scores(ranking.tally(torch.tensor(expected, dtype=torch.float64)))
    assert scores["mrr"] == pytest.approx(np.mean([1 / rank for rank in expected]))
    for k in (1, 3, 10):
        assert scores[f"hits@{k}"] == pytest.approx(np.mean([rank <= k for rank in expected]))
    negatives = others.reshape(-1)
    if len(negatives):
        share = [[(one > other) + 0.5 * (one == other) for other in negatives] for one in positives]
        auc = ranking.below(torch.tensor(positives).float(), torch.tensor(negatives).float()).mean().item()
        assert auc == pytest.approx(np.mean(share))


@pytest.mark.parametrize("decoder", [Cosine(), Dot(), MLP(5)])
def test_equal_rows_are_ties(decoder, monkeypatch):
    monkeypatch.setattr("fastpart.train.methods.links.scoring._LOGITS", 70)  # several products
    row, decoder = torch.randn(5, generator=torch.Generator().manual_seed(0)).double(), decoder.double()
    pairs = torch.tensor([[0, 1], [2, 1], [30, 31], [3, 0], [7, 8]])
    with torch.no_grad():
        positives = decoder(row.expand(5, -1), row.expand(5, -1)).float()
        answers = np.array([0, 0, 0, 2, 4]), np.array([5, 6, 40, 30, 8])  # places of pairs, and vertices
        candidates = torch.arange(29), row.expand(29, -1)
        raw, filtered = ranks_among(decoder, pairs, row.expand(5, -1), positives, *candidates, answers)
    assert raw.tolist() == [14.5, 14.5, 15.5, 14.5, 14.5]
    assert filtered.tolist() == [
        13.5,
        14.5,
        15.5,
        14.5,
        14.5,
    ]  # 40 and 30 are no candidates, 8 is the target itself


def test_logits_that_are_nan_have_no_rank():
    positives, counted = torch.tensor([1.0, np.nan, 1.0, 1.0]), torch.ones(4, 2, dtype=torch.bool)
    others = torch.tensor([[0.0, 2.0], [0.0, 0.0], [np.nan, 0.0], [np.nan, 0.0]])
    counted[3, 0] = False
    found = 1 + ranking.ahead(positives, others, counted)
    assert np.array_equal(found, [2, np.nan, np.nan, 1], equal_nan=True)
    assert all(map(np.isnan, ranking.scores(ranking.tally(found)).values()))
    assert ranking.below(positives, torch.zeros(2)).isnan().tolist() == [False, True, False, False]
    assert ranking.below(positives, torch.tensor([0.0, np.nan])).isnan().all()


def test_no_positives_have_no_scores():
    assert np.isnan(ranking.scores(torch.zeros(ranking.COUNTS))["mrr"])


@pytest.mark.parametrize("decoder", [Cosine(), Dot(), MLP(4)])
def test_decoders_score_pairs_as_all_pairs(decoder):
    random = torch.Generator().manual_seed(0)
    one, other = (torch.randn(5, 4, generator=random) for _ in range(2))
    with torch.no_grad():
        torch.testing.assert_close(decoder.against(one, other).diagonal(), decoder(one, other))
