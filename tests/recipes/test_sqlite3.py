"""SQLite against the SQLite in Python, on every machine."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from machines import Machine

RECIPE = "sqlite3"
DISTRIBUTION = ("libsqlite3.so.0",)


class Database:
    """An open database."""

    def __init__(self, machine: Machine, path: str) -> None:
        self.machine = machine
        out = machine.buffer(8)
        self.code = machine.sqlite3_open(path.encode(), out)
        self.handle = out.u64()

    def message(self) -> str:
        return self.machine.text(self.machine.sqlite3_errmsg(self.handle)).decode()

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement; an error raises."""
        m = self.machine
        statement = m.buffer(8)
        text = sql.encode()
        if m.sqlite3_prepare_v2(self.handle, text, len(text), statement, None):
            raise sqlite3.OperationalError(self.message())
        for number, value in enumerate(values, 1):
            self._bind(statement.u64(), number, value)
        rows = []
        while (code := m.sqlite3_step(statement.u64())) == m.SQLITE_ROW:
            rows.append(tuple(self._value(statement.u64(), n) for n in range(m.sqlite3_column_count(statement.u64()))))
        message = self.message()
        m.sqlite3_finalize(statement.u64())
        if code != m.SQLITE_DONE:
            raise sqlite3.DatabaseError(message)
        return rows

    def _bind(self, statement: int, number: int, value: Any) -> None:
        m = self.machine
        if value is None:
            m.sqlite3_bind_null(statement, number)
        elif isinstance(value, int):
            m.sqlite3_bind_int64(statement, number, value)
        elif isinstance(value, float):
            m.sqlite3_bind_double(statement, number, value)
        else:
            data = m.buffer(value.encode() if isinstance(value, str) else value)
            bind = m.sqlite3_bind_text if isinstance(value, str) else m.sqlite3_bind_blob
            assert bind(statement, number, data, data.size, 0) == 0

    def _value(self, statement: int, number: int) -> Any:
        m = self.machine
        kind = m.sqlite3_column_type(statement, number)
        if kind == m.SQLITE_INTEGER:
            return m.sqlite3_column_int64(statement, number)
        if kind == m.SQLITE_FLOAT:
            return m.sqlite3_column_double(statement, number)
        if kind == m.SQLITE_NULL:
            return None
        blob = kind == m.SQLITE_BLOB
        place = m.sqlite3_column_blob(statement, number) if blob else m.sqlite3_column_text(statement, number)
        data = m.read(place, m.sqlite3_column_bytes(statement, number)) if place else b""
        return data if blob else data.decode()

    def close(self) -> None:
        assert self.machine.sqlite3_close(self.handle) == 0


def test_rows_come_back(machine: Machine) -> None:
    rng = random.Random(1)
    rows = [
        (
            n,
            rng.choice([None, rng.gauss(0, 1e6), rng.randrange(-(2**62), 2**62)]),
            f"row {n} \u00e9",
            rng.randbytes(n % 50),
        )
        for n in range(300)
    ]
    ours, theirs = Database(machine, ":memory:"), sqlite3.connect(":memory:")
    for run in (ours.query, lambda sql, *v: theirs.execute(sql, v).fetchall()):
        run("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT, d BLOB)")
        run("BEGIN")
        for row in rows:
            run("INSERT INTO t VALUES(?, ?, ?, ?)", *row)
        run("COMMIT")
        run("CREATE INDEX i ON t(c)")
    for sql in (
        "SELECT * FROM t ORDER BY a DESC",
        "SELECT count(*), sum(a), avg(b), min(c), max(length(d)), total(b) FROM t",
        "SELECT a % 7, group_concat(a), count(DISTINCT b) FROM t GROUP BY 1 HAVING count(*) > 42",
        "SELECT x.a, y.a FROM t x JOIN t y ON y.a = x.a * 2 WHERE x.c LIKE '%9%' ORDER BY 2",
        "WITH RECURSIVE f(n, a, b) AS (SELECT 1, 0, 1 UNION ALL SELECT n + 1, b, a + b FROM f WHERE n < 60) "
        "SELECT * FROM f",
        "SELECT a, row_number() OVER (PARTITION BY a % 3 ORDER BY b), sum(a) OVER (ORDER BY a) FROM t",
        "SELECT hex(d), quote(c), typeof(b), upper(c), substr(c, 2, 3), instr(c, 'w') FROM t LIMIT 20",
    ):
        assert ours.query(sql) == theirs.execute(sql).fetchall(), sql
    ours.close()


