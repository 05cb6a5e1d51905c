import pytest

from model.generation.autoregressive import StopStringScanner, truncate_at_stop
from model.pretrained.tokenizer import read_tokenizer_json
from tests.model.pretrained.tokenizer_kinds import tokenizer_json
from tests.subtest_loops import subtest_each


def read_until_stop(stops: StopStringScanner, ids: list[int]) -> list[str | None]:
    """Return the stop string that each token completes, or None; end at the first completed one."""
    completed = []
    for token_id in ids:
        completed.append(stops.add_token(token_id))
        if completed[-1] is not None:
            break
    return completed


@subtest_each("stop", ["fox", "x w", "the moon.", " wanted the m", "O", "Once upon a time there was a fox"])
def test_token_that_completes_stop_string_is_found(tiny_tokenizer, stop):
    text = "Once upon a time there was a fox who wanted the moon."
    ids = tiny_tokenizer.encode(text)
    completed = read_until_stop(StopStringScanner(stop, tiny_tokenizer), ids)
    assert completed == [None] * (len(completed) - 1) + [stop]
    generated = tiny_tokenizer.decode(ids[: len(completed)])
    assert stop in generated
    assert stop not in tiny_tokenizer.decode(ids[: len(completed) - 1])
    assert truncate_at_stop(generated, stop) == text[: text.index(stop) + len(stop)]


def test_stop_string_within_token_or_across_bytes_is_found(tiny_tokenizer):
    of_bytes = {tiny_tokenizer.token_bytes(i): i for i in range(256)}
    assert read_until_stop(StopStringScanner("é!", tiny_tokenizer), [of_bytes[bytes([b])] for b in "aé!b".encode()])[
        -2:
    ] == [
        None,
        "é!",
    ]
    (longest,) = tiny_tokenizer.encode(" moon")
    assert read_until_stop(StopStringScanner("oo", tiny_tokenizer), [longest]) == ["oo"]


def test_failed_partial_match_is_dropped(tiny_tokenizer):
    ids = tiny_tokenizer.encode("aab aabaab.")
    assert read_until_stop(StopStringScanner("aaba", tiny_tokenizer), ids)[-1] == "aaba"
    assert set(read_until_stop(StopStringScanner("aabb", tiny_tokenizer), ids)) == {None}


def test_first_completed_stop_string_wins(tiny_tokenizer):
    ids = tiny_tokenizer.encode("the fox asked the owl")
    assert read_until_stop(StopStringScanner(["the owl", "asked the", "zebra"], tiny_tokenizer), ids)[-1] == "asked the"
    (moon,) = tiny_tokenizer.encode(" moon")
    assert read_until_stop(StopStringScanner(["on", "m", "oon"], tiny_tokenizer), [moon]) == ["m"]


@pytest.mark.parametrize("strings", ["", (), [], [""], {""}], ids=repr)
def test_no_stop_strings_need_no_tokenizer(strings):
    assert read_until_stop(StopStringScanner(strings, None), [1, 2, 10**9]) == [None] * 3


def test_stop_strings_require_tokenizer():
    with pytest.raises(ValueError, match="pass the model's tokenizer"):
        StopStringScanner("x", None)


def test_text_without_stop_string_is_unchanged():
    assert truncate_at_stop("a b", None) == "a b"
    assert truncate_at_stop("a b a b", "b") == "a b"


def test_stop_string_with_space_removed_by_decoder_is_found(tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer_json("BPE, </w>"))
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", 500, [])
    ids = tokenizer.encode("there was a fox")
    assert read_until_stop(StopStringScanner("was ", tokenizer), ids)[-1] == "was "
    assert truncate_at_stop(tokenizer.decode(ids[:2]), "was ") == "there was"
    assert truncate_at_stop(tokenizer.decode(ids), "was ") == "there was "


def test_lone_surrogate_matches_replacement_character(tiny_tokenizer):
    assert (
        read_until_stop(StopStringScanner("b\ud83d", tiny_tokenizer), tiny_tokenizer.encode("ab\ufffdc"))[-1]
        == "b\ufffd"
    )
