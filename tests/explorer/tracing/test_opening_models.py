"""Models of a hub are opened for visitors, and compared."""

import shutil
import time

import pytest
import torch

from explorer.state.errors import UserError
from explorer.tracing import memory_left
from explorer.tracing.job_queue import JobQueue
from explorer.tracing.jobs import finished
from explorer.tracing.library import Library
from explorer.tracing.offered_models import ANY_NAME
from explorer.tracing.opening_models import OpeningModels
from model.checkpoint import CheckpointError, load_checkpoint
from model.pretrained.saving import save_hugging_face
from model.pretrained.self_check import KNOWN_LOGITS
from tests.hub import Hub, reach, serving
from tests.specimens import STORIES

NAME = "somebody/stories"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("there"))


@pytest.fixture
def hub(folder, tmp_path, monkeypatch, tiny_checkpoint):
    hub = Hub()
    hub.models[NAME] = folder
    with serving(hub) as address:
        reach(monkeypatch, address, tmp_path / "cache")
        yield hub


@pytest.fixture
def opening(hub):
    return OpeningModels(Library("cpu", hub_names=ANY_NAME))


def test_a_model_is_fetched_loaded_and_offered(opening, folder):
    needs = opening.needs(NAME)
    weights = (folder / "model.safetensors").stat().st_size
    assert needs.download > weights and needs.memory == weights
    told = []
    finished(opening.job(NAME).pieces(), told.append)
    assert told == sorted(told) and told[-1] <= needs.download
    assert NAME in opening.library.checkpoints
    assert opening.library.has(NAME) and opening.needs(NAME).download == 0


def test_an_address_has_only_what_is_on_this_machine_and_downloads_nothing(opening, hub):
    with pytest.raises(CheckpointError, match=f"{NAME} is not on this machine: choose “Open a model…”"):
        opening.library.model(NAME)
    assert hub.asked == []
    finished(opening.job(NAME).pieces())
    hub.asked.clear()
    later = Library("cpu", hub_names=ANY_NAME)  # the app was started anew
    assert later.model(NAME)[0].config.num_layers == 5 and hub.asked == []


@pytest.mark.parametrize(
    ("names", "name", "told"),
    [
        (ANY_NAME, "bare", "named as on the Hugging Face Hub, owner/name, got 'bare'"),
        (ANY_NAME, "../../etc/passwd", "owner/name, got"),
        (ANY_NAME, None, "owner/name, got None"),
        (ANY_NAME, ["a/b"], "owner/name, got"),
        (frozenset(["other/one"]), NAME, "of the Hugging Face Hub other/one may be opened here"),
        ((), NAME, "no model is opened here"),
    ],
)
def test_what_may_not_be_opened_is_not_asked_for(hub, names, name, told):
    opening = OpeningModels(Library("cpu", hub_names=names))
    for ask in (opening.needs, opening.job):
        with pytest.raises(UserError, match=told):
            ask(name)
    if isinstance(name, str):
        with pytest.raises(CheckpointError, match="there is no checkpoint"):
            opening.library.model(name)
    assert hub.asked == []


def test_of_listed_names_each_may_be_opened(hub):
    opening = OpeningModels(Library("cpu", hub_names=frozenset([NAME])))
    assert opening.library.offered.listed_names == [NAME]
    finished(opening.job(NAME).pieces())
    assert opening.library.has(NAME)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_fetched(opening, hub, monkeypatch):
    monkeypatch.setattr(memory_left, "bytes_left", lambda device: 1_000_000)
    for ask in (opening.needs, opening.job):
        with pytest.raises(
            CheckpointError, match=f"{NAME} takes up to 2 MB of memory, and 1 MB are free: take a smaller"
        ):
            ask(NAME)
    assert all("/resolve/" not in path for path in hub.asked)


@pytest.mark.exhaustive
def test_a_download_ends_with_whoever_waited_for_it(opening, hub):
    hub.pause = lambda sent: time.sleep(0.02)
    queue = JobQueue(patience=60)
    name = opening.job(NAME).name
    progress = queue.begin("ann", opening.job(NAME))
    while not progress.done:
        progress = queue.progress("ann", name)
        time.sleep(0.02)
    assert 0 < progress.done < progress.of
    queue.leave("ann", name)
    time.sleep(0.5)
    files = len(hub.asked)
    time.sleep(0.5)
    assert len(hub.asked) == files and NAME not in opening.library.checkpoints


def test_a_hub_out_of_reach_is_told_to_whoever_waits(opening, hub):
    job = opening.job(NAME)
    hub.models.clear()
    with pytest.raises(CheckpointError, match="the hub has no model|out of reach"):
        finished(job.pieces())


def test_a_model_from_elsewhere_is_compared_once(opening):
    finished(opening.job(NAME).pieces())
    assert opening.agreement(NAME) is None and opening.check_of("tiny") is None
    finished(opening.check_of(NAME).pieces())
    assert opening.agreement(NAME).holds and opening.agreement(NAME).reference == "stored"
    assert opening.check_of(NAME) is None


def test_files_that_were_written_anew_are_compared_anew(tiny_checkpoint, folder, tmp_path):
    opening, copy = OpeningModels(Library("cpu")), shutil.copytree(folder, tmp_path / "of-somebody")
    name, queue = opening.library.offered.open(copy), JobQueue(patience=60)

    def compare():
        job = opening.check_of(name)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)

    compare()
    assert opening.agreement(name).holds
    lm, tokenizer = load_checkpoint(copy)
    lm.final_norm.weight = torch.nn.Parameter(lm.final_norm.weight * 1.5)
    known = (copy / KNOWN_LOGITS).read_bytes()
    save_hugging_face(lm, tokenizer, copy)
    (copy / KNOWN_LOGITS).write_bytes(known)
    assert opening.agreement(name) is None
    compare()
    assert not opening.agreement(name).holds


@pytest.mark.exhaustive
def test_what_is_gone_from_this_machine_is_fetched_anew(opening, hub, tmp_path):
    for _ in range(2):
        queue, job = JobQueue(patience=60), opening.job(NAME)
        queue.begin("ann", job)
        while queue.progress("ann", job.name).state in ("waiting", "working"):
            time.sleep(0.02)
        assert opening.needs(NAME).download == 0
        shutil.rmtree(tmp_path / "cache")


def test_what_nothing_can_be_compared_with_is_not(tiny_checkpoint):
    opening = OpeningModels(Library("cpu"))
    name = opening.library.offered.open(STORIES)
    assert opening.check_of(name) is None and opening.agreement(name) is None


def test_a_path_that_does_not_fit_into_memory_is_refused(tiny_checkpoint, monkeypatch):
    library = Library("cpu")
    name = library.offered.open(STORIES)
    monkeypatch.setattr(memory_left, "bytes_left", lambda device: 1_000_000)
    with pytest.raises(CheckpointError, match="stories260K takes up to 2 MB of memory, and 1 MB are free"):
        library.model(name)
    library.model("tiny")  # ours are not asked
