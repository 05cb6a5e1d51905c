import json

import pytest
import torch

from model.training.data import TrainingBatches, encode_documents, hold_out, prepare_training_text, read_documents

CONTEXT, BATCH = 8, 4


@pytest.fixture
def batches():
    """Batches of the text 0, 1, 2, …, 199: each token is its own position."""
    return TrainingBatches(torch.arange(200), CONTEXT, BATCH, vocab_size=1000, seed=0)


def test_documents_are_separated_by_end_of_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\ntwo\n<|endoftext|>\n\n<|endoftext|>\n  three é\n", encoding="utf-8")
    assert read_documents(path) == ["one\ntwo", "  three é"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "holds no text"), (b"\n<|endoftext|>\n", "holds no text"), (b"\xff", "readable UTF-8")],
)
def test_file_without_text_is_refused(tmp_path, content, message):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_documents(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="readable UTF-8 file: .*nowhere.txt"):
        read_documents(tmp_path / "nowhere.txt")


def test_each_document_ends_with_end_of_text_token(tiny_tokenizer):
    ids = encode_documents(["the fox", "said <|endoftext|>"], tiny_tokenizer).tolist()
    end = tiny_tokenizer.end_of_text
    assert ids == [*tiny_tokenizer.encode("the fox"), end, *tiny_tokenizer.encode("said <|endoftext|>"), end]
    assert ids.count(end) == 2


def test_inputs_are_consecutive_tokens_and_targets_next_ones(batches):
    for _ in range(20):
        inputs, targets = batches.next()
        assert inputs.shape == targets.shape == (BATCH, CONTEXT)
        assert torch.equal(inputs, inputs[:, :1] + torch.arange(CONTEXT))
        assert torch.equal(targets, inputs + 1)


def test_epochs_have_disjoint_windows_at_different_offsets(batches):
    epochs = []
    for _ in range(2):
        starts = [start for _ in range(5) for start in batches.next()[0][:, 0].tolist()]  # 20 of 23 or 24 windows
        assert len({start // CONTEXT for start in starts}) == len(starts)
        assert len({start % CONTEXT for start in starts}) == 1
        assert starts != sorted(starts)
        epochs.append(starts)
        batches.starts = batches.starts[:0]
    assert epochs[0] != epochs[1]


def test_seed_determines_batches():
    def first_batches(seed):
        batches = TrainingBatches(torch.arange(200), CONTEXT, BATCH, vocab_size=1000, seed=seed)
        return torch.stack([batches.next(0.5)[0] for _ in range(20)])

    assert torch.equal(first_batches(1), first_batches(1))
    assert not torch.equal(first_batches(1), first_batches(2))


def test_copy_windows_repeat_random_tokens():
    batches = TrainingBatches(torch.arange(2000), context_length=64, batch_size=BATCH, vocab_size=1000, seed=0)
    inputs, targets = batches.next(copy_fraction=1.0)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    for row in inputs:
        periods = [period for period in range(4, 33) if torch.equal(row[period:], row[:-period])]
        assert periods
        assert not torch.equal(row[1:], row[:-1] + 1)


def test_copy_fraction_is_respected():
    batches = TrainingBatches(torch.arange(2000), context_length=32, batch_size=20, vocab_size=1000, seed=0)
    rows = torch.cat([batches.next(copy_fraction=0.25)[0] for _ in range(50)])
    copies = (rows != rows[:, :1] + torch.arange(32)).any(-1)
    assert copies.float().mean().item() == pytest.approx(0.25, abs=0.05)


def test_shortest_accepted_text_fills_batch():
    needed = (CONTEXT + 1) * BATCH + CONTEXT
    for seed in range(50):
        batches = TrainingBatches(torch.arange(needed), CONTEXT, BATCH, vocab_size=1000, seed=seed)
        assert all(len(batches.next()[0]) == BATCH for _ in range(3))
    with pytest.raises(ValueError, match=f"needs {needed} tokens of text, got {needed - 1}"):
        TrainingBatches(torch.arange(needed - 1), CONTEXT, BATCH, vocab_size=1000, seed=0)


def test_folder_is_read_in_order_without_hidden_files(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name, text in {"b/2.md": "two", "a.txt": "one\n<|endoftext|>\nand a half", ".git/x": "no", ".y": "no"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_documents(tmp_path) == ["one", "and a half", "two"]


def test_folder_within_hidden_folder_is_read(tmp_path):
    folder = tmp_path / ".cache" / "texts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("one", encoding="utf-8")
    assert read_documents(folder) == ["one"]


def test_unreadable_file_in_folder_is_named(tmp_path):
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match="image.png"):
        read_documents(tmp_path)


def test_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no text"):
        read_documents(tmp_path)


def test_every_20th_document_is_held_out():
    documents = [str(i) for i in range(45)]
    training, held_out = hold_out(documents)
    assert held_out == ["19", "39"]
    assert sorted(training + held_out, key=int) == documents


def test_ends_of_few_documents_are_held_out():
    assert hold_out(["a" * 38 + "bc", "d" * 19 + "e"]) == (["a" * 38, "d" * 19], ["bc", "e"])


def test_validation_text_is_held_out_before_tokenizer_training(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the fox asked the owl " * 300, encoding="utf-8")
    text = prepare_training_text(path, None, None, vocab_size=260)
    assert text.tokenizer.vocab_size == 260
    whole = 300 * len("the fox asked the owl ")
    assert text.validation_bytes == pytest.approx(whole / 20, abs=1)
    assert text.tokenizer.decode(text.train_ids[:-1].tolist()) == ("the fox asked the owl " * 300)[: whole * 19 // 20]


def test_batches_continue_from_saved_state(batches):
    for _ in range(3):
        batches.next(0.5)
    state = json.loads(json.dumps(batches.state))
    rest = [batches.next(0.5) for _ in range(20)]  # over the end of the epoch
    again = TrainingBatches(torch.arange(200), CONTEXT, BATCH, vocab_size=1000, seed=99)
    again.state = state
    for (inputs, targets), (same_inputs, same_targets) in zip(rest, [again.next(0.5) for _ in range(20)], strict=True):
        assert torch.equal(inputs, same_inputs) and torch.equal(targets, same_targets)
