import math
from dataclasses import replace

import pytest

from explorer.interventions import make_intervention
from explorer.state.page_state import MAX_TOKENS, RunRequest, parse_token_ids
from explorer.tracing.training_history import checkpoints_of_training, model_name, step_label, training_step
from model.config import window_start
from tests.subtest_loops import subtest_each


@subtest_each(
    ("written", "ids"),
    [
        ([], ()),
        ([1, 2, 300], (1, 2, 300)),
        ((7,), (7,)),
        (["1", "2"], (1, 2)),
        ("12.7.300", (12, 7, 300)),
        ([3.0], (3,)),  # JavaScript has only floats
        ([0] * MAX_TOKENS, (0,) * MAX_TOKENS),
    ],
)
def test_token_ids_are_parsed_from_numbers_or_text(written, ids):
    assert parse_token_ids(written) == ids


@subtest_each(
    "written",
    [
        "1..2",
        "1.-2",
        "1,2",
        " 1",
        "١.٢",  # digits, but not ASCII
        "²",
        [1.5],
        [math.nan],
        [math.inf],
        [True],
        [None],
        [[1]],
        [-1],
        [10**9],
        [10**5000],
        {"0": 1},
        17,
        b"1",
        [0] * (MAX_TOKENS + 1),
        "0." * MAX_TOKENS + "0",
    ],
    ids=lambda written: ascii(written)[:20] if not isinstance(written, list) or written != [10**5000] else "huge",
)
def test_invalid_token_ids_are_refused(written):
    with pytest.raises(ValueError, match="token ids are"):
        parse_token_ids(written)


@pytest.mark.parametrize("checkpoint", [None, 1, ["tiny"], {}])
def test_checkpoint_must_be_name(checkpoint):
    with pytest.raises(ValueError, match="checkpoint must be a name"):
        RunRequest.parse({"checkpoint": checkpoint})


def test_run_request_round_trip():
    interventions = (
        make_intervention("rope.angles", "base", 12.5),
        make_intervention("blocks.1.attn.z", "zero", index=0),
    )
    run = RunRequest("tiny", (5, 6), (7,), dropped=3, edits=interventions)
    assert RunRequest.parse(run.as_dict()) == run
    in_a_url = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in run.as_dict().items()}
    assert RunRequest.parse(in_a_url) == run


def test_interventions_are_accepted_as_text_or_list():
    text = "rope.angles*shift*5~blocks.1.attn.z.0*zero"
    run = RunRequest.parse({"checkpoint": "tiny", "edits": text})
    assert run == RunRequest.parse({"checkpoint": "tiny", "edits": text.split("~")})
    assert run.as_dict()["edits"] == text
    assert run != RunRequest("tiny", ()) and RunRequest("tiny", ()).as_dict()["edits"] == ""


@subtest_each(
    ("edits", "message"),
    [
        ("nonsense", "a change is written"),
        *((edits, "edits are texts") for edits in [[1], {"a": 1}, 7, True]),
        ("embed*zero~embed*zero", "each intervention on an activation only once"),
    ],
)
def test_invalid_interventions_are_refused(edits, message):
    with pytest.raises(ValueError, match=message):
        RunRequest.parse({"checkpoint": "tiny", "edits": edits})


def test_missing_fields_are_empty():
    assert RunRequest.parse({"checkpoint": "tiny"}) == RunRequest("tiny", ())
    assert RunRequest.parse({"checkpoint": "tiny", "prompt": None, "generated": "", "dropped": "many"}) == RunRequest(
        "tiny", ()
    )


def test_equal_run_requests_have_equal_hashes():
    assert len({RunRequest("tiny", (1,), (2,)), RunRequest("tiny", (1,), (2,)), RunRequest("tiny", (1, 2))}) == 2


def test_token_ids_are_prompt_and_generated():
    assert RunRequest("tiny", (1, 2), (3,)).token_ids == (1, 2, 3)


def test_window_matches_generator():
    for length in range(1, 40):
        run = RunRequest("tiny", tuple(range(length // 2)), tuple(range(length // 2, length)))
        window = run.window(16)
        assert window == run.token_ids[window_start(length, 16) :]
        assert window[-1] == length - 1
        assert min(length, 13) <= len(window) <= 16


def test_window_moves_by_quarter_of_context():
    starts = [RunRequest("tiny", tuple(range(length))).window(16)[0] for length in (16, 17, 20, 21, 24, 25)]
    assert starts == [0, 4, 4, 8, 8, 12]


def test_mean_intervention_uses_prompt_length():
    run = RunRequest.parse(
        {"checkpoint": "a", "prompt": [1, 2, 3], "generated": [4], "edits": "blocks.1.attn.z*mean~embed*zero"}
    )
    assert [intervention.min_tokens for intervention in run.edits] == [3, 0]
    assert run.as_dict()["edits"] == "blocks.1.attn.z*mean~embed*zero"
    assert RunRequest.parse(run.as_dict()) == run
    other = replace(run, prompt=(1, 2, 3, 4, 5))
    assert [intervention.min_tokens for intervention in other.edits] == [5, 0] and other.edits != run.edits


NAMES = ["b", "fables", "fables/step-001024", "fables/step-16", "fables/step-000000", "group/alice", "group/bob"]


def test_checkpoint_name_gives_model_and_step():
    assert (model_name("fables/step-000512"), training_step("fables/step-000512")) == ("fables", 512)
    assert (model_name("fables"), training_step("fables")) == ("fables", None)
    assert (model_name("group/alice"), training_step("group/alice")) == ("group/alice", None)


def test_training_checkpoints_are_in_order():
    series = ["fables/step-000000", "fables/step-16", "fables/step-001024", "fables"]
    assert all(checkpoints_of_training(name, NAMES) == series for name in series)
    assert checkpoints_of_training("b", NAMES) == ["b"]
    assert checkpoints_of_training("group/bob", NAMES) == ["group/bob"]


def test_step_label_is_readable():
    text = [step_label(name) for name in checkpoints_of_training("fables", NAMES)]
    assert text == ["step 0", "step 16", "step 1,024", "at its end"]
