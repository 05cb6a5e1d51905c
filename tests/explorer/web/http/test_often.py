"""How often somebody did something lately."""

import math
from types import SimpleNamespace

from explorer.web.http import often
from explorer.web.http.often import Often


def test_to_look_counts_nothing_and_what_is_refused_to_one_counts_for_none(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(often, "time", SimpleNamespace(monotonic=lambda: clock.now))
    done = Often(60.0)
    assert [done.wait({"a": 1, "b": math.inf}) for _time in range(3)] == [0, 0, 0]
    assert done.count({"a": 1, "b": 2}) == 0
    clock.now += 20
    assert done.wait({"a": 1}) == done.count({"a": 1, "b": 2}) == 40
    assert done.count({"b": 2}) == 0 and done.count({"b": 2}) == 40
    clock.now += 40
    assert done.count({"a": 1, "b": 2}) == 0 and done.wait({"b": 2}) == 20
