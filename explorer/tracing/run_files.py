"""Saved runs: safetensors files with metadata as JSON; nothing in them is executed."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from explorer.architecture.residual_stream import block_output_tap
from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, parse_interventions
from explorer.tracing.capture import tap_shapes
from explorer.tracing.model_registry import ModelUnloadedError, ModelWeights, find_model, register_model_facts
from explorer.tracing.trace import LazyActivations, Trace
from explorer.translations import _
from model.checkpoint import write_atomically
from model.config import ModelConfig
from model.tokenizer import MergeRules

FORMAT = "a run of TransformerLM Explorer, 1"
UNCHANGED = "unchanged/"  # before the names of values of a changed run's baseline
MARKS = "word_start", "word_end"  # of `MergeRules`
NUM_SAMPLES = 16  # sampled rows of each weight for its fingerprint, and the square of it numbers


class ModelMismatchError(Exception):
    """The model has other weights than the saved run's."""


def save_trace(trace: Trace, path: str | Path) -> Path:
    """Write the stored values of a run; see `Trace.save`."""
    path = Path(path)
    if any(isinstance(intervention, CrossRunIntervention) for intervention in trace.edits):
        raise UserError(_("a run with patches from another run cannot be saved: remove the patches first"))
    values = dict(trace.stored_values)
    if trace.baseline:
        values |= {UNCHANGED + name: value for name, value in trace.baseline.stored_values.items()}
    first: dict[Any, str] = {}
    aliases = {name: first.setdefault((value.ctypes.data, value.shape), name) for name, value in values.items()}
    aliases = {name: other for name, other in aliases.items() if name != other}  # in the same memory, written once
    config = {name: value for name, value in asdict(trace.config).items() if value is not None}
    fields = {
        "config": config,
        "token_ids": trace.token_ids,
        "vocabulary": list(trace.vocabulary),
        "token_bytes": [None if piece is None else serialise_bytes(piece) for piece in trace.token_bytes],
        "merge_rules": serialise_merge_rules(trace.merge_rules),
        "edits": [str(intervention) for intervention in trace.edits],
        "means_over": [getattr(intervention, "over", None) for intervention in trace.edits],
        "changed": trace.baseline is not None,
        "dtype": trace.dtype,
        "same": aliases,
        "model": trace.model,
        "weights": weights_fingerprint(trace.weights),
    }
    metadata = {"format": FORMAT} | {name: json.dumps(value) for name, value in fields.items()}
    arrays = {name: np.ascontiguousarray(value) for name, value in values.items() if name not in aliases}
    write_atomically(path, lambda part: save_file(arrays, part, metadata))
    return path


