"""`python -m model.export`."""

import pytest

from model.checkpoint import load_checkpoint
from model.export import main


def test_checkpoint_is_exported_as_folder(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["tiny", "--to", "hf"])
    assert capsys.readouterr().out == "tiny-hf\n"
    assert load_checkpoint(tmp_path / "tiny-hf")[0].config.d_model == load_checkpoint("tiny")[0].config.d_model


@pytest.mark.parametrize(("name", "told"), [("missing", "there is no checkpoint 'missing'"), ("tiny", "is not empty")])
def test_failed_export_is_explained(tiny_checkpoint, tmp_path, name, told):
    folder = tmp_path / "there"
    if name == "tiny":
        folder.mkdir()
        (folder / "mine").touch()
    with pytest.raises(SystemExit, match=told):
        main([name, "--to", "hf", "--out", str(folder)])
