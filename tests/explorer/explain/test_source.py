"""Source lines of the project, located by their text."""

import pytest

from explorer.explain.source_code import SourceLine


@pytest.mark.parametrize(("fragment", "hits"), [("no such text", 0), ("import", 6)])
def test_a_fragment_that_is_not_one_line_is_refused(fragment, hits):
    with pytest.raises(ValueError, match=f"but {hits} do"):
        _ = SourceLine("model/layers/attention.py", fragment).line
