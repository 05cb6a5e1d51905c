"""Numbers that the analysis makes of captured values, one at a time: how each comes about, worked out again."""
