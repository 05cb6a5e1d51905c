"""App with the bundled models and a folder of a teacher's lessons."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

ROOT = Path(__file__).parents[3]

HTML = """---
title: A <b>lesson</b>
for: testers
minutes: 1
model: no-such-model
against: <img src=x onerror=alert(1)>
---

## A <i>step</i>

<script>alert(1)</script> {{1+1}} ${1+1}

```state
text: The cat saw the dog.
view: attention
```
"""


@pytest.fixture(scope="session")
def teacher_folder(tmp_path_factory) -> Path:
    """Folder of a teacher's lessons."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "of-a-teacher.md").write_text(HTML, encoding="utf-8")
    return folder


@pytest.fixture(scope="package")
def bundled_address(teacher_folder) -> Iterator[str]:
    """URL of an app with the bundled models, instead of the models of the other browser tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "app.py", "--port", str(port), "--lessons", str(teacher_folder)]
    server = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    assert any("Running on local URL" in line for line in server.stdout)
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.wait(timeout=60)


@pytest.fixture
def page(open_new_page, bundled_address) -> Page:
    return open_new_page(address=bundled_address).page
