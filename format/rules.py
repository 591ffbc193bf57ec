"""The table of the VIS-1 rules, in the order of their ids. Each is described in docs/spec/vis-1.md.

Invariant: ids are unique and never reused; a rule that goes away leaves a gap.
"""

from __future__ import annotations

from visget.format import rules_abi, rules_code, rules_imports, rules_module, rules_speed, rules_symbols, rules_types
from visget.format.rule import Rule

RULES: tuple[Rule, ...] = (
    *rules_module.RULES,
    *rules_symbols.RULES,
    *sorted((*rules_code.RULES, *rules_types.RULES), key=lambda rule: rule.id),
    *rules_abi.RULES,
    *rules_imports.RULES,
    *rules_speed.RULES,
)
"""All rules."""

BY_ID: dict[str, Rule] = {rule.id: rule for rule in RULES}
"""The same by id, for `visget check --explain`."""
