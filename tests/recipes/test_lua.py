"""Lua runs programs, on every machine; errors travel by longjmp."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from machines import Machine

RECIPE = "lua"
DISTRIBUTION = ("liblua5.4.so.0",)
PROGRAM = """
local t = {}
for i = 1, 1000 do t[i] = (i * 7919) % 1009 end
table.sort(t, function(a, b) return a > b end)
local sum = 0
for _, v in ipairs(t) do sum = sum + v end
local ok, err = pcall(function() error({code = 42}) end)
local ok2, err2 = pcall(function() local x; return x.y end)
local co = coroutine.wrap(function(a) for i = 1, 3 do a = a + coroutine.yield(a) end return "end" end)
local parts = {co(10), co(1), co(2), co(3)}
local words = {}
for w in ("the quick brown fox"):gmatch("%a+") do words[#words + 1] = w:upper():reverse() end
local mt = setmetatable({}, {
  __index = function(_, k) return k * 2 end, __call = function(_, ...) return select("#", ...) end })
goto done
sum = -1
::done::
return string.format("%d %d %d %s %s %s %s %d %d %q %.14g %x %5.1f|%-5s|", sum, t[1], err.code, tostring(ok2), err2,
  table.concat(parts, ","), table.concat(words, " "), mt[21], mt(1, nil, 3), "a\\n\\0b", 2^53, 255, math.pi, "ab"),
  math.tointeger(3.0), 7 // 2, -7 // 2, 7 % -3, 2^0.5, 1e15, 10 / 2, 3 | 4, "10" + 5,
  math.maxinteger + 1 == math.mininteger,
  utf8.char(233, 20013, 128512), #utf8.char(128512), ("x"):rep(3, "-"), string.pack("<i4d", -2, 1.5):byte(1, -1)
"""


class State:
    """One interpreter."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.handle = machine.luaL_newstate()
        assert self.handle
        machine.luaL_openlibs(self.handle)

    def text(self, place: int) -> str:
        m, size = self.machine, self.machine.buffer(8)
        found = m.luaL_tolstring(self.handle, place, size)
        text = m.read(found, size.u64()).decode("utf-8", "backslashreplace")
        m.lua_settop(self.handle, -2)
        return text

    def run(self, program: str) -> tuple[int, list[str]]:
        m = self.machine
        code = program.encode()
        m.lua_settop(self.handle, 0)
        status = m.luaL_loadbufferx(self.handle, code, len(code), b"=test", None)
        status = status or m.lua_pcallk(self.handle, 0, m.LUA_MULTRET, 0, 0, None)
        return status, [self.text(n + 1) for n in range(m.lua_gettop(self.handle))]

    def close(self) -> None:
        self.machine.lua_close(self.handle)


def test_the_same_results_as_the_distribution(machine: Machine, theirs: Machine) -> None:
    results = []
    for m in (machine, theirs):
        state = State(m)
        results.append(state.run(PROGRAM))
        state.close()
    assert results[0] == results[1]
    assert results[0][0] == 0
    assert results[0][1][0].startswith("505046 1008 42 false test:8: attempt to index a nil value")


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("x = = 1", 3, "test:1: unexpected symbol near '='"),
        ("error('oops')", 2, "test:1: oops"),
        ("local function f() return f() + 1 end f()", 2, "stack overflow"),
        ("return ('x'):rep(1 << 62)", 2, "resulting string too large"),
        ("string.rep()", 2, "bad argument #1 to 'rep' (string expected, got no value)"),
        ("for i = 1, 10, 0 do end", 2, "'for' step is zero"),
        ("return 1 < {}", 2, "attempt to compare number with table"),
        ("coroutine.wrap(function() error('in coroutine') end)()", 2, "in coroutine"),
        ("return 1 // 0", 2, "attempt to divide by zero"),
    ],
)
def test_errors(machine: Machine, program: str, status: int, words: str) -> None:
    state = State(machine)
    code, values = state.run(program)
    assert code == status
    assert words in values[-1]
    assert state.run("return 'still alive'") == (0, ["still alive"])
    state.close()


def test_functions_of_ours(machine: Machine) -> None:
    """Lua calls a Python function."""
    state = State(machine)

    def add(handle: int) -> int:
        one, two = machine.luaL_checknumber(handle, 1), machine.luaL_checknumber(handle, 2)
        machine.lua_pushnumber(handle, one + two)
        return 1

    machine.lua_pushcclosure(state.handle, add, 0)
    machine.lua_setglobal(state.handle, b"add")
    assert state.run("return add(1.5, 2), select('#', add(1, 1))") == (0, ["3.5", "1"])
    state.close()


def test_numbers(machine: Machine) -> None:
    state = State(machine)
    for text in ("0x1p-3", "1e308 * 10", "math.sin(1)", "math.exp(0.5)", "math.fmod(-7, 3)", "0.1 + 0.2"):
        value = float(state.run(f"return string.format('%.17g', {text})")[1][0])
        wanted = {"0x1p-3": 0.125, "1e308 * 10": math.inf, "math.sin(1)": math.sin(1), "math.exp(0.5)": math.exp(0.5),
                  "math.fmod(-7, 3)": -1.0, "0.1 + 0.2": 0.1 + 0.2}[text]  # fmt: skip
        assert value == pytest.approx(wanted, rel=1e-15)
    program = "return tonumber('0x7fffffffffffffff'), tonumber('9223372036854775808'), tonumber('1e'), 3 == 3.0"
    assert state.run(program) == (
        0, ["9223372036854775807", "9.2233720368548e+18", "nil", "true"],
    )  # fmt: skip
    state.close()


def test_files_and_time(machine: Machine, tmp_path: Path) -> None:
    state = State(machine)
    path = tmp_path / "out.txt"
    program = f"""
      local f = assert(io.open({str(path)!r}, "w")) f:write("one\\n", 2, "\\n", 3.5, "\\n") f:close()
      local lines = {{}} for line in io.lines({str(path)!r}) do lines[#lines + 1] = line end
      local g = io.open({str(path)!r}) g:seek("set", 4) local n = g:read("n") g:close()
      local none, why = io.open("/nonexistent/x")
      return table.concat(lines, ","), n, why, os.date("!%Y-%m-%d %H:%M:%S", 86400 * 365), os.getenv("PATH") ~= nil,
        os.time({{year = 2026, month = 11, day = 30, hour = 12}}) > 1e9, type(os.tmpname())
    """
    assert state.run(program) == (
        0, ["one,2,3.5", "2", "/nonexistent/x: No such file or directory", "1971-01-01 00:00:00", "true", "true",
            "string"],
    )  # fmt: skip
    assert path.read_text() == "one\n2\n3.5\n"
    state.close()


def test_a_larger_program(machine: Machine) -> None:
    """The sieve of Eratosthenes, the garbage collector under load, and string building."""
    state = State(machine)
    program = """
      local n, count, sieve = 20000, 0, {}
      for i = 2, n do if not sieve[i] then count = count + 1 for j = i * i, n, i do sieve[j] = true end end end
      local t = {} for i = 1, 20000 do t[i % 100] = {("x"):rep(i % 50), i} end
      collectgarbage()
      return count, collectgarbage("count") < 4000
    """
    assert state.run(program) == (0, ["2262", "true"])
    state.close()
