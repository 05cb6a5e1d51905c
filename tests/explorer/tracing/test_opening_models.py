"""Opening of hub models by users, and their comparison with known logits."""

import shutil
import time
from pathlib import Path

import pytest
import torch

from explorer.errors import UserError
from explorer.tracing import model_catalog
from explorer.tracing.jobs import JobScheduler, run_to_completion
from explorer.tracing.model_catalog import ANY_NAME
from explorer.tracing.model_library import ModelLibrary, ModelOpener
from model.checkpoint import CheckpointError, load_checkpoint
from model.pretrained.export_hugging_face import save_hugging_face
from model.pretrained.reference_logits import REFERENCE_LOGITS
from tests.hub import Hub, serve_hub, use_hub
from tests.sample_models import STORIES
from tests.subtest_loops import subtest_each

NAME = "somebody/stories"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("there"))


@pytest.fixture
def hub(folder, tmp_path, monkeypatch, tiny_checkpoint):
    hub = Hub()
    hub.models[NAME] = folder
    with serve_hub(hub) as address:
        use_hub(monkeypatch, address, tmp_path / "cache")
        yield hub


@pytest.fixture
def opener(hub):
    return ModelOpener(ModelLibrary("cpu", hub_names=ANY_NAME))


def test_hub_model_is_downloaded_loaded_and_offered(opener, folder):
    needs = opener.requirements(NAME)
    weights = (folder / "model.safetensors").stat().st_size
    assert needs.download > weights and needs.memory == weights
    progress = []
    run_to_completion(opener.open_job(NAME).steps(), progress.append)
    assert progress == sorted(progress) and progress[-1] <= needs.download
    assert NAME in opener.library.checkpoints
    assert opener.library.has(NAME) and opener.requirements(NAME).download == 0


def test_page_url_downloads_no_model(opener, hub):
    with pytest.raises(CheckpointError, match=f"{NAME} is not on this machine: choose “Open a model…”"):
        opener.library.model(NAME)
    assert hub.requested_paths == []
    run_to_completion(opener.open_job(NAME).steps())
    hub.requested_paths.clear()
    later = ModelLibrary("cpu", hub_names=ANY_NAME)  # as after a restart of the app
    assert later.model(NAME)[0].config.num_layers == 5 and hub.requested_paths == []


@subtest_each(
    ("names", "name", "told"),
    [
        (frozenset(), "bare", "this server does not open other models"),
        (frozenset([NAME]), "../../etc/passwd", "only opens these models"),
        (ANY_NAME, None, "owner/name, got None"),
        (ANY_NAME, ["a/b"], "owner/name, got"),
        (frozenset(["other/one"]), NAME, "only opens these models of the Hugging Face Hub: other/one"),
        ((), NAME, "this server does not open other models"),
    ],
)
def test_disallowed_model_is_not_requested(hub, names, name, told):
    opener = ModelOpener(ModelLibrary("cpu", hub_names=names))
    for ask in (opener.requirements, opener.open_job):
        with pytest.raises(UserError, match=told):
            ask(name)
    if isinstance(name, str):
        with pytest.raises(CheckpointError, match="there is no checkpoint"):
            opener.library.model(name)
    assert hub.requested_paths == []


def test_local_server_opens_paths(folder, hub, tmp_path):
    copy, odd = shutil.copytree(folder, tmp_path / "by-path"), tmp_path / "odd.gguf"
    odd.write_bytes(b"GGUF" + bytes(20))
    opener = ModelOpener(ModelLibrary("cpu", hub_names=ANY_NAME))
    needs = opener.requirements(str(copy))
    assert (needs.checkpoint, needs.download) == ("by-path", 0) and "F32" in dict(needs.files.rows)["types"]
    assert "by-path" not in opener.library.checkpoints
    run_to_completion(opener.open_job(str(copy)).steps())
    assert opener.library.has("by-path")
    for path, words in (
        (odd, "version 0"),
        (tmp_path / "none.gguf", "there is no file or folder"),
        (Path("/etc/passwd"), "no model in a format that is known"),
        ("bare", "there is no checkpoint 'bare'"),
    ):
        with pytest.raises(CheckpointError, match=words):
            opener.open_job(str(path))
    listed = ModelOpener(ModelLibrary("cpu", hub_names=frozenset([NAME])))
    with pytest.raises(UserError, match=f"only opens these models of the Hugging Face Hub: {NAME}"):
        listed.requirements(str(copy))


