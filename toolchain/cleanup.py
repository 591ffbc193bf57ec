"""The few passes of LLVM that the toolchain itself runs, for the neutral machine.

Invariant: the same module and passes give the same bytes on any machine. The lists are part of the format of
reproducible builds: changing one changes every package (docs/spec/front-end.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from visget.format.module import TRIPLE, ModuleRef

LIGHT = ("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg")
"""Removes what no processor needs: stack slots, and branches that nothing takes."""
SWEEP = ("global_dead_code_eliminate", "strip_dead_prototype")
"""Removes what nothing refers to."""

_FEATURES = "+m,+a,+f,+d,+c"


def run_passes(module: ModuleRef, passes: Sequence[str]) -> None:
    """Run `passes` over `module`, one after another."""
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu="generic-rv64", features=_FEATURES, opt=2, reloc="pic", codemodel="default"
    )
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        add: Callable[[], None] = getattr(manager, f"add_{name}_pass")
        add()
    manager.run(module, builder)
