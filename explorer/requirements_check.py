"""Installed packages whose versions are not those that the explorer was tried with."""

import importlib.metadata
from pathlib import Path

REQUIREMENTS = Path(__file__).parent.parent / "requirements.txt"  # of a clone; an installed package has metadata


def other_versions() -> list[str]:
    """Return what is installed in other versions than the explorer was tried with, or is missing, as texts."""
    try:
        from packaging.requirements import Requirement
    except ImportError:  # as in an environment where nothing is installed
        return ["the packages are missing"]
    if REQUIREMENTS.is_file():
        lines = [line.partition("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()]
    else:
        try:
            lines = importlib.metadata.requires("transformerlm-explorer") or []
        except importlib.metadata.PackageNotFoundError:
            lines = []
    others = []
    for requirement in map(Requirement, filter(None, lines)):
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            others.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            others.append(f"{requirement.name} is {installed}, tried with {requirement.specifier}")
    return others
