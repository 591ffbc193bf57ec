"""What is timed of SQLite, Lua, PCRE2 and FFTW: whole programs, queries, patterns and transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.case import Case, amount
from bench.documents import prose_text
from bench.inputs import Arrays
from bench.plain import POINTER, Call, bound, call, taken
from visget.runtime.library import Library

_MIB = 1 << 20
_ROW = 100
_FILL = """
CREATE TABLE item(id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, price REAL);
CREATE TABLE sale(id INTEGER PRIMARY KEY, item INTEGER, count INTEGER, day TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {items})
INSERT INTO item SELECT i, i * 7919 % 97, printf('item %05d', i * 104729 % 99991), i * 31 % 1000 / 8.0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {sales})
INSERT INTO sale SELECT i, 1 + i * 48271 % {items}, 1 + i % 9, date('2020-01-01', (i * 16807 % 1000) || ' days') FROM n;
COMMIT;
CREATE INDEX by_item ON sale(item);
"""
_QUERIES = {
    "join and group": "SELECT kind, sum(count * price), count(*), max(day) FROM sale JOIN item ON item.id = sale.item "
    "GROUP BY kind ORDER BY 2 DESC",
    "sort by text": "SELECT sum(length(name) * r) FROM (SELECT name, row_number() OVER (ORDER BY name, day) AS r "
    "FROM sale JOIN item ON item.id = sale.item WHERE name LIKE '%7%')",
}
_PROGRAMS = {
    "nested loops and tables": """
        local n, steps = 200, {steps}
        local sum = 0.0
        local t = {{}}
        for i = 1, n do t[i] = i * 0.5 end
        for s = 1, steps do
          for i = 2, n - 1 do t[i] = (t[i - 1] + t[i] + t[i + 1]) * 0.333 + s % 3 end
        end
        for i = 1, n do sum = sum + t[i] end
        return string.format("%.9g", sum)""",
    "strings": """
        local parts, count = {{}}, {{}}
        for i = 1, {steps} * 5 do parts[i] = string.format("%d:%s", i * 7919 % 1009, string.rep("x", i % 7)) end
        local text = table.concat(parts, ",")
        for word in text:gmatch("[^,]+") do
          local key = word:gsub("x", "yz")
          count[key] = (count[key] or 0) + 1
        end
        local keys = {{}}
        for key in pairs(count) do keys[#keys + 1] = key end
        table.sort(keys)
        return #text .. " " .. #keys .. " " .. keys[#keys // 2]""",
    "functions and closures": """
        local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
        local function compose(f, g) return function(x) return g(f(x)) end end
        local f = function(x) return x end
        for i = 1, 50 do f = compose(f, function(x) return (x * 3 + i) % 1000003 end) end
        local sum = 0
        for i = 1, {steps} do sum = sum + f(i) end
        return tostring(fib({depth}) + sum)""",
}
_PATTERNS = {
    "addresses": (rb"\b([\w.]+)@((?:[\w-]+\.)+[a-z]{2,})\b", b"<$2:$1>"),
    "dates": (rb"\b(20\d\d)-(\d\d)-(\d\d)\b", b"$3.$2.$1"),
    "words, without regard to case": (rb"(?i)\b(?:problem|company|government|WORLD)\b\s+(\w+)", b"[$1]"),
}


def sqlite_cases(*, quick: bool) -> list[Case]:
    """Return the cases of SQLite, in memory."""
    script = _FILL.format(items=500 if quick else 5000, sales=5000 if quick else 60000).encode()
    handle, statement = Arrays().empty(1, np.uint64), Arrays().empty(1, np.uint64)
    database = {"open": POINTER()}

    def opened(lib: Library) -> Any:
        call(lib, "sqlite3_open", b":memory:", handle)
        database["open"] = POINTER(int(handle[0]))
        return database["open"]

    def closed(lib: Library) -> None:
        call(lib, "sqlite3_close", database["open"])

    def rows(lib: Library, sql: bytes) -> bytes:
        code = call(lib, "sqlite3_prepare_v2", database["open"], sql, len(sql), statement, None)
        ready, found = POINTER(int(statement[0])), []
        while code == 0 and call(lib, "sqlite3_step", ready) == _ROW:
            for column in range(call(lib, "sqlite3_column_count", ready)):
                place = call(lib, "sqlite3_column_text", ready, column, result=POINTER)
                found.append(taken(place, call(lib, "sqlite3_column_bytes", ready, column)).tobytes())
        call(lib, "sqlite3_finalize", ready)
        return b"|".join(found)

    def fill(lib: Library) -> Call:
        def again() -> Any:
            run = bound(lib, "sqlite3_exec", opened(lib), script, None, None, None)
            code = run()
            answer = rows(lib, b"SELECT count(*), sum(id * count), max(day) FROM sale")
            closed(lib)
            return code, answer

        return again

    def query(lib: Library, sql: bytes) -> Call:
        call(lib, "sqlite3_exec", opened(lib), script, None, None, None)
        return lambda: rows(lib, sql)

    return [
        Case(title="SQLite insert and index", bind=fill, answer=lambda value: np.frombuffer(value[1], np.uint8)),
        *(Case(title=f"SQLite {title}", bind=lambda lib, sql=sql: query(lib, sql.encode()), release=closed,
               answer=lambda value: np.frombuffer(value, np.uint8)) for title, sql in _QUERIES.items()),
    ]  # fmt: skip


