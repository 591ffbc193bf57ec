"""Documentation keeps its promises: links lead somewhere, cited sections exist, and nothing of one machine is in it."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_TEXT = frozenset((".py", ".md", ".toml", ".h", ".c", ".cc", ".cpp", ".txt", ".json", ".yml", ".cfg", ".sh", ""))


def files() -> list[Path]:
    """Return the files of the repository, or what lies in the source tree where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.parts)]
    return sorted(path for path in found if path.is_file() and path.suffix in _TEXT)


FILES = files()
PAGES = [path for path in FILES if path.suffix == ".md"]
CODE = [path for path in FILES if path.suffix in (".py", ".h") and path.name != Path(__file__).name]


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def headings(page: Path) -> tuple[str, ...]:
    """Return the headings of a page, outside code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return tuple(re.findall(r"^#+ +(.+?)\s*$", text, re.M))


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets on the usual forges."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def section_problem(page: Path, section: str) -> str | None:
    """Say what is wrong with a citation of `section` ("Text", or 7, or 5.2); None when the page has it."""
    for heading in headings(page):
        number, _, title = heading.partition(" ")
        numbered = re.fullmatch(r"\d+(?:\.\d+)*\.?", number) is not None
        if section in (heading, title if numbered else heading, number.rstrip(".") if numbered else None):
            return None
    return f"{_id(page)} has no section {section!r}"


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    broken = []
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        there = page if not path else (page.parent / path).resolve()
        outside = not there.exists() or not there.is_relative_to(ROOT)
        if outside or (fragment and fragment not in map(anchor, headings(there))):
            broken.append(target)
    assert not broken


# "docs/spec/x.md", then perhaps ", section 7", ", sections 1 and 2", ', sections "A", "B" and "C"'.
_CITED = re.compile(r"docs/([\w/-]+\.md)(?:,? sections? ((?:(?:,? and |, )?(?:\"[^\"]+\"|\d+(?:\.\d+)*\b))+))?")


@pytest.mark.parametrize("path", CODE, ids=_id)
def test_what_code_cites_exists(path: Path) -> None:
    # A comment or docstring may break a citation at the end of a line.
    text = re.sub(r"\s*\n\s*(?:# |\* )?\s*", " ", path.read_text(encoding="utf-8"))
    problems = []
    for name, sections in _CITED.findall(text):
        page = ROOT / "docs" / name
        if not page.is_file():
            problems.append(f"docs/{name} does not exist")
            continue
        for quoted, number in re.findall(r'"([^"]+)"|(\d+(?:\.\d+)*)', sections):
            problems.append(section_problem(page, quoted or number))
    assert [problem for problem in problems if problem] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "docs" in page.parts], ids=_id)
def test_what_pages_cite_exists(page: Path) -> None:
    text = re.sub(r"\s*\n\s*", " ", page.read_text(encoding="utf-8"))
    link = r"\[?([\w-]+\.md)\]?(?:\(([^)#]*)[^)]*\))?,? section (\"[^\"]+\"|\d+(?:\.\d+)*)"
    problems = []
    for name, target, section in re.findall(link, text):
        cited = page.parent / target if target else next(
            (there for there in (page.parent / name, ROOT / "docs" / "spec" / name) if there.is_file()), Path(name)
        )  # fmt: skip
        problems.append(section_problem(cited, section.strip('"')) if cited.is_file() else f"{cited} does not exist")
    assert [problem for problem in problems if problem] == []


# Made of pieces, so that this file does not find itself.
_PLACES = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("work", "root", "mnt")) + r")/[a-z]"
    r"|/home/(?!author|me|user|you|u\b)\w+/|/Users/\w+/|/tmp/\w/"
)


@pytest.mark.parametrize("path", FILES, ids=_id)
def test_no_path_of_a_developers_machine(path: Path) -> None:
    found = [match[0] for match in _PLACES.finditer(path.read_text(encoding="utf-8", errors="replace"))]
    assert not found


_MIRRORS = re.compile(
    r"https?://(?!(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|debian\.org|example\.(?:com|net|org))\b)[\w.-]*(?:pypi|debian|mirror|proxy|artifactory|nexus)"
    r"[\w.-]*\.(?!(?:test|example|invalid|localhost)\b)\w+",
    re.I,
)


@pytest.mark.parametrize("path", FILES, ids=_id)
def test_no_private_mirror_of_a_registry(path: Path) -> None:
    found = [match[0] for match in _MIRRORS.finditer(path.read_text(encoding="utf-8", errors="replace"))]
    assert not found
