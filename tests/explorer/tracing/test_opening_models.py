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
def opening(hub):
    return ModelOpener(ModelLibrary("cpu", hub_names=ANY_NAME))


def test_a_model_is_fetched_loaded_and_offered(opening, folder):
    needs = opening.requirements(NAME)
    weights = (folder / "model.safetensors").stat().st_size
    assert needs.download > weights and needs.memory == weights
    progress = []
    run_to_completion(opening.open_job(NAME).steps(), progress.append)
    assert progress == sorted(progress) and progress[-1] <= needs.download
    assert NAME in opening.library.checkpoints
    assert opening.library.has(NAME) and opening.requirements(NAME).download == 0


def test_an_address_has_only_what_is_on_this_machine_and_downloads_nothing(opening, hub):
    with pytest.raises(CheckpointError, match=f"{NAME} is not on this machine: choose “Open a model…”"):
        opening.library.model(NAME)
    assert hub.requested_paths == []
    run_to_completion(opening.open_job(NAME).steps())
    hub.requested_paths.clear()
    later = ModelLibrary("cpu", hub_names=ANY_NAME)  # the app was started anew
    assert later.model(NAME)[0].config.num_layers == 5 and hub.requested_paths == []


@pytest.mark.parametrize(
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
def test_what_may_not_be_opened_is_not_asked_for(hub, names, name, told):
    opening = ModelOpener(ModelLibrary("cpu", hub_names=names))
    for ask in (opening.requirements, opening.open_job):
        with pytest.raises(UserError, match=told):
            ask(name)
    if isinstance(name, str):
        with pytest.raises(CheckpointError, match="there is no checkpoint"):
            opening.library.model(name)
    assert hub.requested_paths == []


def test_a_path_is_opened_where_only_this_machine_is_served(folder, hub, tmp_path):
    copy, odd = shutil.copytree(folder, tmp_path / "by-path"), tmp_path / "odd.gguf"
    odd.write_bytes(b"GGUF" + bytes(20))
    opening = ModelOpener(ModelLibrary("cpu", hub_names=ANY_NAME))
    needs = opening.requirements(str(copy))
    assert (needs.checkpoint, needs.download) == ("by-path", 0) and "F32" in dict(needs.files.rows)["types"]
    assert "by-path" not in opening.library.checkpoints
    run_to_completion(opening.open_job(str(copy)).steps())
    assert opening.library.has("by-path")
    for path, words in (
        (odd, "version 0"),
        (tmp_path / "none.gguf", "there is no file or folder"),
        (Path("/etc/passwd"), "no model in a format that is known"),
        ("bare", "there is no checkpoint 'bare'"),
    ):
        with pytest.raises(CheckpointError, match=words):
            opening.open_job(str(path))
    listed = ModelOpener(ModelLibrary("cpu", hub_names=frozenset([NAME])))
    with pytest.raises(UserError, match=f"only opens these models of the Hugging Face Hub: {NAME}"):
        listed.requirements(str(copy))


def test_of_listed_names_each_may_be_opened(hub):
    opening = ModelOpener(ModelLibrary("cpu", hub_names=frozenset([NAME])))
    assert opening.library.catalog.allowed_names == [NAME]
    run_to_completion(opening.open_job(NAME).steps())
    assert opening.library.has(NAME)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_fetched(opening, hub, monkeypatch):
    monkeypatch.setattr(model_catalog, "available_bytes", lambda device: 1_000_000)
    for ask in (opening.requirements, opening.open_job):
        with pytest.raises(
            CheckpointError, match=f"{NAME} takes up to 2 MB of memory, and 1 MB are free: take a smaller"
        ):
            ask(NAME)
    assert all("/resolve/" not in path for path in hub.requested_paths)


@pytest.mark.exhaustive
def test_a_download_ends_with_whoever_waited_for_it(opening, hub):
    hub.pause = lambda sent: time.sleep(0.02)
    queue = JobScheduler(timeout_s=60)
    name = opening.open_job(NAME).name
    progress = queue.begin("ann", opening.open_job(NAME))
    while not progress.done:
        progress = queue.progress("ann", name)
        time.sleep(0.02)
    assert 0 < progress.done < progress.total
    queue.leave("ann", name)
    time.sleep(0.5)
    files = len(hub.requested_paths)
    time.sleep(0.5)
    assert len(hub.requested_paths) == files and NAME not in opening.library.checkpoints


def test_a_hub_out_of_reach_is_told_to_whoever_waits(opening, hub):
    job = opening.open_job(NAME)
    hub.models.clear()
    with pytest.raises(CheckpointError, match="the Hugging Face Hub has no model|out of reach"):
        run_to_completion(job.steps())


def test_a_model_from_elsewhere_is_compared_once(opening):
    run_to_completion(opening.open_job(NAME).steps())
    assert opening.agreement(NAME) is None and opening.self_check_job("tiny") is None
    run_to_completion(opening.self_check_job(NAME).steps())
    assert opening.agreement(NAME).holds and opening.agreement(NAME).reference == "stored"
    assert opening.self_check_job(NAME) is None


def test_files_that_were_written_anew_are_compared_anew(tiny_checkpoint, folder, tmp_path):
    opening, copy = ModelOpener(ModelLibrary("cpu")), shutil.copytree(folder, tmp_path / "of-somebody")
    name, queue = opening.library.catalog.open(copy), JobScheduler(timeout_s=60)

    def compare():
        job = opening.self_check_job(name)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)

    compare()
    assert opening.agreement(name).holds
    lm, tokenizer = load_checkpoint(copy)
    lm.final_norm.weight = torch.nn.Parameter(lm.final_norm.weight * 1.5)
    reference_logits = (copy / REFERENCE_LOGITS).read_bytes()
    save_hugging_face(lm, tokenizer, copy)
    (copy / REFERENCE_LOGITS).write_bytes(reference_logits)
    assert opening.agreement(name) is None
    compare()
    assert not opening.agreement(name).holds


@pytest.mark.exhaustive
def test_what_is_gone_from_this_machine_is_fetched_anew(opening, hub, tmp_path):
    for _ in range(2):
        queue, job = JobScheduler(timeout_s=60), opening.open_job(NAME)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)
        assert opening.requirements(NAME).download == 0
        shutil.rmtree(tmp_path / "cache")


def test_what_nothing_can_be_compared_with_is_not(tiny_checkpoint):
    opening = ModelOpener(ModelLibrary("cpu"))
    name = opening.library.catalog.open(STORIES)
    assert opening.self_check_job(name) is None and opening.agreement(name) is None


def test_a_path_that_does_not_fit_into_memory_is_refused(tiny_checkpoint, monkeypatch):
    library = ModelLibrary("cpu")
    name = library.catalog.open(STORIES)
    monkeypatch.setattr(model_catalog, "available_bytes", lambda device: 1_000_000)
    with pytest.raises(CheckpointError, match="stories260K takes up to 2 MB of memory, and 1 MB are free"):
        library.model(name)
    library.model("tiny")  # ours are not asked
