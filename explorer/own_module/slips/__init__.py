"""The slips that are tried, a subject a file."""

from explorer.own_module.slips.of_attention import attention_slips
from explorer.own_module.slips.of_blocks import block_slips
from explorer.own_module.slips.of_ends import end_slips
from explorer.own_module.slips.of_feed_forward import feed_forward_slips
from explorer.own_module.slips.of_heads import head_slips
from explorer.own_module.slips.of_maps import map_slips
from explorer.own_module.slips.of_norms import norm_slips
from explorer.own_module.slips.of_rotation import rotation_slips
from explorer.own_module.slips.of_steps import step_slips
from explorer.own_module.slips.slip import Slip

SLIPS: tuple[Slip, ...] = (
    *end_slips(),
    *block_slips(),
    *norm_slips(),
    *rotation_slips(),
    *attention_slips(),
    *head_slips(),
    *feed_forward_slips(),
    *map_slips(),
)
STEP_SLIPS: tuple[Slip, ...] = tuple(step_slips())
SLIP_NAMED = {slip.name: slip for slip in SLIPS}
