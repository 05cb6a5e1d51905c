"""QR codes of the page's script against an independent library's, module by module."""

import json
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest
from qrcode import QRCode
from qrcode.constants import ERROR_CORRECT_M
from qrcode.util import MODE_8BIT_BYTE, QRData, lost_point

from explorer.web.assets import WEB, write_modules

NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")
LENGTHS = (1, 14, 15, 40, 62, 63, 84, 100, 122, 152, 180, 181, 213)  # bytes: the ends of versions, and between them
TEXT = "https://lab.example/é/?room=K7MQ29TFZX&" * 9


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """`drawn(texts, mask)` are the rows of the script's codes."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    write_modules(folder / WEB.name)

    def drawn(texts: list[str], mask: int | None = None) -> list[list[list[bool]] | None]:
        given = f"{json.dumps(texts)}.map((text) => qrOf(text{'' if mask is None else f', {mask}'}))"
        script = f"import {{ qrOf }} from './{WEB.name}/static/qr.js'; console.log(JSON.stringify({given}));"
        ran = subprocess.run(
            [NODE, "--input-type=module", "-e", script], cwd=folder, capture_output=True, check=True, timeout=60
        )
        return json.loads(ran.stdout)

    return drawn


def texts() -> list[str]:
    return [TEXT.encode()[:length].decode(errors="ignore") for length in LENGTHS]


def by_library(text: str, mask: int) -> list[list[bool]]:
    code = QRCode(error_correction=ERROR_CORRECT_M, border=0, mask_pattern=mask)
    code.add_data(QRData(text.encode(), mode=MODE_8BIT_BYTE))
    code.make()
    return code.get_matrix()


@pytest.mark.parametrize("mask", range(8))
def test_every_module_is_as_another_library_has_it(drawn, mask):
    assert drawn(texts(), mask) == [by_library(text, mask) for text in texts()]


def test_the_mask_that_is_taken_is_read_best_and_a_longer_text_has_no_code(drawn):
    *taken, too_long = drawn([*texts(), TEXT[:300]])
    for text, code in zip(texts(), taken, strict=True):
        eight = [by_library(text, mask) for mask in range(8)]
        assert code in eight and lost_point(code) == min(map(lost_point, eight))
    assert too_long is None
