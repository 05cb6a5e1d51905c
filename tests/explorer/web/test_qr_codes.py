"""QR codes of the page's script, compared module by module with an independent library."""

import json
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest
from qrcode import QRCode
from qrcode.constants import ERROR_CORRECT_M
from qrcode.util import MODE_8BIT_BYTE, QRData, lost_point

from explorer.web.assets import WEB, write_static_files
from tests.subtest_loops import subtest_each

NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")
LENGTHS = (1, 14, 15, 40, 62, 63, 84, 100, 122, 152, 180, 181, 213)  # bytes: the limits of QR versions, and between
TEXT = "https://lab.example/é/?room=K7MQ29TFZX&" * 9


@pytest.fixture(scope="module")
def encode_all(tmp_path_factory):
    """Function that returns the rows of the script's QR codes, None for a too long text: `encode_all(texts, mask)`."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    write_static_files(folder / WEB.name)

    def encode_texts(make_texts: list[str], mask: int | None = None) -> list[list[list[bool]] | None]:
        expression = f"{json.dumps(make_texts)}.map((text) => qrCodeModules(text{'' if mask is None else f', {mask}'}))"
        module = f"./{WEB.name}/widgets/teaching/class_session.js"
        script = f"import {{ qrCodeModules }} from '{module}'; console.log(JSON.stringify({expression}));"
        completed = subprocess.run(
            [NODE, "--input-type=module", "-e", script], cwd=folder, capture_output=True, check=True, timeout=60
        )
        return json.loads(completed.stdout)

    return encode_texts


def make_texts() -> list[str]:
    return [TEXT.encode()[:length].decode(errors="ignore") for length in LENGTHS]


def make_reference_matrix(text: str, mask: int) -> list[list[bool]]:
    code = QRCode(error_correction=ERROR_CORRECT_M, border=0, mask_pattern=mask)
    code.add_data(QRData(text.encode(), mode=MODE_8BIT_BYTE))
    code.make()
    return code.get_matrix()


@subtest_each("mask", range(8))
def test_every_module_matches_reference_library(encode_all, mask):
    assert encode_all(make_texts(), mask) == [make_reference_matrix(text, mask) for text in make_texts()]


def test_best_mask_is_chosen_and_too_long_text_has_no_code(encode_all):
    *codes, too_long = encode_all([*make_texts(), TEXT[:300]])
    for text, code in zip(make_texts(), codes, strict=True):
        library_codes = [make_reference_matrix(text, mask) for mask in range(8)]
        assert code in library_codes and lost_point(code) == min(map(lost_point, library_codes))
    assert too_long is None
