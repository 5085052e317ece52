#!/usr/bin/env python3
"""Makes assets/fonts/NotoSansCJKsc-Softbox.otf: the Chinese characters that the window itself draws.

Takes Noto Sans CJK SC (SIL Open Font License 1.1) and keeps:
  - every character of the Chinese, Japanese and Korean blocks that stands anywhere in src/,
  - the 3755 commonest characters of Simplified Chinese (GB 2312, level 1), so that prompts are drawn too,
  - Chinese punctuation and the full-width forms.
Outlines stay as they are; hinting and layout features go. The same font file gives the same bytes every time.

    pip install fonttools
    python3 scripts/subset_font.py [FONT]

FONT is Debian's fonts-noto-cjk collection unless named. Needed again only when tests/text says that a character is
missing.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTCollection

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
FAMILY = "Noto Sans CJK SC"
TARGET = ROOT / "assets/fonts/NotoSansCJKsc-Softbox.otf"

# Punctuation that Chinese shares with English is left out: the window's text font comes first and has it.
PUNCTUATION = [*range(0x3000, 0x3020), *range(0xFF01, 0xFF5F), 0xFFE5]


def level_one():
    """GB 2312 puts its common characters into rows 16 to 55, in order of pronunciation; the last row is not full."""
    for row in range(16, 56):
        for cell in range(1, 95):
            try:
                yield ord(bytes([0xA0 + row, 0xA0 + cell]).decode("gb2312"))
            except UnicodeDecodeError:
                pass


def in_sources():
    for file in sorted(ROOT.glob("src/**/*.rs")):
        for character in file.read_text(encoding="utf-8"):
            if 0x2E80 <= ord(character) <= 0x9FFF or 0xF900 <= ord(character) <= 0xFAFF:
                yield ord(character)


def main():
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else DEBIAN
    fonts = TTCollection(source).fonts
    font = next((f for f in fonts if f["name"].getDebugName(1) == FAMILY), None)
    if font is None:
        sys.exit(f"{source} holds no {FAMILY}")
    wanted = {*level_one(), *in_sources(), *PUNCTUATION}
    known = set(font.getBestCmap())
    if unknown := {*in_sources()} - known:
        sys.exit("the font lacks " + " ".join(map(chr, sorted(unknown))))

    options = subset.Options()
    options.layout_features = []
    options.hinting = False
    options.notdef_outline = True
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14]
    options.name_languages = [0x409]
    options.drop_tables += ["BASE", "VORG", "vhea", "vmtx", "GPOS", "GSUB", "GDEF", "DSIG"]
    options.recalc_timestamp = False
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=wanted & known)
    # Written as it was made, not as of now.
    font.recalcTimestamp = False
    subsetter.subset(font)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    font.save(TARGET)
    print(f"{TARGET.relative_to(ROOT)}: {len(wanted & known)} characters, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
