"""Reader of a Hugging Face `config.json`, field by field.

It knows the fields that a model family reads and their defaults, and which fields nothing has read.
"""

from collections.abc import Mapping
from typing import Any

from model.config import MAX_LAYERS, MAX_SIZE, check_size, is_number
from model.errors import ModelError, Note
from model.pretrained.config_defaults import ALIASES, DEFAULTS, NULL_IS_NONE, WITHOUT_EFFECT

# An activation's name in a config -> ours, for a feed-forward without a gate and for one with: the most common is last.
TANH_GELUS = ("gelu_fast", "gelu_accurate", "gelu_python_tanh", "gelu_new", "gelu_pytorch_tanh")  # one formula
ACTIVATIONS = {"gelu_python": "gelu", "gelu": "gelu"} | dict.fromkeys(TANH_GELUS, "gelu_tanh")
ACTIVATIONS |= {"relu": "relu", "relu2": "relu2"}
GATES = {"swish": "swiglu", "silu": "swiglu"} | dict.fromkeys(TANH_GELUS, "geglu")

QUANTIZATIONS = ("quantization_config", "quantization", "compression_config")
HEADS = ("num_attention_heads", "num_heads", "n_head")  # cannot be inferred from the weights' shapes
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
# Fields that a file of any family may have.
COMMON_FIELDS = {"model_type", "is_encoder_decoder", "add_cross_attention", "pruned_heads", "per_layer_config"}
COMMON_FIELDS |= {*QUANTIZATIONS, *EXPERTS}
MAX_NAMES, MAX_NAME_LENGTH = 12, 60  # of fields in one note: a file may have any number, of any length


