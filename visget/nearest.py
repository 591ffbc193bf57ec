"""The known word that somebody probably meant, for hints of the form "did you mean ...?".

Invariant: nothing is imported until a word is looked for: that happens only on the way to an error.
"""

from __future__ import annotations

from collections.abc import Iterable

_EXCHANGED_FROM = 3


def nearest(word: str, known: Iterable[str], *, n: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return up to `n` of the `known` words that look like `word`, the likeliest first.

    Two letters that changed places count as one slip of the finger, however short the word is: ``tyni`` is ``tiny``.
    """
    import difflib

    words = sorted(set(known))
    exchanged = [one for one in words if _is_exchanged(word, one)]
    alike = difflib.get_close_matches(word, words, n=n, cutoff=cutoff)
    return list(dict.fromkeys([*exchanged, *alike]))[:n]


def _is_exchanged(one: str, other: str) -> bool:
    if len(one) != len(other) or len(one) < _EXCHANGED_FROM or sorted(one) != sorted(other):
        return False
    return sum(a != b for a, b in zip(one, other, strict=True)) == 2
