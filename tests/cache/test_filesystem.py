import pytest
from storekit import KEY, build, files_below

from visget.cache import filesystem
from visget.cache.environment import Environment
from visget.cache.filesystem import kind_of, network_kind
from visget.cache.store import Store
from visget.config import read_load_settings, read_settings
from visget.errors import CacheError, UsageError
from visget.wiring import store_of

FUSE = 0x65735546
MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /home/me/remote rw,nosuid shared:20 - fuse.sshfs me@host: rw,user_id=1000
41 22 0:36 / /home/me/disk rw,nosuid shared:21 - fuse.ntfs-3g /dev/sdb1 rw
42 22 0:37 / /net/a\\040b rw - fuse.rclone remote: rw
"""


@pytest.mark.parametrize(
    ("magic", "device", "kind"),
    [
        (0x6969, "", "NFS"),
        (0xFE534D42, "", "SMB"),
        (0xFF534D42, "", "CIFS"),
        (0x00C36400, "", "Ceph"),
        (0x0BD00BD0, "", "Lustre"),
        (0xEF53, "", None),  # ext4
        (0x9123683E, "", None),  # Btrfs
        (0x01021994, "", None),  # tmpfs
        (0x794C7630, "", None),  # overlayfs
        (0x01021997, "", None),  # 9p: what virtual machines and sandboxes give their guests
        (FUSE, "0:35", "sshfs"),
        (FUSE, "0:36", None),
        (FUSE, "0:37", "rclone"),
        (FUSE, "0:99", None),
    ],
)
def test_kinds(magic, device, kind):
    assert kind_of(magic, MOUNTS, device) == kind


def test_where_the_tests_run_is_a_local_disk(tmp_path):
    assert network_kind(tmp_path) is None


def test_a_store_on_a_network_file_system_is_refused(tmp_path, monkeypatch):
    store = Store.open(tmp_path / "home")
    package, entry = store.put_package(b"package"), store.build_native(KEY, build)
    before = files_below(store.root)
    monkeypatch.setattr(filesystem, "_magic", lambda path: 0x6969)
    store = Store.open(store.root)
    writers = [lambda: store.put_package(b"other"), lambda: store.build_native(KEY, build), store.gc, store.check,
               lambda: Environment(store).record("x", "1", package=package)]  # fmt: skip
    for writer in writers:
        with pytest.raises(CacheError, match=r"network file system \(NFS\)") as caught:
            writer()
        assert caught.value.where == str(store.root)
        assert "allow-network-fs = true" in caught.value.hint
        assert "VISGET_HOME" in caught.value.hint
    assert files_below(store.root) == before
    # Readers take no locks, so what is there can be used.
    assert store.package(package) == b"package"
    assert store.native(KEY) == entry
    assert Store.open(store.root, network=True).put_package(b"other")


@pytest.mark.parametrize("read", [read_settings, read_load_settings])
def test_the_setting_allows_it_to_commands_and_to_loads(tmp_path, monkeypatch, read):
    environ = {"VISGET_HOME": str(tmp_path / "home"), "VISGET_CONFIG_DIR": str(tmp_path)}
    monkeypatch.setattr(filesystem, "_magic", lambda path: 0x6969)
    with pytest.raises(CacheError, match="NFS"):
        store_of(read(environ)).put_package(b"package")
    assert store_of(read({**environ, "VISGET_ALLOW_NETWORK_FS": "1"})).put_package(b"package")
    (tmp_path / "config.toml").write_text("allow-network-fs = true\n")
    assert store_of(read(environ)).put_package(b"another")
    (tmp_path / "config.toml").write_text("allow-network-fs = 'perhaps'\n")
    with pytest.raises(UsageError, match="allow-network-fs must be true or false"):
        read(environ)