def test_numbers_and_text(machine: Machine) -> None:
    """The printf of SQLite's own, its reading of numbers (long double inside), and the functions of mathematics."""
    ours, theirs = Database(machine, ":memory:"), sqlite3.connect(":memory:")
    rng = random.Random(2)
    for sql in (
        "SELECT printf('%d|%s|%8.3f|%lld|%g|%x|%e|%.15g|%,d', -7, 'ab', 3.14159, 1234567890123, 1e-7, 255, 1e99, 0.1, "
        "1e6)",
        "SELECT 1.0 / 3, 0.1 + 0.2, 123456789.125, 1e100, cast('2.5e-3' AS REAL), round(2.345, 2), 9007199254740993.0",
        "SELECT cast(9.2e18 AS INTEGER), 9223372036854775807 + 1, -9223372036854775808, 5 / 2, -5 % 3, 1 << 62, ~0",
        "SELECT date('2026-11-30', '+1 month'), strftime('%J %s %W', '2000-02-29 12:34:56'), julianday('1999-12-31')",
        "SELECT json_extract('{\"a\": [1, {\"b\": 2.5}]}', '$.a[1].b'), json_group_array(value) "
        "FROM json_each('[1, 2]')",
    ):
        assert ours.query(sql) == theirs.execute(sql).fetchall(), sql
    for _ in range(200):
        whole = rng.choice(["", "-"]) + str(rng.randrange(10 ** rng.randrange(1, 20)))
        text = f"{whole}.{rng.randrange(10**9)}e{rng.randrange(-300, 280)}"
        found = ours.query(f"SELECT {text}, cast('{text}' AS REAL)")[0]
        for value in found:
            assert value == pytest.approx(float(text), rel=1e-15)
    assert ours.query("SELECT sin(1.0), ln(2), pow(2, 0.5)")[0] == pytest.approx(
        (0.8414709848078965, 0.6931471805599453, 1.4142135623730951), rel=1e-15
    )
    ours.close()


def test_full_text_and_rtrees(machine: Machine) -> None:
    ours = Database(machine, ":memory:")
    ours.query("CREATE VIRTUAL TABLE f USING fts5(title, body, tokenize = 'porter')")
    for title, body in (("one", "the quick brown foxes"), ("two", "lazy dogs running"), ("three", "a dog and a fox")):
        ours.query("INSERT INTO f VALUES(?, ?)", title, body)
    assert ours.query("SELECT title FROM f WHERE f MATCH 'fox' ORDER BY rank") in (
        [("three",), ("one",)],
        [("one",), ("three",)],
    )
    assert ours.query("SELECT highlight(f, 1, '<', '>') FROM f WHERE f MATCH 'run'") == [("lazy dogs <running>",)]
    ours.query("CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1)")
    for n in range(100):
        ours.query("INSERT INTO r VALUES(?, ?, ?, ?, ?)", n, float(n), n + 1.5, float(-n), 1.0 - n)
    assert ours.query("SELECT id FROM r WHERE x0 <= 50 AND x1 >= 50 ORDER BY id") == [(49,), (50,)]
    ours.close()


