"""Readers of pretrained models in the files of other projects."""