class HFConfigReader:
    """The fields of a `config.json`, or of an object in it.

    Args:
        fields: by name. If they name a known `model_type`, only the fields that its code reads are visible, and
            missing ones have transformers' default.
        prefix: put before the names of fields in messages.
    """

    def __init__(self, fields: Mapping[str, Any], prefix: str = ""):
        kind = fields.get("model_type")
        kind = kind if isinstance(kind, str) else None
        aliases = ALIASES.get(kind, {})
        canonical_fields = {name: value for name, value in fields.items() if name not in aliases}
        canonical_fields |= {aliases[name]: value for name, value in fields.items() if name in aliases}
        self._present, self._prefix = {name for name in canonical_fields if canonical_fields[name] is not None}, prefix
        self._defaults = DEFAULTS.get(kind)
        self._fields = canonical_fields
        if self._defaults is not None:
            supported_fields = {
                name: canonical_fields[name] for name in COMMON_FIELDS | set(self._defaults) if name in canonical_fields
            }
            null_names = {
                name for name in supported_fields if supported_fields[name] is None and name not in NULL_IS_NONE
            }
            self._fields = self._defaults | {
                name: supported_fields[name] for name in supported_fields if name not in null_names
            }
        self._read: set[str] = set() if self._defaults is None else COMMON_FIELDS | set(self._defaults)
        self._nested: list[HFConfigReader] = []

    def __getitem__(self, name: str) -> Any:
        """Return a required field; ModelError if it is missing."""
        if self._fields.get(name) is None:
            raise ModelError("its config lacks {name}", name=f"{self._prefix}{name}")
        return self.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` if it is missing or null."""
        if self._defaults is None:
            self._read.add(name)
        value = self._fields.get(name)
        return default if value is None else value

    def fields(self) -> dict[str, Any]:
        """Return all fields and mark them as read."""
        self._read |= set(self._fields)
        return dict(self._fields)

    def reads(self, name: str) -> bool:
        """Return True if the family's code reads a field."""
        return self._defaults is not None and name in self._defaults

    def size(self, name: str, max_size: int = MAX_SIZE) -> int | None:
        """Return a count, None if missing; ModelError unless it is an integer from 1 to `max_size`."""
        value = self.get(name)
        if isinstance(value, float) and value.is_integer():  # as other languages write integers
            value = int(value)
        if value is not None:
            check_size(f"{self._prefix}{name}", value, max_size)
        return value

    def num_layers(self, name: str) -> int:
        """Return the field with the number of layers; ModelError if it is not valid."""
        return self.size(name, MAX_LAYERS)

    def number(self, name: str) -> float | None:
        """Return a positive number, None if missing; ModelError if it is anything else."""
        value = self.get(name)
        if value is not None and not (is_number(value) and 0 < value < float("inf")):
            raise ModelError("{name} must be a positive number, got {got!r}", name=f"{self._prefix}{name}", got=value)
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean field, False if missing; ModelError if it is anything else."""
        value = self.get(name, False)
        if not isinstance(value, bool) and value not in (0, 1):
            raise ModelError("{name} must be true or false, got {got!r}", name=f"{self._prefix}{name}", got=value)
        return bool(value)

    def names(self, name: str) -> list[str] | None:
        """Return a list of strings, None if missing; ModelError if it is anything else."""
        value = self.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ModelError("{name} must be a list of words, got {got!r}", name=f"{self._prefix}{name}", got=value)
        return value

    def read_object(self, name: str, fields: Any) -> "HFConfigReader":
        """Return a reader of an object among the fields; ModelError if it is none.

        Its unused fields are reported as `name`.field.
        """
        if not isinstance(fields, dict):
            raise ModelError(
                "{name} must be an object of named settings, got {got!r}", name=f"{self._prefix}{name}", got=fields
            )
        self._nested.append(HFConfigReader({k: v for k, v in fields.items() if k != "model_type"}, f"{name}."))
        return self._nested[-1]

    def get_supported(self, name: str, *supported: Any) -> Any:
        """Return a field that may have only these values; the first is the default.

        Raises:
            ModelError: it has another.
        """
        value = self.get(name, supported[0])
        if value not in supported:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}",
                name=f"{self._prefix}{name}",
                got=value,
                known=supported[0],
            )
        return value

    def activation(self, name: str, our_names: Mapping[str, str]) -> str:
        """Return our name of an activation, from `ACTIVATIONS` or `GATES`; ModelError if it is not there."""
        hf_name = self[name]
        if not isinstance(hf_name, str) or hf_name not in our_names:
            raise ModelError(
                "{name} {got!r} is not understood, only {known}", name=name, got=hf_name, known=", ".join(our_names)
            )
        return our_names[hf_name]

    def check_supported(self) -> None:
        """Raise ModelError if a field has a value that is supported for no family."""
        for name in QUANTIZATIONS:
            if quantization := self.get(name):
                details = quantization if isinstance(quantization, dict) else {}
                raise ModelError(
                    "its weights are quantized ({name}: {how}), which is not read here: open the model that they were "
                    "made from, or save it anew after transformers’ model.dequantize()",
                    name=name,
                    how=details.get("quant_method")
                    or details.get("quant_algo")
                    or f"{details.get('bits', 'few')} bits",
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
            self.get_supported(name, False)
        for name in EXPERTS:
            self.get_supported(name, 1, 0)

    def unused_names(self) -> list[str]:
        """Return the names of non-null fields that nothing read, sorted."""
        unread = [f"{self._prefix}{name}" for name in self._present - self._read - WITHOUT_EFFECT]
        return sorted({*unread, *(name for nested in self._nested for name in nested.unused_names())})

    def notes(self) -> tuple[Note, ...]:
        """Return notes for the user on defaults that were assumed and fields that were not used."""
        notes = [
            Note("config.json leaves out {name}, taken as {value}, as by transformers", name=name, value=self[name])
            for name in HEADS
            if self.reads(name) and name not in self._present
        ]
        names = [shorten_name(name) for name in self.unused_names()]
        names_text = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        if len(names) == 1:
            notes.append(Note("1 field of config.json was not used: {names}", names=names_text))
        elif names:
            notes.append(
                Note("{count} fields of config.json were not used: {names}", count=len(names), names=names_text)
            )
        return tuple(notes)


def shorten_name(name: str) -> str:
    """Return a field's name, shortened and printable, for a line of a log."""
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
