"""Vocabularies for the tiny models: byte-pair merges learnt from a few sentences, in CLIP's file format.

Used by make_reference.py only, which also needs CLIP's own merges, to check ids against the vocabulary that we carry.
"""

import gzip
import importlib.util
import json
from pathlib import Path

# Text to learn small vocabularies from; our own sentences.
CORPUS = """a photo of a cat in a red hat. portrait of a woman by the window, soft light, warm colours, film grain.
the old man smiles in the garden; a quiet portrait with bright eyes. studio light, grey background, sharp focus,
low quality, blurry, bad hands. a small chair in front of the window. she holds a flower and looks at the camera.
close up portrait, freckles, natural skin, evening light, photo taken with an old camera. the cat sits on the chair."""


def package_folder(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def write_json(path, value, indent=1):
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def byte_symbols():
    """The 256 printable stand-ins for bytes that GPT-2's and CLIP's byte-level BPE use, in vocabulary order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(rest)}


def learn_merges(count):
    """Plain BPE on CORPUS: the most frequent pair first, ties in alphabetical order."""
    words = {}
    for word in CORPUS.lower().replace(",", " ,").replace(".", " .").replace(";", " ;").split():
        symbols = (*word[:-1], word[-1] + "</w>")
        words[symbols] = words.get(symbols, 0) + 1
    merges = []
    for _ in range(count):
        pairs = {}
        for symbols, n in words.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] = pairs.get(pair, 0) + n
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        merged = {}
        for symbols, n in words.items():
            out, i = [], 0
            while i < len(symbols):
                if symbols[i : i + 2] == best:
                    out.append("".join(best))
                    i += 2
                else:
                    out.append(symbols[i])
                    i += 1
            merged[tuple(out)] = n
        words = merged
    return merges


def clip_merges():
    """CLIP's published 48,894 merges."""
    path = package_folder("clip") / "bpe_simple_vocab_16e6.txt.gz"
    lines = gzip.open(path).read().decode().split("\n")[1 : 49152 - 256 - 2 + 1]
    return [tuple(line.split()) for line in lines]


def save_tokenizer(folder, merges, bos, eos, pad, specials_first):
    """Writes vocab.json, merges.txt and the two small files beside them; returns the vocabulary's size and itself."""
    folder.mkdir(parents=True)
    symbols = list(byte_symbols().values())
    tokens = symbols + [s + "</w>" for s in symbols] + ["".join(m) for m in merges]
    specials = list(dict.fromkeys([bos, eos, pad]))
    tokens = specials + tokens if specials_first else tokens + specials
    vocab = {token: i for i, token in enumerate(tokens)}
    assert len(vocab) == len(tokens)
    write_json(folder / "vocab.json", vocab, indent=None)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges), encoding="utf-8")
    names = {"bos_token": bos, "eos_token": eos, "pad_token": pad, "unk_token": eos}
    write_json(folder / "special_tokens_map.json", names)
    write_json(folder / "tokenizer_config.json", {
        **names, "add_prefix_space": False, "do_lower_case": True, "errors": "replace", "model_max_length": 77,
        "tokenizer_class": "CLIPTokenizer",
    })
    return len(tokens), vocab
