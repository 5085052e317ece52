"""A small vocabulary in CLIP's file format: learnt here from captions, written for the program, and used in training.

The format is that of CLIP ViT-L/14: 256 bytes as printable characters, the same 256 at a word's end (`</w>`), then the merges,
then the two special tokens. Any text has ids, since every byte has one. Merging goes on until each word of the captions is
one token. `data.py` encodes with it, `export.py` writes it.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from functools import lru_cache
from pathlib import Path

import regex

START, END = "<|startoftext|>", "<|endoftext|>"
# Positions of CLIP's text encoder.
LENGTH = 77
MOST_ENTRIES = 1500

# CLIP's cut into words: contractions, letters, single digits, runs of anything else.
_WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+")


@lru_cache(maxsize=1)
def byte_spellings() -> list[str]:
    """The character that stands for each byte in the files: itself where Latin-1 prints it, else counted from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spellings, others = [], 0
    for byte in range(256):
        if byte in printable:
            spellings.append(chr(byte))
        else:
            spellings.append(chr(0x100 + others))
            others += 1
    return spellings


def words(text: str) -> list[str]:
    """The lower-case words that merges stay within, each byte spelled as in the files, without the mark of a word's end."""
    spellings = byte_spellings()
    plain = unicodedata.normalize("NFC", text).lower()
    return ["".join(spellings[byte] for byte in word.encode()) for word in _WORDS.findall(plain)]


def _symbols(word: str) -> tuple[str, ...]:
    return (*word[:-1], word[-1] + "</w>")


def _merged(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """The symbols with each occurrence of the pair, from the left, made one."""
    out, at = [], 0
    while at < len(symbols):
        if symbols[at : at + 2] == pair:
            out.append(pair[0] + pair[1])
            at += 2
        else:
            out.append(symbols[at])
            at += 1
    return tuple(out)


def learn(texts, most_entries: int = MOST_ENTRIES) -> list[tuple[str, str]]:
    """Learns merges, best first: the most frequent pair at each turn, ties in alphabetical order.

    Ends when every word is one symbol, or when the vocabulary would have more than `most_entries` tokens.
    """
    counts = Counter(word for text in texts for word in words(text))
    spelled = {word: _symbols(word) for word in counts}
    merges: list[tuple[str, str]] = []
    while 512 + len(merges) + 2 < most_entries:
        pairs: Counter = Counter()
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word, symbols in spelled.items():
            if len(symbols) > 1:
                spelled[word] = _merged(symbols, best)
    return merges


class Tokenizer:
    """Text to ids, as the program's own tokenizer gives them."""

    def __init__(self, merges: list[tuple[str, str]]):
        self.merges = [tuple(pair) for pair in merges]
        spellings = sorted(byte_spellings(), key=lambda s: (ord(s) >= 0x100, ord(s)))
        tokens = spellings + [s + "</w>" for s in spellings] + [a + b for a, b in self.merges] + [START, END]
        # Two merges may make the same token (in runs of one letter); it then has one id.
        self.vocab = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
        self.start, self.end = self.vocab[START], self.vocab[END]
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._known: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.vocab)

    def _word(self, word: str) -> list[int]:
        if word not in self._known:
            symbols = _symbols(word)
            while len(symbols) > 1:
                best = min(zip(symbols, symbols[1:]), key=lambda pair: self._rank.get(pair, len(self._rank)))
                if best not in self._rank:
                    break
                symbols = _merged(symbols, best)
            self._known[word] = [self.vocab[symbol] for symbol in symbols]
        return self._known[word]

    def ids(self, text: str) -> list[int]:
        """Ids of a text, without start and end."""
        return [number for word in words(text) for number in self._word(word)]

    def padded(self, text: str) -> list[int]:
        """`LENGTH` ids: start, at most 75 of the text, end, and the end token again as padding, as the program does."""
        inner = self.ids(text)[: LENGTH - 2]
        return [self.start, *inner, *[self.end] * (LENGTH - 1 - len(inner))]

    def save(self, path: Path) -> None:
        """One small file that `load` reads; `save_folder` writes CLIP's files."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([" ".join(pair) for pair in self.merges], ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        return cls([tuple(line.split(" ")) for line in json.loads(Path(path).read_text(encoding="utf-8"))])

    def save_folder(self, folder: Path) -> None:
        """Writes vocab.json, merges.txt and the two small files beside them, as diffusers folders have them."""
        folder.mkdir(parents=True, exist_ok=True)

        def write(name: str, text: str) -> None:
            (folder / name).write_text(text, encoding="utf-8")

        names = {"bos_token": START, "eos_token": END, "pad_token": END, "unk_token": END}
        config = {
            **names,
            "add_prefix_space": False,
            "do_lower_case": True,
            "errors": "replace",
            "model_max_length": LENGTH,
            "tokenizer_class": "CLIPTokenizer",
        }
        write("vocab.json", json.dumps(self.vocab, ensure_ascii=False) + "\n")
        write("merges.txt", "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in self.merges))
        write("special_tokens_map.json", json.dumps(names, indent=1) + "\n")
        write("tokenizer_config.json", json.dumps(config, indent=1) + "\n")
