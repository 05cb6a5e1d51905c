"""Neurons held at a value."""

from explorer.tracing.at_work.work import Change, Passes, Work
from model.transformer_lm import TransformerLM


class Clamping(Work):
    """Of `Clamp`."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def hold(module, inputs, output):
            return output.masked_fill(passes.chosen(self.edit, output), self.edit.amount)

        return [(lm.taps[self.edit.tap], hold)]
