"""The catalogue of common implementation bugs, one file per subject."""

from explorer.diagnosis.bugs.attention import attention_bugs, head_bugs, rope_bugs
from explorer.diagnosis.bugs.blocks import block_bugs, embedding_and_unembedding_bugs
from explorer.diagnosis.bugs.norms_and_feed_forward import feed_forward_bugs, linear_bugs, norm_bugs
from explorer.diagnosis.bugs.omitted_or_repeated_steps import step_bugs
from explorer.diagnosis.reference_formulas import KnownBug

KNOWN_BUGS: tuple[KnownBug, ...] = (
    *embedding_and_unembedding_bugs(),
    *block_bugs(),
    *norm_bugs(),
    *rope_bugs(),
    *attention_bugs(),
    *head_bugs(),
    *feed_forward_bugs(),
    *linear_bugs(),
)
STEP_BUGS: tuple[KnownBug, ...] = tuple(step_bugs())
BUG_BY_NAME = {bug.name: bug for bug in KNOWN_BUGS}
