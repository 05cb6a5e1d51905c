"""Another's config, field by field: what the fields of its family say, or are where they are left out, and which other
fields there are, that nothing reads."""

from collections.abc import Mapping
from typing import Any

from model.config_checks import LARGEST, MOST_LAYERS, check_size, is_number
from model.errors import ModelError
from model.notes import Note
from model.pretrained.defaults import ALIASES, DEFAULTS, NULL_IS_NONE, WITHOUT_EFFECT

# An activation's name in a config -> ours, of a feed-forward without a gate and of one with: the last is the usual one.
TANH_GELUS = ("gelu_fast", "gelu_accurate", "gelu_python_tanh", "gelu_new", "gelu_pytorch_tanh")  # one formula
ACTIVATIONS = {"gelu_python": "gelu", "gelu": "gelu"} | dict.fromkeys(TANH_GELUS, "gelu_tanh")
ACTIVATIONS |= {"relu": "relu", "relu2": "relu2"}
GATES = {"swish": "swiglu", "silu": "swiglu"} | dict.fromkeys(TANH_GELUS, "geglu")

QUANTIZATIONS = ("quantization_config", "quantization", "compression_config")
HEADS = ("num_attention_heads", "num_heads", "n_head")  # of which no weight's shape tells how many there are
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
# What any file may say of its model.
OF_ALL = {"model_type", "is_encoder_decoder", "add_cross_attention", "pruned_heads", "per_layer_config"}
OF_ALL |= {*QUANTIZATIONS, *EXPERTS}
MAX_NAMES, MAX_NAME_LENGTH = 12, 60  # of fields in one note: a file may have any number, of any length


