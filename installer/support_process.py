"""Built-ins for what a library registers with its process, and for names that C libraries spell differently.

Functions registered with atexit and pthread_atfork must not outlive the library. Compilers give each library a handle
for that (`__dso_handle` of crtbegin.o) and a call of `__cxa_finalize` with it at unload. Packages are linked without
crtbegin.o, so both are here. Invariant: pure; every symbol defined here is internal. The C libraries' names are
docs/spec/platform.md.
"""

from __future__ import annotations

from visget.installer.support_parts import BuiltIn, declare

HANDLE = "__vis_dso_handle"
"""The variable whose address stands for the library."""

# Its own address as its value: nobody reads it, and nobody can take it for another library's.
_HANDLE = BuiltIn(
    text=f"""
@{HANDLE} = internal global ptr @{HANDLE}, align 8
define internal void @__vis_finalise() uwtable {{
  call void @__cxa_finalize(ptr @{HANDLE})
  ret void
}}
""",
    externals=declare("void", "__cxa_finalize", "ptr"),
    finaliser="__vis_finalise",
)
_AT_EXIT = declare("signext i32", "__cxa_atexit", "ptr, ptr, ptr")
# The numbers that the unwinder's tables use for the two registers in which a landing pad is told what was thrown.
_EXCEPTION_REGISTERS = {"x86_64": 0, "aarch64": 0, "riscv64": 10}


def process_built_ins(arch: str, libc: str) -> dict[str, BuiltIn]:
    """Return the built-ins of this module for `arch` and the C library `libc` ("gnu" or "musl")."""
    gnu = libc == "gnu"
    return {
        HANDLE: _HANDLE,
        # C's functions take no argument, C++'s take one; what is passed to a function that takes none is not seen.
        "__vis_atexit": BuiltIn(
            text=f"""
define internal signext i32 @__vis_atexit(ptr %function) uwtable {{
  %result = call signext i32 @__cxa_atexit(ptr %function, ptr null, ptr @{HANDLE})
  ret i32 %result
}}
""",
            needs=(HANDLE,),
            externals=_AT_EXIT,
        ),
        "__vis_cxa_atexit": BuiltIn(
            text=f"""
define internal signext i32 @__vis_cxa_atexit(ptr %function, ptr %argument, ptr %ignored) uwtable {{
  %result = call signext i32 @__cxa_atexit(ptr %function, ptr %argument, ptr @{HANDLE})
  ret i32 %result
}}
""",
            needs=(HANDLE,),
            externals=_AT_EXIT,
        ),
        "__vis_pthread_atfork": _at_fork(gnu),
        "__vis_strerror_r": _renamed(
            "strerror_r", "__xpg_strerror_r" if gnu else "strerror_r", "signext i32", "i32 signext, ptr, i64"
        ),
        "__vis_basename": _renamed("basename", "__xpg_basename" if gnu else "basename", "ptr", "ptr"),
        "__vis_eh_return_data_regno": _register(_EXCEPTION_REGISTERS[arch]),
    }


def _at_fork(gnu: bool) -> BuiltIn:
    # In glibc, pthread_atfork is in the part that is linked statically, and hands on the library's handle.
    name, more, kinds = ("__register_atfork", f", ptr @{HANDLE}", ", ptr") if gnu else ("pthread_atfork", "", "")
    return BuiltIn(
        text=f"""
define internal signext i32 @__vis_pthread_atfork(ptr %prepare, ptr %parent, ptr %child) uwtable {{
  %result = call signext i32 @{name}(ptr %prepare, ptr %parent, ptr %child{more})
  ret i32 %result
}}
""",
        needs=(HANDLE,) if gnu else (),
        externals=declare("signext i32", name, "ptr, ptr, ptr" + kinds),
    )


def _renamed(name: str, there: str, result: str, parameters: str) -> BuiltIn:
    values = ", ".join(f"{kind} %a{number}" for number, kind in enumerate(parameters.split(", ")))
    text = f"""
define internal {result} @__vis_{name}({values}) uwtable {{
  %result = call {result} @{there}({values})
  ret {result.split()[-1]} %result
}}
"""
    return BuiltIn(text=text, externals=declare(result, there, parameters))


def _register(first: int) -> BuiltIn:
    text = f"""
define internal signext i32 @__vis_eh_return_data_regno(i32 signext %which) \
alwaysinline nounwind willreturn memory(none) {{
  %known = icmp ult i32 %which, 2
  %number = add i32 %which, {first}
  %result = select i1 %known, i32 %number, i32 -1
  ret i32 %result
}}
"""
    return BuiltIn(text=text)
