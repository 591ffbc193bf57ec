"""Small C libraries with interfaces written by hand, installed as the runtime expects them."""

import shutil
import subprocess

import pytest

from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    Field,
    Function,
    FunctionType,
    Parameter,
    Pointer,
    RecordRef,
    Void,
    c_text,
)
from visget.runtime.library import Library, open_library

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler (cc, gcc, clang) on this machine")

INT, UINT, LONG, SIZE = (BASE_TYPES[n] for n in ("int", "unsigned int", "long", "unsigned long"))
CHAR, UCHAR, SCHAR, SHORT, USHORT = (
    BASE_TYPES[n] for n in ("char", "unsigned char", "signed char", "short", "unsigned short")
)
FLOAT, DOUBLE, BOOL, VOID, LLONG = (BASE_TYPES[n] for n in ("float", "double", "_Bool", "void", "long long"))


def to(target, *, const=False):
    return Pointer(target, const)


def struct(name):
    return RecordRef(f"struct {name}")


def fn(name, result, *parameters, doc="", variadic=False):
    """A declaration from (name, type) pairs."""
    made = tuple(Parameter(name=n, c=c_text(t), type=t) for n, t in parameters)
    inside = ", ".join(c_text(t, n) for n, t in parameters) or "void"
    return Function(
        name=name,
        prototype=c_text(result, f"{name}({inside})") if not isinstance(result, Void) else f"void {name}({inside})",
        doc=doc,
        result_c=c_text(result),
        result=result,
        parameters=made,
        variadic=variadic,
    )


def callback(result, *parameters):
    return Pointer(FunctionType(result, parameters))


def field(name, offset, type_, bits=None):
    return Field(name=name, offset=offset, type=type_, bits=bits)


def compile_c(source, output, *flags):
    file = output.with_suffix(".c")
    file.write_text(source)
    subprocess.run([CC, "-O1", "-Wall", "-Werror", *flags, str(file), "-o", str(output), "-lm"], check=True)
    file.unlink()
    return output


def install(directory, source, api: Api, name="demo") -> Library:
    """Make an entry of the native store in `directory` and load it."""
    (directory / "lib").mkdir(parents=True, exist_ok=True)
    compile_c(source, directory / "lib" / f"lib{name}.so", "-shared", "-fPIC")
    (directory / "api.json").write_bytes(api.encode())
    return open_library(directory, name=name, version="1.2")
