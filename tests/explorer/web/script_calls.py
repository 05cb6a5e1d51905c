"""Functions of the page's modules, called from Python in Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import playwright

from explorer.web.assets import static_folder

NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")  # part of Playwright
PROGRAM = """
const [{ [process.argv[2]]: call }, { readFileSync }] = await Promise.all([import(process.argv[1]), import("node:fs")]);
const results = JSON.parse(readFileSync(0, "utf8")).map((given) => call(...given));
console.log(JSON.stringify(results));
"""


def call_script(module: str, function: str, *calls: tuple[Any, ...]) -> list[Any]:
    """Return the result of an exported function for each list of arguments, which are JSON."""
    address = (static_folder() / module).as_uri()
    command = [NODE, "--input-type=module", "--eval", PROGRAM, address, function]
    run = subprocess.run(
        command, input=json.dumps(calls, allow_nan=False), capture_output=True, encoding="utf-8", timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)
