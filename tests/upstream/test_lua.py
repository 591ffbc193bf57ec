"""Lua: the official test suite, with the interpreter that is made of lua.c and the installed library.

The suite is no part of the source package of the recipe. PyPI's lupa 2.0 brings Lua's repository at the same version.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from upstreamkit import FAILED, NATIVE, OURS, PASSED, Suite, Workbench

HERE = Path(__file__).parent
FLAGS = ["-DLUA_COMPAT_5_3", "-DLUA_USE_POSIX"]
LUPA = ("lupa", "2.0", "ad3fef486be7adddd349fe9a9c393789061312cf98ebc533b489be34f484cb79")
ALONE = ("all.lua", "heavy.lua")
"""The first runs the others; the second takes all memory there is."""


def make(workbench: Workbench) -> Suite:
    suite = workbench.suite(
        "lua", sources=["src/l*.c"], exclude=["src/lua.c", "src/luac.c"], flags=FLAGS, include=["src"]
    )
    tests = workbench.pypi(*LUPA, "third-party/lua54/testes")
    for side in (NATIVE, OURS):
        extra = suite.objects("variadic", [HERE / "lua_variadic.c"], ["-O1", "-w", f"-I{suite.tree}/src"])
        program = suite.program(side, "lua", ["src/lua.c"], FLAGS, extra if side == OURS else [])
        shutil.copytree(tests, program.parent / "testes")
    return suite


@pytest.mark.parametrize("mode", ["portable", "all"])
def test_each_file(suite: Suite, mode: str) -> None:
    found: dict[str, dict[str, str]] = {NATIVE: {}, OURS: {}}
    said = {}
    start = "_U=true _soft=true _port=true _nomsg=true" if mode == "portable" else "_soft=true _nomsg=true"
    for side in (NATIVE, OURS):
        place = suite.work / side / "testes"
        for file in sorted(path.name for path in place.glob("*.lua")):
            if file not in ALONE:
                done = suite.ran(side, place.parent / "lua", "-e", start, file, cwd=place, input="")
                said[side, file] = f"{done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
                found[side][file] = PASSED if done.returncode == 0 else FAILED
    print(*(f"{key}: {text}" for key, text in said.items() if found[key[0]][key[1]] != PASSED), sep="\n")
    known = {} if mode == "portable" else KNOWN
    suite.report(f"lua-5.4.4-tests, file by file, {mode}", found, expected=30, known=known)


KNOWN = {"main.lua": "expects that readline shows what it reads, which neither program was linked with"}


def test_all_in_one(suite: Suite) -> None:
    found = {}
    for side in (NATIVE, OURS):
        place = suite.work / side / "testes"
        done = suite.ran(side, place.parent / "lua", "-e", "_U=true", "all.lua", cwd=place)
        found[side] = {"all.lua": PASSED if "final OK !!!" in done.stdout and done.returncode == 0 else FAILED}
        print(side, done.stdout[-500:], done.stderr[-2000:])
    suite.report("lua-5.4.4-tests, all.lua with _U", found)
    suite.not_run("what the suite tests through the module T", "needs a library compiled with ltests.h, for itself")
    suite.not_run("loading of C modules (attrib.lua)", "the package is without dlopen, as the native library")
    suite.not_run(
        "lua_pushfstring, lua_pushvfstring, luaL_error, lua_gc",
        "variable arguments are not exported; lua.c gets those that it calls from lua_variadic.c",
    )
    suite.not_run("heavy.lua", "takes all of the machine's memory")