def test_listed_model_can_be_opened(hub):
    opener = ModelOpener(ModelLibrary("cpu", hub_names=frozenset([NAME])))
    assert opener.library.catalog.allowed_names == [NAME]
    run_to_completion(opener.open_job(NAME).steps())
    assert opener.library.has(NAME)


def test_too_large_model_is_refused_before_download(opener, hub, monkeypatch):
    monkeypatch.setattr(model_catalog, "available_bytes", lambda device: 1_000_000)
    for ask in (opener.requirements, opener.open_job):
        with pytest.raises(
            CheckpointError, match=f"{NAME} takes up to 2 MB of memory, and 1 MB are free: take a smaller"
        ):
            ask(NAME)
    assert all("/resolve/" not in path for path in hub.requested_paths)


@pytest.mark.exhaustive
def test_download_stops_when_its_client_leaves(opener, hub):
    hub.pause = lambda sent: time.sleep(0.02)
    queue = JobScheduler(timeout_s=60)
    name = opener.open_job(NAME).name
    progress = queue.begin("ann", opener.open_job(NAME))
    while not progress.done:
        progress = queue.progress("ann", name)
        time.sleep(0.02)
    assert 0 < progress.done < progress.total
    queue.leave("ann", name)
    time.sleep(0.5)
    files = len(hub.requested_paths)
    time.sleep(0.5)
    assert len(hub.requested_paths) == files and NAME not in opener.library.checkpoints


def test_unreachable_hub_raises(opener, hub):
    job = opener.open_job(NAME)
    hub.models.clear()
    with pytest.raises(CheckpointError, match="the Hugging Face Hub has no model|out of reach"):
        run_to_completion(job.steps())


def test_opened_model_is_self_checked_once(opener):
    run_to_completion(opener.open_job(NAME).steps())
    assert opener.agreement(NAME) is None and opener.self_check_job("tiny") is None
    run_to_completion(opener.self_check_job(NAME).steps())
    assert opener.agreement(NAME).holds and opener.agreement(NAME).reference == "stored"
    assert opener.self_check_job(NAME) is None


def test_rewritten_files_are_self_checked_again(tiny_checkpoint, folder, tmp_path):
    opener, copy = ModelOpener(ModelLibrary("cpu")), shutil.copytree(folder, tmp_path / "of-somebody")
    name, queue = opener.library.catalog.open(copy), JobScheduler(timeout_s=60)

    def compare():
        job = opener.self_check_job(name)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)

    compare()
    assert opener.agreement(name).holds
    lm, tokenizer = load_checkpoint(copy)
    lm.final_norm.weight = torch.nn.Parameter(lm.final_norm.weight * 1.5)
    reference_logits = (copy / REFERENCE_LOGITS).read_bytes()
    save_hugging_face(lm, tokenizer, copy)
    (copy / REFERENCE_LOGITS).write_bytes(reference_logits)
    assert opener.agreement(name) is None
    compare()
    assert not opener.agreement(name).holds


@pytest.mark.exhaustive
def test_deleted_download_is_fetched_again(opener, hub, tmp_path):
    for _ in range(2):
        queue, job = JobScheduler(timeout_s=60), opener.open_job(NAME)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)
        assert opener.requirements(NAME).download == 0
        shutil.rmtree(tmp_path / "cache")


def test_model_without_reference_has_no_self_check(tiny_checkpoint):
    opener = ModelOpener(ModelLibrary("cpu"))
    name = opener.library.catalog.open(STORIES)
    assert opener.self_check_job(name) is None and opener.agreement(name) is None


def test_too_large_path_is_refused(tiny_checkpoint, monkeypatch):
    library = ModelLibrary("cpu")
    name = library.catalog.open(STORIES)
    monkeypatch.setattr(model_catalog, "available_bytes", lambda device: 1_000_000)
    with pytest.raises(CheckpointError, match="stories260K takes up to 2 MB of memory, and 1 MB are free"):
        library.model(name)
    library.model("tiny")  # bundled checkpoints are not checked
