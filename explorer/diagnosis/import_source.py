"""Import a user's file or package as it lies in its repository. This executes it: use only trusted code.

Packages with relative imports, absolute imports of a package's own name, a `src` layout and a version that asks for its
own installation work without being installed.
"""

import ast
import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import tomllib

from explorer.diagnosis.module_settings import HEADS
from explorer.diagnosis.run_module import errors_as_user_errors
from explorer.diagnosis.weights_file import SETTINGS_SUFFIXES, read_settings
from explorer.errors import UserError
from explorer.translations import _

LM_NAMES = (  # of the class in a folder, the likeliest first
    *("TransformerLM", "BasicsTransformerLM", "TransformerLanguageModel", "GPTLanguageModel", "LanguageModel"),
    *("GPT", "Llama", "TransformerModel", "Transformer"),
)
OTHER_FOLDERS = {"tests", "test", "venv", "env", "build", "dist", "node_modules", "site-packages", "__pycache__"}
ROOT_FILES = "pyproject.toml", "setup.py", "setup.cfg", ".git", "requirements.txt", "uv.lock"
MAX_ANCESTORS = 4  # folders above a file that may be its repository's root
MAX_FILES, MAX_FILE_BYTES, MAX_CONFIGS = 2000, 1 << 20, 50
ANNOTATIONS_AND_LOGS = "jaxtyping", "beartype", "typeguard", "wandb"  # what a forward pass does without
OUR_PACKAGES = __package__.partition(".")[0], "model"
PIP_NAMES = {"yaml": "pyyaml", "sklearn": "scikit-learn", "PIL": "pillow", "omegaconf": "omegaconf"}


@dataclass(frozen=True)
class SourceFile:
    """A Python file of a repository, with what it defines at its top level."""

    path: Path
    tree: ast.Module

    @property
    def names(self) -> set[str]:
        """Names of its classes, functions and variables."""
        names = set()
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return names

    @property
    def classes(self) -> list[str]:
        """Names of the classes that derive from another, in their order."""
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and node.bases]

    @property
    def import_level(self) -> int:
        """The most dots of its relative imports."""
        return max((node.level for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)), default=0)


def split_target(target: str) -> tuple[Path, str]:
    """Split "FILE_OR_FOLDER[:Class]" into the path and the name, "" for none."""
    path, colon, name = target.rpartition(":")
    if colon and path and (name.isidentifier() or name and Path(path).exists()):
        return Path(path), name
    if not target or target.endswith(":") or target.startswith(":"):
        raise UserError(
            _("A module is named as file.py:Class, or by the folder of its package, got {got!r}.", got=target)
        )
    return Path(target), ""


def find_definition(path: Path, name: str) -> tuple[SourceFile, str]:
    """Return the file that defines a class, and the class's name.

    Args:
        path: the file, or a folder with it somewhere below.
        name: of the class, of a function that returns a module, or of a module; "" for the likeliest class.

    Raises:
        UserError: there is none, or there are several.
    """
    if not path.exists():
        raise UserError(_("there is no file {path!r}", path=str(path)))
    if path.is_file():
        if path.suffix != ".py":
            raise UserError(_("{file} is no Python file.", file=path.name))
        files = [SourceFile(path, _parse(path))]
    else:
        files = list(_python_files(path))
    for candidate in (name,) if name else LM_NAMES:
        defining = [file for file in files if candidate in file.names]
        if len(defining) > 1:
            listed = ", ".join(str(file.path.relative_to(path)) for file in defining[:6])
            raise UserError(
                _(
                    "{folder} has {name} in several files: name one of {files}.",
                    folder=path.name,
                    name=candidate,
                    files=listed,
                )
            )
        if defining:
            return defining[0], candidate
    if name and path.is_file():
        return files[0], name  # it may be made when the file runs
    classes = [class_name for file in files for class_name in file.classes]
    listed = ", ".join(dict.fromkeys(classes[:12])) or _("none")
    if name:
        raise UserError(_("{file} has no {name}; it has: {classes}.", file=path.name, name=name, classes=listed))
    raise UserError(
        _(
            "Name the class, as in {example}; {file} has: {classes}.",
            example=f"{path}:TransformerLM",
            file=path.name,
            classes=listed,
        )
    )


