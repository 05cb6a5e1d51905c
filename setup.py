"""Build the package: its folders, and the bundled checkpoints, which a wheel has in `model/checkpoints/`.

All else is in pyproject.toml, which cannot put a folder of the repository into a package.
"""

from setuptools import find_namespace_packages, setup

BUNDLED = ("llama-fables", "llama-fables-gpt")  # the snapshots of a training would take 38 MB more
FILES = ("*.js", "*.css", "*.md", "*.mo", "*.json", "*.jsonl", "*.safetensors", "*.tiktoken", "LICENSE", "NOTICE")

setup(
    packages=[
        *find_namespace_packages(include=["explorer*", "model*"], exclude=["*__pycache__*"]),
        "model.checkpoints",
        *(f"model.checkpoints.{name}" for name in BUNDLED),
    ],
    package_dir={"model.checkpoints": "checkpoints"},
    package_data={"": FILES},
)
