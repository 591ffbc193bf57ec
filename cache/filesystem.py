"""Whether a directory lies on a file system that several machines share.

The store's locks are flocks. Some network file systems keep them to one machine without saying so; then two machines
would each believe themselves alone, and garbage collection on one could remove what the other is installing.
Invariant: what is not known to be a network file system is taken for a local one. docs/spec/store.md, section
"Network file systems".
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from visget.errors import CacheError
from visget.files import translated

# The numbers that statfs() gives, from the kernel's <linux/magic.h> and the file systems' own sources.
_NETWORK = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
    0x013661B9: "OCFS2",
    0x01161970: "GFS2",
}
_FUSE = 0x65735546
# Only the name in the table of mounts tells whether a FUSE file system is a network's.
_FUSE_NETWORK = ("sshfs", "glusterfs", "s3fs", "gcsfuse", "rclone", "cvmfs", "moosefs", "juicefs", "davfs", "smbnetfs")


def network_kind(path: Path) -> str | None:
    """Return what kind of network file system `path` lies on, or None when it lies on none that is known."""
    if sys.platform != "linux":
        return None
    magic = _magic(path)
    if magic == _FUSE:
        return kind_of(magic, _mounts(), f"{os.major(path.stat().st_dev)}:{os.minor(path.stat().st_dev)}")
    return kind_of(magic, "", "")


def refuse_network(root: Path) -> None:
    """Refuse a store at `root` that lies on a network file system.

    Raises:
        CacheError: it does.
    """
    with translated("look at the file system of the store", root):
        kind = network_kind(root)
    if kind is not None:
        raise CacheError(
            f"the store lies on a network file system ({kind}), whose locks may not hold between machines",
            where=str(root),
            hint="choose a directory on a local disk with --home DIR or VISGET_HOME; or, if flock works between all "
            "machines that use it, set allow-network-fs = true",
        )


def kind_of(magic: int, mounts: str, device: str) -> str | None:
    """Return the kind that belongs to a number of statfs(); a pure function.

    Args:
        magic: the number.
        mounts: the text of /proc/self/mountinfo.
        device: major and minor number of the file system's device, as that text has them.
    """
    if magic != _FUSE:
        return _NETWORK.get(magic)
    for line in mounts.splitlines():
        fields, _, source = line.partition(" - ")
        if fields.split()[2:3] == [device]:
            kind = source.split(" ")[0].removeprefix("fuse.")
            return kind if kind.startswith(_FUSE_NETWORK) else None
    return None


def _magic(path: Path) -> int:
    import ctypes

    # The first word of struct statfs is its type on every architecture that visget knows; the rest is not needed.
    found = (ctypes.c_long * 64)()
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), found):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    return int(found[0]) & 0xFFFFFFFF


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
