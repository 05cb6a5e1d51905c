"""Import a model from other code as a `TransformerLM`, and compare it with the reference implementation."""

from explorer.diagnosis.diagnose import diagnose
from explorer.diagnosis.run_module import from_module, trace_module
from explorer.diagnosis.vocabulary import read_vocabulary

__all__ = ["diagnose", "from_module", "read_vocabulary", "trace_module"]
