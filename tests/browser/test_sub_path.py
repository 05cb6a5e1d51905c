"""App mounted below a path of another app."""

import socket
import threading

import pytest
import uvicorn
from fastapi import FastAPI, Response
from playwright.sync_api import expect

from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page


@pytest.fixture
def mounted_app_url(checkpoints):
    """URL of the app under /sub."""
    app = FastAPI()
    app.get("/favicon.ico")(lambda: Response(status_code=204))  # browsers request it at the root
    app = Page(ModelLibrary("cpu"), "tiny").mount(app, "/sub")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/sub/"
    server.should_exit = True
    thread.join()


@pytest.mark.exhaustive
def test_app_works_below_path(
    mounted_app_url, open_new_page
):  # fixtures in this order: the page closes before its server
    person = open_new_page(mounted_app_url).open()
    person.run("The fox")
    expect(person.strip).to_have_text("The fox")
    with person.wait_for_redraw(person.pattern):
        person.chips.nth(1).click()
    person.expect_selected(query=1)