class Settings:
    """The fields of a `config.json`, or of an object in it.

    Args:
        fields: by name. Where they name a `model_type` that is known, only those that its code reads are seen, and
            those that are left out are what transformers has for it.
        prefix: before the names of fields in what is told.
    """

    def __init__(self, fields: Mapping[str, Any], prefix: str = ""):
        kind = fields.get("model_type")
        kind = kind if isinstance(kind, str) else None
        aliases = ALIASES.get(kind, {})
        said = {name: value for name, value in fields.items() if name not in aliases}
        said |= {aliases[name]: value for name, value in fields.items() if name in aliases}
        self._said, self._prefix = {name for name in said if said[name] is not None}, prefix
        self._defaults = DEFAULTS.get(kind)
        self._fields = said
        if self._defaults is not None:
            seen = {name: said[name] for name in OF_ALL | set(self._defaults) if name in said}
            empty = {name for name in seen if seen[name] is None and name not in NULL_IS_NONE}
            self._fields = self._defaults | {name: seen[name] for name in seen if name not in empty}
        self._read: set[str] = set() if self._defaults is None else OF_ALL | set(self._defaults)
        self._parts: list[Settings] = []

    def __getitem__(self, name: str) -> Any:
        """A field that must be there; ModelError where it is not."""
        if self._fields.get(name) is None:
            raise ModelError("its config lacks {name}", name=f"{self._prefix}{name}")
        return self.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or what it is where it is not there or null."""
        if self._defaults is None:
            self._read.add(name)
        found = self._fields.get(name)
        return default if found is None else found

    def fields(self) -> dict[str, Any]:
        """Return all fields, each of which counts as read."""
        self._read |= set(self._fields)
        return dict(self._fields)

    def reads(self, name: str) -> bool:
        """Return whether the family's code reads a field."""
        return self._defaults is not None and name in self._defaults

    def size(self, name: str, most: int = LARGEST) -> int | None:
        """A count, None where there is none; ModelError where it is no positive integer, or more than `most`."""
        found = self.get(name)
        if isinstance(found, float) and found.is_integer():  # as other languages write integers
            found = int(found)
        if found is not None:
            check_size(f"{self._prefix}{name}", found, most)
        return found

    def num_layers(self, name: str) -> int:
        """The field that says how many layers there are; ModelError where it cannot be so many."""
        return self.size(name, MOST_LAYERS)

    def number(self, name: str) -> float | None:
        """A positive number, None where there is none; ModelError where it is anything else."""
        found = self.get(name)
        if found is not None and not (is_number(found) and 0 < found < float("inf")):
            raise ModelError("{name} must be a positive number, got {got!r}", name=f"{self._prefix}{name}", got=found)
        return found

    def flag(self, name: str) -> bool:
        """ModelError where a field is neither true nor false, nor missing, which is false."""
        found = self.get(name, False)
        if not isinstance(found, bool) and found not in (0, 1):
            raise ModelError("{name} must be true or false, got {got!r}", name=f"{self._prefix}{name}", got=found)
        return bool(found)

    def names(self, name: str) -> list[str] | None:
        """A list of words, None where there is none; ModelError where it is anything else."""
        found = self.get(name)
        if found is not None and not (isinstance(found, list) and all(isinstance(each, str) for each in found)):
            raise ModelError("{name} must be a list of words, got {got!r}", name=f"{self._prefix}{name}", got=found)
        return found

    def read_object(self, name: str, fields: Any) -> "Settings":
        """An object among the fields; ModelError where it is none. What of it is not read is told as `name`.field."""
        if not isinstance(fields, dict):
            raise ModelError(
                "{name} must be an object of named settings, got {got!r}", name=f"{self._prefix}{name}", got=fields
            )
        self._parts.append(Settings({k: v for k, v in fields.items() if k != "model_type"}, f"{name}."))
        return self._parts[-1]

    def only(self, name: str, *known: Any) -> Any:
        """A field of which these values are understood, the first where it is not there.

        Raises:
            ModelError: it has another.
        """
        found = self.get(name, known[0])
        if found not in known:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}",
                name=f"{self._prefix}{name}",
                got=found,
                known=known[0],
            )
        return found

    def activation(self, name: str, known: Mapping[str, str]) -> str:
        """Our name of an activation, out of `ACTIVATIONS` or `GATES`; ModelError where it is none of them."""
        found = self[name]
        if not isinstance(found, str) or found not in known:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}", name=name, got=found, known=", ".join(known)
            )
        return known[found]

    def check(self) -> None:
        """Raise ModelError where a field says what no model here computes, whatever the family."""
        for name in QUANTIZATIONS:
            if found := self.get(name):
                how = found if isinstance(found, dict) else {}
                raise ModelError(
                    "its weights are quantized ({name}: {how}), which is not read here: open the model that they were "
                    "made from, or save it anew after transformers’ model.dequantize()",
                    name=name,
                    how=how.get("quant_method") or how.get("quant_algo") or f"{how.get('bits', 'few')} bits",
                )
        if self.get("pruned_heads"):
            raise ModelError(
                "{name} {got!r} is not understood, only {known}",
                name="pruned_heads",
                got=self.get("pruned_heads"),
                known="{}",
            )
        if self.get("per_layer_config"):
            raise ModelError("its config says {name}, which is not understood", name="per_layer_config")
        for name in ("is_encoder_decoder", "add_cross_attention"):
            self.only(name, False)
        for name in EXPERTS:
            self.only(name, 1, 0)

    def unused_names(self) -> list[str]:
        """Return the fields that say something, and that nothing read, in alphabetical order."""
        left = [f"{self._prefix}{name}" for name in self._said - self._read - WITHOUT_EFFECT]
        return sorted({*left, *(name for part in self._parts for name in part.unused_names())})

    def notes(self) -> tuple[Note, ...]:
        """Return what is to be told of how the fields were read."""
        notes = [
            Note("config.json leaves out {name}, taken as {value}, as by transformers", name=name, value=self[name])
            for name in HEADS
            if self.reads(name) and name not in self._said
        ]
        names = [shorten_name(name) for name in self.unused_names()]
        listed = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        if len(names) == 1:
            notes.append(Note("1 field of config.json was not used: {names}", names=listed))
        elif names:
            notes.append(Note("{count} fields of config.json were not used: {names}", count=len(names), names=listed))
        return tuple(notes)


def shorten_name(name: str) -> str:
    """Return a field's name as a line of a log can hold it."""
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
