"""A model that somebody else wrote: made one of ours, and held against it."""

from explorer.own_module.any_module import trace_module
from explorer.own_module.diagnosing import diagnose
from explorer.own_module.from_module import from_module
from explorer.own_module.vocabulary import read_vocabulary

__all__ = ["diagnose", "from_module", "read_vocabulary", "trace_module"]
