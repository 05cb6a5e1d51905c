"""Lines of the project's own source are found by what they say."""

import pytest

from explorer.explain.source import Source


@pytest.mark.parametrize(("fragment", "hits"), [("no such text", 0), ("import", 6)])
def test_a_fragment_that_is_not_one_line_is_refused(fragment, hits):
    with pytest.raises(ValueError, match=f"but {hits} do"):
        _ = Source("model/layers/attention.py", fragment).line
