"""The OpenCL devices of this machine, as far as pyopencl and its drivers can tell.

Drivers are foreign code that may hang or kill their process. Invariant: they are only ever loaded in a child
process with a time limit, and whatever happens there, list_devices() answers. The child runs main() below, which
writes one JSON array as the last line of its standard output.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass

from visget.installer.child import python_command

_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClDevice:
    """One device of one OpenCL platform."""

    platform: str
    name: str
    vendor: str
    kind: str
    """``cpu``, ``gpu``, ``accelerator`` or ``other``."""
    version: str
    """The OpenCL version, in the driver's words."""
    driver: str
    """The driver's own version."""
    units: int
    """Compute units."""
    memory: int
    """Bytes of global memory."""
    spirv: bool
    """Whether the driver says that it takes SPIR-V."""

    def as_dict(self) -> dict[str, object]:
        """Return the device as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceList:
    """What was found, or why nothing was."""

    devices: tuple[OpenClDevice, ...]
    reason: str
    """Empty when there are devices; else one sentence."""


def list_devices(timeout: float = _TIMEOUT) -> DeviceList:
    """Return the OpenCL devices; never raises because of a driver."""
    if importlib.util.find_spec("pyopencl") is None:
        return DeviceList(devices=(), reason="pyopencl is not installed (pip install 'visget[opencl]')")
    # pyopencl needs packages that visget does not know by name: the child finds them where this process does.
    command = [*python_command("visget.installer.devices"), *filter(None, sys.path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return DeviceList(devices=(), reason=f"an OpenCL driver did not answer within {timeout:.0f} s")
    except OSError as error:
        return DeviceList(devices=(), reason=f"no process could be started: {error.strerror}")
    return parse_reply(done.returncode, done.stdout, done.stderr)


def parse_reply(status: int, output: bytes, complaints: bytes) -> DeviceList:
    """Turn what the child left into a list; a pure function."""
    if status != 0:
        lines = complaints.decode("utf-8", "replace").strip().splitlines()
        how = f"died of signal {-status}" if status < 0 else (lines[-1][:200] if lines else f"exited with {status}")
        return DeviceList(devices=(), reason=f"OpenCL could not be asked: {how}")
    try:
        # A driver may print: the answer is the last line.
        devices = tuple(OpenClDevice(**item) for item in json.loads(output.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return DeviceList(devices=(), reason="OpenCL could not be asked: the answer was not understood")
    return DeviceList(devices=devices, reason="" if devices else "there is no OpenCL driver")


def main(_parent: int) -> None:
    """Ask every platform for its devices and write them to standard output."""
    import pyopencl  # only in the child: importing it loads the drivers' loader

    kinds = (
        (pyopencl.device_type.CPU, "cpu"),
        (pyopencl.device_type.GPU, "gpu"),
        (pyopencl.device_type.ACCELERATOR, "accelerator"),
    )
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error as error:
        if "PLATFORM_NOT_FOUND" not in str(error):
            raise
        platforms = []
    found = []
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except pyopencl.Error:
            continue  # CL_DEVICE_NOT_FOUND: a driver without hardware
        for device in devices:
            try:
                il = str(device.il_version)
            except (pyopencl.Error, AttributeError):
                il = ""
            found.append(
                {
                    "platform": platform.name.strip(),
                    "name": device.name.strip(),
                    "vendor": device.vendor.strip(),
                    "kind": next((name for bit, name in kinds if device.type & bit), "other"),
                    "version": device.version.strip(),
                    "driver": device.driver_version.strip(),
                    "units": device.max_compute_units,
                    "memory": device.global_mem_size,
                    "spirv": "SPIR-V" in il or "cl_khr_il_program" in device.extensions,
                }
            )
    sys.stdout.write("\n" + json.dumps(found) + "\n")
    sys.stdout.flush()
    # Some drivers crash when their libraries are unloaded at exit; the answer is out, so leave without that.
    os._exit(0)

