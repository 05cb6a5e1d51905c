"""Uploaded model files: accepted, or refused after their first bytes."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from explorer.tracing.model_catalog import ANY_NAME
from explorer.tracing.model_library import ModelLibrary
from explorer.web import file_uploads
from explorer.web.page import Page
from model.checkpoint import load_checkpoint
from model.gguf.export_gguf import save_gguf
from tests.subtest_loops import subtest_each

URL = "/explorer/upload"


@pytest.fixture
def client(tiny_checkpoint) -> TestClient:
    """Client of a page that serves only this machine."""
    page = Page(ModelLibrary("cpu", hub_names=ANY_NAME), "tiny")
    return TestClient(page.mount(FastAPI(), ""), raise_server_exceptions=False)


@pytest.fixture
def gguf_bytes(tiny_checkpoint, tmp_path) -> bytes:
    save_gguf(*load_checkpoint("tiny"), tmp_path / "fox.gguf")
    return (tmp_path / "fox.gguf").read_bytes()


def upload_file(client: TestClient, body: bytes, name: str = "fox.gguf"):
    return client.post(URL, content=body, headers={"X-File-Name": name})


def test_gguf_file_is_stored_by_name_and_opened_by_path(client, gguf_bytes):
    path = Path(upload_file(client, gguf_bytes, "..%2F..%2Fa fox.gguf").json()["path"])
    assert path.name == "a_fox.gguf" and path.read_bytes() == gguf_bytes
    needs = client.post("/explorer/model_needs", json=[str(path)]).json()
    assert needs["checkpoint"] == "a_fox" and "weights stored as F32" in needs["words"]
    assert client.post("/explorer/model_needs", content=f'["{path}"]').status_code == 415  # the content type of a form


@subtest_each(
    ("body", "name", "sentences"),
    [
        (b"\x80\x02}q\x00.", "pytorch_model.bin", "could run code|says nothing of the model"),
        (b"", "fox.gguf", "empty"),
        (b"<!DOCTYPE html><html>", "fox.gguf", "web page"),
        (b"PK\x03\x04" + bytes(100), "fox.zip", "archive"),
        (b"GGUF", "", "with its name and its length"),
        (b"GGUF", "..", "with its name and its length"),
    ],
)
def test_file_without_model_is_refused(client, body, name, sentences):
    answer = upload_file(client, body, name)
    assert answer.status_code == 422
    assert any(words in answer.json()["detail"] for words in sentences.split("|"))


def test_total_size_of_uploads_is_limited(client, gguf_bytes, monkeypatch):
    monkeypatch.setattr(file_uploads, "MAX_UPLOAD_BYTES", len(gguf_bytes) + 10)
    assert upload_file(client, gguf_bytes).status_code == 200
    assert "have at most" in upload_file(client, gguf_bytes).json()["detail"]
    assert client.get(URL).status_code == 405


def test_damaged_file_is_reported_when_inspected(client, gguf_bytes):
    path = upload_file(client, gguf_bytes[: len(gguf_bytes) // 2]).json()["path"]
    answer = client.post("/explorer/model_needs", json=[path])
    assert answer.status_code == 422 and "cut off" in answer.json()["detail"]


def test_public_server_accepts_no_upload(tiny_checkpoint, gguf_bytes):
    for names in ((), frozenset(["owner/name"])):
        page = Page(ModelLibrary("cpu", hub_names=names), "tiny")
        client = TestClient(page.mount(FastAPI(), ""), raise_server_exceptions=False)
        assert upload_file(client, gguf_bytes).status_code == 404
        assert client.post("/explorer/model_needs", json=["/etc/passwd"]).status_code == 422
