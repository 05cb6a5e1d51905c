"""The catalogue of common implementation bugs, one file per subject."""

from explorer.diagnosis.bugs.attention import ATTENTION_BUGS, HEAD_BUGS, ROPE_BUGS
from explorer.diagnosis.bugs.blocks import BLOCK_BUGS, EMBEDDING_AND_UNEMBEDDING_BUGS
from explorer.diagnosis.bugs.norms_and_feed_forward import FEED_FORWARD_BUGS, LINEAR_BUGS, NORM_BUGS
from explorer.diagnosis.bugs.omitted_or_repeated_steps import STEP_BUGS
from explorer.diagnosis.reference_formulas import KnownBug

KNOWN_BUGS: tuple[KnownBug, ...] = (
    *(*EMBEDDING_AND_UNEMBEDDING_BUGS, *BLOCK_BUGS, *NORM_BUGS, *ROPE_BUGS, *ATTENTION_BUGS, *HEAD_BUGS),
    *(*FEED_FORWARD_BUGS, *LINEAR_BUGS),
)
BUG_BY_NAME = {bug.name: bug for bug in KNOWN_BUGS}
__all__ = ["BUG_BY_NAME", "KNOWN_BUGS", "STEP_BUGS"]
