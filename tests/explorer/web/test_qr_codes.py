"""QR codes of the page's script, compared module by module with an independent library."""

import json
import shutil
import subprocess
from pathlib import Path

import playwright
import pytest
from qrcode import QRCode
from qrcode.constants import ERROR_CORRECT_M
from qrcode.util import MODE_8BIT_BYTE, QRData

from explorer.web.assets import WEB, write_static_files

NODE = shutil.which("node", path=Path(playwright.__file__).parent / "driver")
LENGTHS = (1, 14, 15, 26, 40, 42, 43, 62, 63, 84, 85, 100, 106)  # bytes: the limits of QR versions, and between
TEXT = "https://lab.example/é/?room=K7MQ29TFZX&" * 3


@pytest.fixture(scope="module")
def encode_all(tmp_path_factory):
    """Function that returns the rows of the script's QR codes, None for a too long text."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    write_static_files(folder / WEB.name)

    def encode_texts(texts: list[str]) -> list[list[list[bool]] | None]:
        expression = f"{json.dumps(texts)}.map(qrCodeModules)"
        module = f"./{WEB.name}/widgets/teaching/class_session.js"
        script = f"import {{ qrCodeModules }} from '{module}'; console.log(JSON.stringify({expression}));"
        completed = subprocess.run(
            [NODE, "--input-type=module", "-e", script], cwd=folder, capture_output=True, check=True, timeout=60
        )
        return json.loads(completed.stdout)

    return encode_texts


def make_reference_matrix(text: str) -> list[list[bool]]:
    code = QRCode(error_correction=ERROR_CORRECT_M, border=0, mask_pattern=0)
    code.add_data(QRData(text.encode(), mode=MODE_8BIT_BYTE))
    code.make()
    return code.get_matrix()


def test_every_module_matches_reference_library_and_too_long_text_has_no_code(encode_all):
    texts = [TEXT.encode()[:length].decode(errors="ignore") for length in LENGTHS]
    *codes, too_long = encode_all([*texts, "x" * 107])
    assert codes == list(map(make_reference_matrix, texts))
    assert too_long is None
