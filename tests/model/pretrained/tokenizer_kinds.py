"""Tokenizers of every common kind, built as in tutorials of the `tokenizers` package and by converters."""

import json
from collections.abc import Callable
from functools import cache

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = (
    "Once upon a time there was a small fox who wanted the moon. Every night she looked up and said: "
    "I will have it one day! The owl didn't laugh, and 12 of 345 stars were café-coloured.\n\tNo, they said.\n\n"
) * 3
SPECIALS = ["[UNK]", "[EOS]", "[PAD]"]
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def make_tokenizer(model, trainer, normalizer=None, words=None, decoder=None, after=None) -> Tokenizer:
    """Return a tokenizer of these components, trained on TEXT."""
    tokenizer = Tokenizer(model)
    for name, component in {"normalizer": normalizer, "pre_tokenizer": words, "decoder": decoder}.items():
        if component is not None:
            setattr(tokenizer, name, component)
    tokenizer.train_from_iterator([TEXT], trainer)
    if after:
        tokenizer.post_processor = after
    return tokenizer


def bpe(specials=SPECIALS, size=260, model=None, **components) -> Tokenizer:
    marks = model or {}
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False, **marks)
    return make_tokenizer(models.BPE(unk_token=specials[0], **marks), trainer, **components)


def byte_level(words, **components) -> Tokenizer:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    return make_tokenizer(models.BPE(), trainer, words=words, **{"decoder": decoders.ByteLevel()} | components)


def word_level(words, specials=SPECIALS, **components) -> Tokenizer:
    trainer = trainers.WordLevelTrainer(special_tokens=specials, show_progress=False)
    return make_tokenizer(models.WordLevel(unk_token=specials[0]), trainer, words=words, **components)


def word_piece(**components) -> Tokenizer:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=specials, show_progress=False)
    return make_tokenizer(models.WordPiece(unk_token="[UNK]"), trainer, **components)


def unigram(**components) -> Tokenizer:
    names = ["<unk>", "</s>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=80 + len(names), special_tokens=names, unk_token="<unk>", show_progress=False
    )
    return make_tokenizer(models.Unigram(), trainer, **components)


def llama(normalizer=None, words=None, decoder=None, after=None) -> Tokenizer:
    """Return a tokenizer as converted from SentencePiece: bytes are ordinary tokens of the vocabulary."""
    learnt = bpe(["<unk>", "<s>", "</s>"], 120, normalizer=normalizer, words=words)
    pieces = ["<unk>", "<s>", "</s>", *BYTES]
    vocabulary = sorted(learnt.get_vocab().items(), key=lambda item: item[1])
    pieces += [piece for piece, _id in vocabulary if piece not in pieces]

    merges = [tuple(pair) for pair in json.loads(learnt.to_str())["model"]["merges"]]
    ids = {piece: token_id for token_id, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens(pieces[:3])
    if normalizer:
        tokenizer.normalizer = normalizer
    if words:
        tokenizer.pre_tokenizer = words
    tokenizer.decoder = decoder
    if after:
        tokenizer.post_processor = after
    return tokenizer


def spaces(mark="▁", strips=True) -> decoders.Decoder:
    parts = [decoders.Replace(mark, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if strips else [])])


def metaspace(mark="▁", scheme="always", split=True) -> dict:
    shared = {"replacement": mark, "prepend_scheme": scheme, "split": split}
    return {"words": pre_tokenizers.Metaspace(**shared), "decoder": decoders.Metaspace(**shared)}


def template(before: str, token_id: int, after: str = "") -> processors.PostProcessor:
    special_tokens = [(before, token_id)] + ([(after, token_id + 1)] if after else [])
    return processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=special_tokens)


