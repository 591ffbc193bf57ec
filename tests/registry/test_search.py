from visget.registry.protocol import NameEntry
from visget.registry.search import find


def entry(name, summary="", functions=(), latest="1.0"):
    return NameEntry(name=name, latest=latest, summary=summary, functions=tuple(functions))


ENTRIES = [
    entry("lz4", "Extremely fast compression", ["LZ4_compress_default", "LZ4_decompress_safe"]),
    entry("xxhash", "Extremely fast hash", ["XXH32", "XXH64", "XXH64_reset", "XXH3_64bits", "XXH3_128bits"]),
    entry("xxhash-extras", "More of it", []),
    entry("hashtable", "A table", ["ht_new"]),
    entry("zlib", "Compression with checksums", ["compress", "crc32"], latest=None),
]


def names(*words):
    return [hit.name for hit in find(ENTRIES, words)]


def test_no_word_finds_all_in_order():
    assert names() == ["hashtable", "lz4", "xxhash", "xxhash-extras", "zlib"]


def test_better_matches_come_first():
    assert names("xxhash") == ["xxhash", "xxhash-extras"]
    assert names("hash") == ["hashtable", "xxhash", "xxhash-extras"]
    assert names("compress") == ["zlib", "lz4"]
    assert names("COMPRESSION") == ["lz4", "zlib"]


def test_every_word_must_match():
    assert names("fast", "hash") == ["xxhash"]
    assert names("fast", "nothing") == []
    assert names("  ", "crc32") == ["zlib"]


def test_functions_are_found_in_any_case_and_shown():
    (hit,) = find(ENTRIES, ["xxh"])[:1]
    assert hit.matched == "XXH32, XXH64, XXH64_reset and 2 more"
    (hit,) = find(ENTRIES, ["crc32"])
    assert hit.as_dict() == {
        "name": "zlib", "version": "", "summary": "Compression with checksums", "functions": ["crc32"],
    }  # fmt: skip
    assert find(ENTRIES, ["hashtable"])[0].matched == ""
