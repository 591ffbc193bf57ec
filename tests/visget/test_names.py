import pytest

from visget.errors import UsageError
from visget.names import Requirement, exact_version, parse_name, parse_version


@pytest.mark.parametrize("name", ["zlib", "a", "x-y-z", "lz4", "a" * 64])
def test_good_names(name):
    assert parse_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "Zlib", "z_lib", "z--lib", "-x", "x-", "9p", "zlıb", "ｚlib", "zlib\n", "..", "a/b", "a\\b", "a\0b", "%2e",
     "con", "nul", "lpt1", "c", "m", "gcc", "a" * 65, "a.b", " a"],
)  # fmt: skip
def test_bad_names(name):
    with pytest.raises(UsageError):
        parse_name(name)


def test_versions_are_normal():
    assert str(parse_version("1.0.RC1")) == "1.0rc1"
    with pytest.raises(UsageError, match="not a version"):
        parse_version("one")


@pytest.mark.parametrize(
    ("text", "name", "inside", "outside"),
    [
        ("zlib", "zlib", "1.0", None),
        ("zlib==1.2.13", "zlib", "1.2.13", "1.2.14"),
        (" zlib >=1.2, <2 ", "zlib", "1.9", "2.0"),
        ("zlib~=1.4", "zlib", "1.5", "2.0"),
    ],
)
def test_requirements(text, name, inside, outside):
    wanted = Requirement.parse(text)
    assert wanted.name == name
    assert inside in wanted.specifier
    assert outside is None or outside not in wanted.specifier


@pytest.mark.parametrize("text", ["", "zlib=1", "zlib==", "zlib==x!!", "zlib 1.0", "Zlib", "zlib==1;os_name=='x'"])
def test_bad_requirements(text):
    with pytest.raises(UsageError):
        Requirement.parse(text)


def test_row_36_numbers_of_6000_digits():
    digits = "9" * 6000
    for text in (f"zlib=={digits}", f"zlib>=1.{digits}", f"zlib<{digits}", "zlib" + ",".join(["!=1"] * 400)):
        with pytest.raises(UsageError, match="longer than 1024"):
            Requirement.parse(text)
    for text in (digits, f"1.{digits}", f"1.0rc{digits}", f"1!{digits}", "1." * 80 + "1"):
        with pytest.raises(UsageError, match="longer than 128"):
            parse_version(text)
    assert Requirement.parse("zlib==" + "9" * 1000)


@pytest.mark.parametrize(("text", "version"), [("zlib==1.2", "1.2"), (" zlib == 1.0.RC1 ", "1.0rc1")])
def test_exact_versions(text, version):
    name, found = exact_version(text)
    assert (name, str(found)) == ("zlib", version)


@pytest.mark.parametrize("text", ["zlib", "zlib==", "==1", "zlib>=1", "zlib===1", "zlib==1,<2", "zlib==1.*", "Zlib==1"])
def test_not_exact_versions(text):
    with pytest.raises(UsageError):
        exact_version(text)