def lua_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Lua: three programs."""
    length = Arrays().empty(1, np.uint64)

    def program(lib: Library, text: bytes) -> Call:
        def again() -> Any:
            state = POINTER(call(lib, "luaL_newstate", result=POINTER))
            call(lib, "luaL_openlibs", state, result=None)
            code = call(lib, "luaL_loadbufferx", state, text, len(text), b"=program", None)
            code = code or call(lib, "lua_pcallk", state, 0, 1, 0, 0, None)
            place = call(lib, "lua_tolstring", state, -1, length, result=POINTER)
            said = taken(place, int(length[0])).copy()
            call(lib, "lua_close", state, result=None)
            if code:
                raise ValueError(said.tobytes().decode(errors="replace"))
            return said

        return again

    return [
        Case(title=f"Lua, {title}", answer=lambda value: value,
             bind=lambda lib, text=text: program(
                 lib, text.format(steps=200 if quick else 4000, depth=15 if quick else 24).encode()))
        for title, text in _PROGRAMS.items()
    ]  # fmt: skip


def pcre2_cases(*, quick: bool) -> list[Case]:
    """Return the cases of PCRE2: all matches of a pattern replaced, without the JIT compiler."""
    text = prose_text(_MIB // 8 if quick else _MIB)
    arrays = Arrays()
    error, place, length = (arrays.empty(1, np.uint64) for _ in range(3))
    out = arrays.empty(2 * len(text), np.uint8)
    utf, everywhere = 0x00080000, 0x00000100
    codes: dict[str, Any] = {}

    def replace(lib: Library, pattern: bytes, by: bytes) -> Call:
        codes["code"] = code = POINTER(
            call(lib, "pcre2_compile_8", pattern, len(pattern), utf, error, place, None, result=POINTER)
        )
        run = bound(lib, "pcre2_substitute_8", code, text, len(text), 0, everywhere, None, None, by, len(by), out,
                    length)  # fmt: skip

        def again() -> Any:
            length[0] = out.size
            return run()

        return again

    return [
        Case(title=f"PCRE2 substitute {title}, {amount(len(text) >> 10 << 10)}", amount=len(text),
             bind=lambda lib, pattern=pattern, by=by: replace(lib, pattern, by),
             release=lambda lib: call(lib, "pcre2_code_free_8", codes["code"], result=None),
             answer=lambda count: np.append(out[: int(length[0])], np.frombuffer(str(count).encode(), np.uint8)))
        for title, (pattern, by) in _PATTERNS.items()
    ]  # fmt: skip


def fftw_cases(*, quick: bool) -> list[Case]:
    """Return the cases of FFTW: double precision, plans by estimation, so that they are the same in each run."""
    arrays, rng = Arrays(), np.random.default_rng(5)
    estimate = 1 << 6
    plans: dict[str, Any] = {}

    def case(title: str, points: tuple[int, ...], real: bool) -> Case:
        count = int(np.prod(points))
        source = arrays.copy(rng.standard_normal(count if real else 2 * count))
        out = arrays.empty(2 * count, np.float64)
        shape = arrays.copy(np.array(points, np.int32))

        def bind(lib: Library) -> Call:
            name, words = ("fftw_plan_dft_r2c", ()) if real else ("fftw_plan_dft", (-1,))
            made = call(lib, name, len(points), shape, source, out, *words, estimate, result=POINTER)
            plans["plan"] = POINTER(made)
            return bound(lib, "fftw_execute", plans["plan"], result=None)

        return Case(title=f"FFTW {title}", bind=bind, answer=lambda _: out.copy(), tolerance=1e-10,
                    release=lambda lib: call(lib, "fftw_destroy_plan", plans["plan"], result=None))  # fmt: skip

    side = 32 if quick else 256
    return [
        case("complex, 4096 points", (4096,), False), case("real, 10080 points", (10080,), True),
        case(f"complex, {side} x {side}", (side, side), False),
    ]  # fmt: skip


