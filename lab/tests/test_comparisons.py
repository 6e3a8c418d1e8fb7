"""Ranks, differences and means over data sets, against oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from scboost_lab.comparisons import compare, mean_ranks, means

TABLE = st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9]), min_size=4, max_size=4), min_size=1, max_size=8)


def as_means(values):
    """By method and set, from a list of sets with one value a method."""
    return {f"m{j}": {f"d{i}": row[j] for i, row in enumerate(values)} for j in range(len(values[0]))}


@given(TABLE, st.sampled_from([-1, 1]))
@settings(deadline=None, max_examples=60)
def test_ranks_by_counting(values, sign):
    table = as_means(values)
    sets = sorted(table["m0"])
    found = mean_ranks(table, list(table), sets, sign)
    for m in table:
        ranks = []
        for d in sets:
            better = sum(sign * (table[o][d] - table[m][d]) > 0 for o in table)
            equal = sum(table[o][d] == table[m][d] for o in table)
            ranks.append(1 + better + (equal - 1) / 2)
        assert found[m] == pytest.approx(np.mean(ranks))
    assert sum(found.values()) == pytest.approx(len(table) * (len(table) + 1) / 2)


def test_comparison_against_scipy():
    rng = np.random.default_rng(0)
    table = as_means(rng.normal(size=(18, 2)).tolist())
    sets = list(table["m0"])
    d = np.array([table["m0"][s] - table["m1"][s] for s in sets])
    found = compare(table, "m0", "m1", sets, sign=-1)
    boot = stats.bootstrap((d,), np.mean, method="percentile", n_resamples=10_000, random_state=1)
    assert found.difference == pytest.approx(d.mean())
    assert found.p == pytest.approx(stats.wilcoxon(d).pvalue)
    assert found.wins == np.sum(d < 0)
    assert (found.low, found.high) == pytest.approx(tuple(boot.confidence_interval), abs=0.03)
    back = compare(table, "m1", "m0", sets, sign=-1)
    assert back.difference == pytest.approx(-found.difference)
    assert back.wins + found.wins == len(sets)


def test_comparison_with_itself_is_no_difference():
    table = as_means([[0.3, 0.3], [0.5, 0.5]])
    found = compare(table, "m0", "m1", ["d0", "d1"], sign=1)
    assert (found.difference, found.p, found.wins, found.n) == (0.0, 1.0, 0, 2)


def test_means_skip_what_a_method_does_not_have():
    rows = [
        {"method": "a", "dataset": "d", "redundancy": ""},
        {"method": "b", "dataset": "d", "redundancy": "0.25"},
        {"method": "b", "dataset": "d", "redundancy": "0.75"},
    ]
    table = means(rows, "redundancy")
    assert table == {"b": {"d": 0.5}}
