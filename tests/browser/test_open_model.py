"""Opening a model of the Hugging Face Hub on the page."""

import re
import threading
from itertools import count

import pytest
from playwright.sync_api import expect

from model.checkpoint import load_checkpoint
from model.gguf.export_gguf import save_gguf

ATTEMPT = count()


@pytest.fixture
def hub_model(hub) -> str:
    """Name of a model that no test has opened, unique for each attempt."""
    name = f"somebody/stories-{next(ATTEMPT)}"
    hub.models[name] = hub.models["somebody/stories"]
    return name


@pytest.mark.exhaustive
def test_user_opens_model_by_name(open_new_page, hub, hub_model, monkeypatch):
    person = open_new_page().open(text="Once upon a time")
    row, models = person.page.locator("#open-model"), person.page.get_by_label("model", exact=True)
    models.select_option(label="Open a model…")
    name = row.get_by_role("combobox")
    expect(name).to_be_focused()
    expect(models).to_have_value("tiny")

    name.fill("somebody/gated")
    name.press("Enter")
    expect(row).to_contain_text("https://huggingface.co/somebody/gated")
    expect(row).to_contain_text("HF_TOKEN")
    assert len(person.complaints) == 1 and "422" in person.complaints.pop()  # the browser logs the refusal

    name.fill(hub_model)
    name.press("Enter")
    expect(row).to_contain_text("2 MB to be fetched. Its weights take up to 2 MB of memory.")
    goes_on = threading.Event()
    monkeypatch.setattr(hub, "pause", lambda sent: sent and goes_on.wait())
    row.get_by_role("button", name="Open", exact=True).click()
    expect(row).to_contain_text(re.compile("[01] MB of 2 MB"))
    row.get_by_role("button", name="Cancel").click()
    expect(row.get_by_role("progressbar")).to_have_count(0)
    expect(models).to_have_value("tiny")

    goes_on.set()
    name.press("Enter")
    row.get_by_role("button", name="Open", exact=True).click()
    expect(models).to_have_value(hub_model)
    expect(person.page.locator("#strip .chip")).to_have_text(["<s>", " Once", " upon", " a", " time"])
    expect(row).to_contain_text("✓ agrees with the logits that came with it: they differ by at most")
    expect(name).to_be_hidden()

    person.page.reload()
    expect(models).to_have_value(hub_model)
    expect(row).to_contain_text("✓ agrees")
    person.choose_model("tiny")
    expect(row.locator(".open-model")).to_be_hidden()


def test_url_downloads_no_model(open_new_page, hub):
    hub.requested_paths.clear()
    person = open_new_page()
    person.open("attention", checkpoint="somebody/gated", text="Once upon a time")
    expect(person.page.get_by_text("somebody/gated is not on this machine")).to_be_visible()
    expect(person.page.get_by_label("model", exact=True)).to_have_value("tiny")
    assert hub.requested_paths == []


@pytest.fixture
def gguf_file(checkpoints, tmp_path):
    """GGUF file whose name no test has opened, unique for each attempt."""
    path = tmp_path / f"fox-{next(ATTEMPT)}.gguf"
    save_gguf(*load_checkpoint("tiny"), path)
    return path


def test_model_file_is_opened_and_damaged_file_is_refused(open_new_page, gguf_file, tmp_path):
    person = open_new_page().open(text="Once upon a time")
    row, models = person.page.locator("#open-model"), person.page.get_by_label("model", exact=True)
    models.select_option(label="Open a model…")
    damaged, pickled = tmp_path / "damaged.gguf", tmp_path / "model.pt"
    damaged.write_bytes(gguf_file.read_bytes()[:-5000])
    pickled.write_bytes(b"\x80\x02}q\x00." * 100_000)
    for path, words in (
        (damaged, "cut off"),
        (pickled, "--module FILE.py:CLASS"),
        (gguf_file, "weights stored as F32"),
    ):
        row.locator("[type=file]").set_input_files(path)
        expect(row.locator(".opening")).to_contain_text(words)
    assert all("422" in complaint for complaint in person.complaints)
    person.complaints.clear()
    row.get_by_role("button", name="Open", exact=True).click()
    expect(models).to_have_value(gguf_file.stem)
    expect(person.chips).to_have_count(10)

    other = gguf_file.rename(tmp_path / f"owl-{next(ATTEMPT)}.gguf")
    models.select_option(label="Open a model…")
    row.locator("input[type=text]").fill(str(other))
    row.locator("input[type=text]").press("Enter")
    row.get_by_role("button", name="Open", exact=True).click()
    expect(models).to_have_value(other.stem)