def _python_files(folder: Path, word: bytes = b"") -> Iterator[SourceFile]:
    """Yield the readable Python files with a word below a folder, without those of tests and environments.

    Raises:
        UserError: there are too many.
    """
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in OTHER_FOLDERS and not name.startswith("."))
        for path in (Path(parent, name) for name in sorted(names) if name.endswith(".py")):
            count += 1
            if count > MAX_FILES:
                raise UserError(_("{folder} has too many Python files to look through: name one.", folder=folder.name))
            if not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES and word in path.read_bytes():
                with contextlib.suppress(UserError):  # of a file that is not asked for
                    yield SourceFile(path, _parse(path))


def _parse(path: Path) -> ast.Module:
    with errors_as_user_errors(_("{file} cannot be run", file=path.name)):
        return ast.parse(path.read_bytes(), str(path))


@contextlib.contextmanager
def import_definition(file: SourceFile) -> Iterator[ModuleType]:
    """Context manager: run a file as Python imports it, and let its imports work while the block runs.

    Raises:
        UserError: it fails, or needs a package that is not installed.
    """
    dotted, root = _module_name(file)
    folders = _import_folders(file.path, root, is_package="." in dotted)
    with (
        tempfile.TemporaryDirectory() as metadata,
        _module_names_free(folders),
        _stand_ins(),
        _search_path(folders, [file.path.parent] if "." in dotted else [], Path(metadata)),
    ):
        _write_metadata(Path(metadata), folders, dotted.partition(".")[0])
        try:
            yield _import(file, dotted)
        except (ModuleNotFoundError, UserError) as error:
            missing = error.__cause__ if isinstance(error, UserError) else error
            if isinstance(missing, ModuleNotFoundError) and missing.name:
                raise UserError(_missing_text(file, missing, folders)) from missing
            raise


def _import(file: SourceFile, dotted: str) -> ModuleType:
    importlib.invalidate_caches()
    with errors_as_user_errors(_("{file} cannot be run", file=file.path.name)):
        if "." in dotted:
            return importlib.import_module(dotted)
        spec = importlib.util.spec_from_file_location(f"own_module_{file.path.stem}", file.path)
        source = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = source  # dataclasses look their module up
        spec.loader.exec_module(source)
        return source


def _missing_text(file: SourceFile, missing: ModuleNotFoundError, folders: Iterable[Path]) -> str:
    package = missing.name.partition(".")[0]
    if any((folder / package).exists() or (folder / f"{package}.py").exists() for folder in folders):
        return _("{file} needs {name}, which its package does not have.", file=file.path.name, name=missing.name)
    return _(
        "{file} needs {name}, which is not on this machine: pip install {package}",
        file=file.path.name,
        name=package,
        package=PIP_NAMES.get(package, package),
    )


def _module_name(file: SourceFile) -> tuple[str, Path]:
    """Return a file's dotted name, and the folder that its package lies in.

    A folder without `__init__.py` is a package if the file's relative imports say so.
    """
    parts, folder = [file.path.stem], file.path.absolute().parent
    while (folder / "__init__.py").is_file() or len(parts) <= file.import_level:
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts), folder


def _import_folders(path: Path, root: Path, is_package: bool) -> list[Path]:
    """Return the folders in which a file's imports are looked up: its own, and those up to its repository's root."""
    folders = [root] if is_package else [path.absolute().parent]
    if repository := _repository(root):
        ancestors = [root, *root.parents]
        folders += [*ancestors[: ancestors.index(repository) + 1], repository / "src"]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _repository(folder: Path) -> Path | None:
    """Return the root of the repository that a folder is in; None if there is no sign of one."""
    ancestors = [folder, *folder.parents][: MAX_ANCESTORS + 1]
    return next((folder for folder in ancestors if any((folder / name).exists() for name in ROOT_FILES)), None)


