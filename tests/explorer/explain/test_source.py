"""Source lines of the project, located by their text."""

import pytest

from explorer.explain.source_code import SourceLine


@pytest.mark.parametrize(("fragment", "hits"), [("no such text", 0), ("import", 10)])
def test_a_fragment_that_is_not_one_line_is_refused(fragment, hits):
    with pytest.raises(ValueError, match=f"but {hits} do"):
        _ = SourceLine("model/layers/attention.py", fragment).line


def test_a_line_is_found_in_its_definition():
    lines = [
        SourceLine("model/layers/feed_forward.py", "return self.out(", name).line for name in ("FeedForward", "SwiGLU")
    ]
    assert lines[0] < lines[1]