def load_trace(path: str | Path, lm: Any = None) -> Trace:
    """Read the run in a file; see `Trace.load`."""
    path = Path(path)
    try:
        with safe_open(path, framework="np") as file:
            text = file.metadata() or {}
            if text.get("format") != FORMAT:
                raise ValueError(_("it does not say that it is one"))
            metadata = {name: json.loads(value) for name, value in text.items() if name != "format"}
            values = {name: validate_array(name, file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118, no mapping
        return trace_from_metadata(
            metadata, values | {name: values[other] for name, other in metadata["same"].items()}, lm
        )
    except ModelMismatchError:
        raise UserError(_("these are not the weights that the saved run was computed with")) from None
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = _("it lacks {name}", name=error) if isinstance(error, KeyError) else error
        raise UserError(_("{path} is no saved run: {why}", path=path, why=why)) from error


def validate_array(name: str, value: np.ndarray) -> np.ndarray:
    """Return a file's array, read-only; ValueError if it is not float32."""
    if value.dtype != np.float32:
        raise ValueError(_("{name} is {dtype}, and a run’s values are float32", name=name, dtype=value.dtype))
    value.flags.writeable = False
    return value


def trace_from_metadata(metadata: Mapping[str, Any], values: Mapping[str, np.ndarray], lm: Any) -> Trace:
    """Build the trace of a file from its metadata and values.

    Raises:
        ValueError, KeyError, TypeError: they make no valid trace.
    """
    config = ModelConfig.from_dict(metadata["config"])
    ids, vocabulary = metadata["token_ids"], tuple(metadata["vocabulary"])
    if config.num_layers > len(values):
        raise ValueError(_("{layers} layers, and {values} values", layers=config.num_layers, values=len(values)))
    if len(vocabulary) != config.vocab_size or not all(isinstance(text, str) for text in vocabulary):
        raise ValueError(_("its vocabulary has not a text of each token"))
    if not isinstance(ids, list) or not 0 < len(ids) <= config.context_length:
        raise ValueError(_("it has no tokens, or too many"))
    if not all(type(i) is int and 0 <= i < len(vocabulary) for i in ids):
        raise ValueError(_("its tokens are not of its vocabulary"))
    interventions = parse_interventions(metadata["edits"])
    for intervention in interventions:
        if isinstance(intervention, CrossRunIntervention):
            raise ValueError(_("it takes values of another run"))
        intervention.check(config, tap_shapes(config, 1))
    over = zip(interventions, metadata["means_over"], strict=True)
    interventions = tuple(
        replace(intervention, over=int(count)) if count else intervention for intervention, count in over
    )
    model = resolve_model_identity(metadata, config, lm)
    pieces, rules = metadata["token_bytes"], metadata["merge_rules"]
    if len(pieces) not in (0, len(vocabulary)):
        raise ValueError(_("its vocabulary has not a text of each token"))
    fields = {
        "vocabulary": vocabulary,
        "weights": ModelWeights(model),
        "token_bytes": tuple(None if piece is None else parse_bytes(piece) for piece in pieces),
        "merge_rules": parse_merge_rules(rules),
        "model": model,
        "dtype": str(metadata["dtype"]),
    }
    if fields["dtype"] not in ("float32", "float16", "bfloat16"):
        raise ValueError(_("it does not say how its numbers were rounded"))

    def make_trace(stored: dict[str, np.ndarray], interventions: tuple, baseline: Trace | None) -> Trace:
        return Trace(
            config,
            tuple(ids),
            values=values_with_fallback(stored, config, ids, model, interventions),
            edits=interventions,
            baseline=baseline,
            **fields,
        )

    run_values = {name: value for name, value in values.items() if not name.startswith(UNCHANGED)}
    baseline_values = {
        name.removeprefix(UNCHANGED): value for name, value in values.items() if name.startswith(UNCHANGED)
    }
    return make_trace(run_values, interventions, make_trace(baseline_values, (), None) if metadata["changed"] else None)


def values_with_fallback(
    values: dict[str, np.ndarray], config: ModelConfig, ids: list[int], model: Any, interventions: tuple
) -> Mapping[str, np.ndarray]:
    """Return the values in the order of their computation; the model recomputes missing ones on access."""
    shapes = tap_shapes(config, len(ids))
    for name, value in values.items():
        if shapes.get(name) != value.shape:
            raise ValueError(_("{name} of shape {shape} is no value of its model", name=name, shape=value.shape))
    if len(values) == len(shapes):
        return {name: values[name] for name in shapes}
    needed = ("embed", *(block_output_tap(config, layer) for layer in range(config.num_layers)), "final_norm")
    for name in needed:
        if name not in values:
            raise KeyError(name)
    return LazyActivations(
        {name: values[name] for name in shapes if name in values}, shapes, model, tuple(ids), interventions
    )


def resolve_model_identity(metadata: Mapping[str, Any], config: ModelConfig, lm: Any) -> Any:
    """Return the identity of the model that ran: that of `lm`, if it is given.

    Raises:
        ModelMismatchError: `lm` has other weights.
    """
    if lm is None:
        identity = restore_identity(metadata["model"])
        living_model = find_model(identity)
        is_same = (
            living_model is not None
            and living_model.config == config
            and weights_fingerprint(ModelWeights(identity)) == metadata["weights"]
        )
        return identity if is_same else ("saved", str(metadata["weights"]))
    identity = register_model_facts(lm)
    if lm.config != config or weights_fingerprint(ModelWeights(identity)) != metadata["weights"]:
        raise ModelMismatchError
    return identity


def weights_fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    """Return a hash of a model's weights from samples of each; "" if the model was unloaded."""
    digest = hashlib.sha256()
    with suppress(ModelUnloadedError):
        for name in sorted(weights):
            rows = weights[name][:: max(1, len(weights[name]) // NUM_SAMPLES)].reshape(-1)
            sample = rows[:: max(1, len(rows) // NUM_SAMPLES**2)].astype("<f4")
            digest.update(f"{name} {weights[name].shape} ".encode() + sample.tobytes())
        return digest.hexdigest()
    return ""


def restore_identity(value: Any) -> Any:
    """Convert the lists that JSON made of an identity back to tuples."""
    return tuple(map(restore_identity, value)) if isinstance(value, list) else value


def serialise_bytes(piece: bytes) -> str:
    """Return bytes as text, one character each."""
    return piece.decode("latin-1")


def parse_bytes(text: str) -> bytes:
    """Return the bytes of a text from `serialise_bytes`."""
    return text.encode("latin-1")


def serialise_merge_rules(rules: MergeRules | None) -> dict[str, Any] | None:
    """Return a tokenizer's merge rules as JSON values; None without rules."""
    if rules is None:
        return None
    ranks = rules.ranks and [
        [serialise_bytes(left), serialise_bytes(right), rank] for (left, right), rank in rules.ranks.items()
    ]
    ids = [[serialise_bytes(piece), number] for piece, number in rules.ids.items()]
    marks = {name: serialise_bytes(getattr(rules, name)) for name in MARKS}
    return {"ids": ids, "ranks": ranks, "of_characters": rules.is_character_level} | marks


def parse_merge_rules(text: Mapping[str, Any] | None) -> MergeRules | None:
    """Return the merge rules of JSON values; None without rules."""
    if text is None:
        return None
    ranks = text["ranks"]
    if ranks is not None:
        ranks = {(parse_bytes(left), parse_bytes(right)): int(rank) for left, right, rank in ranks}
    ids = {parse_bytes(piece): int(number) for piece, number in text["ids"]}
    marks = {name: parse_bytes(text.get(name, "")) for name in MARKS}  # missing in runs saved by earlier versions
    return MergeRules(ids, ranks, bool(text["of_characters"]), **marks)