@contextlib.contextmanager
def _search_path(folders: list[Path], own: list[Path], metadata: Path) -> Iterator[None]:
    """Context manager: put folders before, and a package's own folder after, all others in which Python looks."""
    before = list(sys.path)
    sys.path[:] = [*map(str, folders), *before, *map(str, own), str(metadata)]
    try:
        yield
    finally:
        sys.path[:] = before
        importlib.invalidate_caches()


@contextlib.contextmanager
def _module_names_free(folders: Iterable[Path]) -> Iterator[None]:
    """Context manager: forget modules that have names of the user's, such as our `model`, and restore ours after it."""
    names = {entry.stem for folder in folders for entry in folder.iterdir() if entry.is_dir() or entry.suffix == ".py"}
    names -= sys.stdlib_module_names

    def is_hidden(name: str, module: ModuleType) -> bool:
        top = name.partition(".")[0]
        file = getattr(sys.modules.get(top, module), "__file__", None) or ""
        return top in names and (top in OUR_PACKAGES or "site-packages" not in Path(file).parts)

    hidden = {name: module for name, module in list(sys.modules.items()) if is_hidden(name, module)}
    for name in hidden:
        del sys.modules[name]
    try:
        yield
    finally:
        ours = {name.partition(".")[0] for name in hidden}
        for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
            del sys.modules[name]
        sys.modules.update(hidden)


class _StandIn(ModuleType):
    """A module of annotations, decorators and logs, every name of which has no effect."""

    __path__: typing.ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, item: Any) -> Any:
        return typing.Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else self

    def __deepcopy__(self, memo: Any) -> Any:  # as an attribute of a module that is copied
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


@contextlib.contextmanager
def _stand_ins() -> Iterator[None]:
    """Context manager: have modules that a forward pass does without, where they are not installed."""
    names = [name for name in ANNOTATIONS_AND_LOGS if name not in sys.modules and not importlib.util.find_spec(name)]
    sys.modules.update({name: _StandIn(name) for name in names})
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _write_metadata(folder: Path, folders: Iterable[Path], package: str):
    """Write metadata of the user's project as an installation does, so that its version can be asked for."""
    names = {package: "0"}
    for file in (folder / "pyproject.toml" for folder in folders):
        with contextlib.suppress(OSError, ValueError):
            project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
            names |= {str(project["name"]): str(project.get("version", "0"))} if "name" in project else {}
    for name, version in names.items():
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            fields = {"Metadata-Version": "2.1", "Name": name, "Version": version}
            (info / "METADATA").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()), "utf-8")


def repository_settings(file: SourceFile) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (where, name -> value) of settings in a file's repository: configs, and the defaults of command lines.

    None if they name different numbers of heads: which of them the weights were trained with is unknown.
    """
    root = _repository(_module_name(file)[1])
    if root is None:
        return []
    configs = [
        path
        for suffix in SETTINGS_SUFFIXES
        for folder in ("", "config*/", "conf*/**/")
        for path in root.glob(f"{folder}*{suffix}")
    ]
    tables = [table for path in sorted(set(configs))[:MAX_CONFIGS] for table in read_settings(path)]
    with contextlib.suppress(UserError):  # of a repository with too many files, where some are looked through
        for other in _python_files(root, b"add_argument"):
            if values := dict(_argparse_defaults(other.tree)):
                tables.append((other.path.name, values))
    tables = [(where, values) for where, values in tables if any(name in values for name in HEADS)]
    counts = {values[name] for _where, values in tables for name in HEADS if name in values}
    return tables if len(counts) == 1 else []


def _argparse_defaults(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"):
            continue
        flags = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        name = next((flag.lstrip("-").replace("-", "_") for flag in flags if flag.startswith("--")), None)
        for keyword in node.keywords:
            if keyword.arg == "default" and name:
                with contextlib.suppress(ValueError):
                    yield name, ast.literal_eval(keyword.value)