def characters() -> Tokenizer:
    ids = {character: i for i, character in enumerate(["[UNK]", *sorted(set(TEXT))])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def speech_characters() -> Tokenizer:
    """Return a tokenizer like those of speech models: one token per letter, "|" between words, repeats merged."""
    ids = {piece: i for i, piece in enumerate(["<pad>", "<unk>", "|", *"abcdefghijklmnopqrstuvwxyz'"])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "|")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.CTC()
    return tokenizer


WORDS, GPT2_WORDS = pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=False)
QWEN_WORDS = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(Regex(QWEN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)
PLAIN = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
MARKED = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "BPE of words": lambda: bpe(words=WORDS),
    "BPE of words, lower case": lambda: bpe(words=WORDS, normalizer=PLAIN, after=template("[EOS]", 1)),
    "BPE, </w>": lambda: bpe(
        model={"end_of_word_suffix": "</w>"}, words=WORDS, decoder=decoders.BPEDecoder(), normalizer=PLAIN
    ),
    "BPE, _ ends a word": lambda: bpe(
        model={"end_of_word_suffix": "_"}, words=WORDS, decoder=decoders.BPEDecoder(suffix="_")
    ),
    "BPE, </w> without a decoder": lambda: bpe(model={"end_of_word_suffix": "</w>"}, words=WORDS),
    "BPE, </w> replaced": lambda: bpe(
        model={"end_of_word_suffix": "</w>"},
        words=WORDS,
        decoder=decoders.Sequence([decoders.Replace("</w>", " "), decoders.Fuse(), decoders.Strip(" ", 0, 1)]),
    ),
    "BPE, ## goes on": lambda: bpe(
        model={"continuing_subword_prefix": "##"}, words=WORDS, decoder=decoders.WordPiece()
    ),
    "BPE, @@ goes on": lambda: bpe(
        model={"continuing_subword_prefix": "@@"}, words=WORDS, decoder=decoders.WordPiece("@@", cleanup=False)
    ),
    "BPE of lines": lambda: bpe(decoder=decoders.Fuse()),
    "BPE, Metaspace": lambda: bpe(**metaspace()),
    "BPE, digits apart": lambda: bpe(
        words=pre_tokenizers.Sequence([WORDS, pre_tokenizers.Digits(individual_digits=True)])
    ),
    "BPE, scripts": lambda: bpe(words=pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), WORDS])),
    "BPE, fused": lambda: bpe(words=pre_tokenizers.Split(" ", "merged_with_next"), decoder=decoders.Fuse()),
    "WordLevel": lambda: word_level(WORDS),
    "WordLevel, split at spaces": lambda: word_level(pre_tokenizers.WhitespaceSplit(), after=template("[EOS]", 1)),
    "WordLevel, split at one character": lambda: word_level(pre_tokenizers.CharDelimiterSplit(" ")),
    "WordLevel, punctuation": lambda: word_level(pre_tokenizers.Sequence([WORDS, pre_tokenizers.Punctuation()])),
    "WordLevel, Metaspace": lambda: word_level(**metaspace()),
    "WordPiece": lambda: word_piece(words=WORDS, decoder=decoders.WordPiece()),
    "WordPiece, BERT": lambda: word_piece(
        normalizer=normalizers.BertNormalizer(),
        words=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(),
        after=template("[CLS]", 2, "[SEP]"),
    ),
    "WordPiece without a decoder": lambda: word_piece(words=WORDS),
    "Unigram": lambda: unigram(**metaspace()),
    "Unigram, _ for a space": lambda: unigram(**metaspace("_")),
    "Unigram, a space before the first": lambda: unigram(**metaspace(scheme="first")),
    "Unigram, no space before": lambda: unigram(**metaspace(scheme="never", split=False)),
    "Unigram, NFKC": lambda: unigram(
        normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), **metaspace()
    ),
    "characters": characters,
    "CTC": speech_characters,
    "byte-level": lambda: byte_level(GPT2_WORDS),
    "byte-level, a space before": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "byte-level without a decoder": lambda: byte_level(GPT2_WORDS, decoder=None),
    "byte-level, Qwen": lambda: byte_level(QWEN_WORDS, normalizer=normalizers.NFC()),
    "byte-level, Llama 3": lambda: byte_level(
        QWEN_WORDS, after=processors.Sequence([processors.ByteLevel(trim_offsets=False), template("<|end|>", 0)])
    ),
    "byte-level, RoBERTa": lambda: byte_level(
        GPT2_WORDS, after=processors.RobertaProcessing(("<|end|>", 0), ("<|end|>", 0))
    ),
    "byte-level by its normalizer": lambda: byte_level(None, normalizer=normalizers.ByteLevel()),
    "byte-level in a sequence": lambda: byte_level(
        GPT2_WORDS, decoder=decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    ),
    "Llama 2": lambda: llama(normalizer=MARKED, decoder=spaces(), after=template("<s>", 1)),
    "Llama 2, not legacy": lambda: llama(words=metaspace(scheme="first", split=False)["words"], decoder=spaces()),
    "Gemma": lambda: llama(
        normalizer=normalizers.Replace(" ", "▁"), decoder=spaces(strips=False), after=template("<s>", 1)
    ),
}
tokenizer_json = cache(lambda kind: KINDS[kind]().to_str())
