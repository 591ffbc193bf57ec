"""Which characters a text of a package may hold, so that showing it cannot drive a terminal or deceive a reader.

Invariant: a text that passes holds no control character (a text may hold newline and tab), no separator that
ends a line elsewhere, and nothing that reorders what is read. The rule is docs/spec/manifest.md, section "Text".
"""

from __future__ import annotations

import re
from functools import cache

# C0, DEL and C1 controls (terminal escapes), line and paragraph separator, and the marks, embeddings, overrides
# and isolates of the bidirectional algorithm; lone surrogates cannot be encoded at all.
_EVIL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"


@cache
def _evil() -> re.Pattern[str]:
    # Compiled when first needed: this module is on the load path, where most texts take the short way.
    return re.compile(f"[{_EVIL}]")


def is_line(text: str) -> bool:
    """Tell whether `text` is plain and has neither newline nor tab."""
    if text.isascii():
        return text.isprintable()
    return "\n" not in text and "\t" not in text and _evil().search(text) is None


def is_text(text: str) -> bool:
    """Tell whether `text` is plain: newlines and tabs are allowed, other controls are not."""
    return is_line(text.replace("\n", "").replace("\t", ""))


def clean_text(text: str) -> str:
    """Return `text` with line ends made newlines and every forbidden character made U+FFFD."""
    return _evil().sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_line(text: str) -> str:
    """Return `text` as one line: white space runs become one blank, forbidden characters U+FFFD."""
    return _evil().sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