def test_files_that_others_can_read(machine: Machine, tmp_path: Path) -> None:
    """Locks, a write-ahead log with shared memory, and what the SQLite in Python finds in the file."""
    path = tmp_path / "shop.db"
    ours = Database(machine, str(path))
    assert ours.query("PRAGMA journal_mode = wal") == [("wal",)]
    ours.query("CREATE TABLE t(a, b)")
    for n in range(50):
        ours.query("INSERT INTO t VALUES(?, ?)", n, "x" * n * 20)
    other = Database(machine, str(path))
    ours.query("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.DatabaseError, match="locked"):
        other.query("INSERT INTO t VALUES(1, 2)")
    assert other.query("SELECT count(*) FROM t") == [(50,)]
    ours.query("ROLLBACK")
    other.close()
    assert ours.query("PRAGMA integrity_check") == [("ok",)]
    ours.query("PRAGMA journal_mode = delete")
    ours.query("VACUUM")
    ours.close()
    theirs = sqlite3.connect(path)
    assert theirs.execute("SELECT count(*), sum(length(b)) FROM t").fetchone() == (50, 24_500)
    theirs.execute("INSERT INTO t VALUES(99, 'theirs')")
    theirs.commit()
    theirs.close()
    again = Database(machine, str(path))
    assert again.query("SELECT b FROM t WHERE a = 99") == [("theirs",)]
    again.close()


def test_errors(machine: Machine, tmp_path: Path) -> None:
    ours = Database(machine, ":memory:")
    with pytest.raises(sqlite3.OperationalError, match='near "SELEC": syntax error'):
        ours.query("SELEC 1")
    ours.query("CREATE TABLE t(a UNIQUE, b NOT NULL CHECK(b > 0))")
    ours.query("INSERT INTO t VALUES(1, 1)")
    with pytest.raises(sqlite3.DatabaseError, match=r"UNIQUE constraint failed: t\.a"):
        ours.query("INSERT INTO t VALUES(1, 2)")
    with pytest.raises(sqlite3.DatabaseError, match="CHECK constraint failed: b > 0"):
        ours.query("INSERT INTO t VALUES(2, -1)")
    ours.close()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    damaged = Database(machine, str(broken))
    with pytest.raises(sqlite3.Error, match=r"malformed|not a database"):
        damaged.query("SELECT * FROM sqlite_master")
    missing = Database(machine, str(tmp_path / "no" / "such.db"))
    assert missing.code == machine.SQLITE_CANTOPEN


def test_functions_of_ours_are_called(machine: Machine) -> None:
    """A scalar function, a collation and an authoriser, all Python functions."""
    ours = Database(machine, ":memory:")

    def twice(context: int, _count: int, values: int) -> None:
        value = machine.sqlite3_value_int64(int.from_bytes(machine.read(values, 8), "little"))
        machine.sqlite3_result_int64(context, 2 * value)

    assert machine.sqlite3_create_function(
        ours.handle, b"twice", 1, machine.SQLITE_UTF8, None, twice, None, None
    ) == 0  # fmt: skip

    def backwards(_data: int, size1: int, text1: int, size2: int, text2: int) -> int:
        one, two = machine.read(text1, size1), machine.read(text2, size2)
        return (one < two) - (one > two)

    assert machine.sqlite3_create_collation(ours.handle, b"backwards", machine.SQLITE_UTF8, None, backwards) == 0
    ours.query("CREATE TABLE t(a)")
    for value in ("b", "a", "c"):
        ours.query("INSERT INTO t VALUES(?)", value)
    assert ours.query("SELECT a, twice(21) FROM t ORDER BY a COLLATE backwards") == [("c", 42), ("b", 42), ("a", 42)]
    machine.sqlite3_set_authorizer(
        ours.handle, lambda _d, action, *_: machine.SQLITE_DENY if action == machine.SQLITE_DROP_TABLE else 0, None
    )
    with pytest.raises(sqlite3.OperationalError, match="not authorized"):
        ours.query("DROP TABLE t")
    ours.close()
