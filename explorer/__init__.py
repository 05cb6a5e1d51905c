"""The explorer in Python: `explorer.load(name)`, and the functions below it; each is imported on first use.

`model = explorer.load("llama-fables")`, `run = model.run("Once upon a time")`, `run.figure("attention").show()`.
"""

import difflib
from importlib import import_module
from typing import Any

__version__ = "1.0.0"

_MODULES = {  # name -> the module that defines it; importing all of them takes seconds, as they need PyTorch
    "Edit": "explorer.interventions",
    "Intervention": "explorer.interventions",
    "Model": "explorer.python_api",
    "Trace": "explorer.tracing.trace",
    "activation_patching": "explorer.tracing.patching",
    "attribution_patching": "explorer.tracing.patching",
    "capture": "explorer.tracing.capture",
    "diagnose": "explorer.diagnosis",
    "draw_figure": "explorer.run_figures",
    "from_module": "explorer.diagnosis",
    "load": "explorer.python_api",
    "make_intervention": "explorer.interventions",
    "path_patching": "explorer.tracing.patching",
    "read_vocabulary": "explorer.diagnosis",
    "trace_module": "explorer.diagnosis",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        near = difflib.get_close_matches(name, _MODULES, n=3)
        raise AttributeError(f"module 'explorer' has no {name!r}" + f"; did you mean {' or '.join(near)}?" * bool(near))
    globals()[name] = value = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*_MODULES, "__version__"]
