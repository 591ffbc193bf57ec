"""Settings: read once from the command line, the environment and config.toml into one frozen value.

The order is: option of the command, then ``VISGET_*`` in the environment, then config.toml, then the default.
Invariant: this is the only module that reads the environment; every other module is handed what it needs.
The keys are described in docs/reference/configuration.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from visget.directories import cache_dir, config_dir, data_dir
from visget.errors import UsageError
from visget.files import atomic_write, translated

DEFAULT_REGISTRY = "default"
"""The name under which ``visget registry init`` writes the first registry into config.toml."""

_TRUE = frozenset(["1", "true", "yes", "on"])
_FALSE = frozenset(["", "0", "false", "no", "off"])
_KEYS = frozenset(
    ["registry", "registries", "target", "jobs", "offline", "linker", "compile-seconds", "compile-memory-mb",
     "cache-limit-mb", "ca-bundle", "proxy", "no-proxy", "python-index", "debian-mirror", "cc", "sandbox",
     "trust-policy", "allow-network-fs"]
)  # fmt: skip


class Settings(NamedTuple):
    """Everything that can be set from outside.

    A named tuple, for it is on the path of every load: importing dataclasses costs as much as all the rest of it.
    """

    home: Path
    """The store's directory."""
    cache: Path
    """Downloads of sources."""
    config: Path
    """The directory of config.toml and keys."""
    registry: str | None = None
    """Name or location of the registry to use; None when none is configured."""
    registries: Mapping[str, str] = MappingProxyType({})
    """Location (path or URL) of each named registry."""
    target: str | None = None
    """The target to compile for; None means this machine."""
    jobs: int = 1
    """How many compilers may run at once."""
    offline: bool = False
    """Never touch the network."""
    linker: str = "auto"
    """"auto", "none", or the path of a linker."""
    cc: str | None = None
    """Another clang than ziglang's."""
    compile_seconds: int = 600
    """Wall-clock limit of one compilation."""
    compile_memory_mb: int = 4096
    """Address space of the compile worker, in MiB."""
    sandbox: Literal["require", "auto", "off"] = "auto"
    """What must confine compilers, linkers and fresh libraries."""
    trust_policy: Literal["tofu", "pinned"] = "tofu"
    """Whose word is taken about the owner of a name that has no pin: the registry's, or nobody's."""
    allow_network_fs: bool = False
    """Whether the store may lie on a network file system."""
    cache_limit_mb: int = 10240
    """Size above which the store's unused artifacts are removed, in MiB."""
    library_path: str | None = None
    """LD_LIBRARY_PATH, for interpreters that cannot start without it; worker processes get nothing else."""
    ca_bundle: str | None = None
    """A file of certificate authorities for https."""
    proxy: str | None = None
    """The proxy for http and https."""
    no_proxy: str = ""
    """Hosts that are reached without the proxy."""
    python_index: str | None = None
    """Where Python source distributions come from; None means pip's own configuration."""
    debian_mirror: str | None = None
    """Where Debian source packages come from; None means apt's own configuration."""

    @property
    def keys(self) -> Path:
        """The directory of the author's signing keys."""
        return self.config / "keys"

    def location(self, registry: str | None = None) -> str:
        """Return the path or URL of `registry`, or of the configured one.

        Raises:
            UsageError: no registry is named or configured, or the name is unknown.
        """
        wanted = registry or self.registry
        if wanted is None:
            if len(self.registries) == 1:
                return next(iter(self.registries.values()))
            raise UsageError(
                "no registry is configured" if not self.registries else "several registries are configured",
                hint="use --registry DIR-or-URL or VISGET_REGISTRY, or make one: visget registry init DIR",
            )
        if wanted in self.registries:
            return self.registries[wanted]
        if "://" in wanted or "/" in wanted or wanted in (".", "..") or Path(wanted).is_dir():
            return wanted
        from visget.nearest import nearest

        close = nearest(wanted, self.registries)
        raise UsageError(
            f"there is no registry called {wanted!r}",
            hint=f"did you mean {close[0]!r}?" if close else "give a directory, a URL, or a name from config.toml",
        )


def read_load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings as far as loading a library needs them: the store, its file system, and the target.

    Where config.toml does not even contain the words of those keys it is not parsed: importing the TOML parser would
    cost more than everything else that a load does.

    Raises:
        UsageError: as read_settings().
    """
    return _read(os.environ if environ is None else environ, {}, only=("target", "allow-network-fs"))


def read_settings(environ: Mapping[str, str] | None = None, **options: object) -> Settings:
    """Return the settings of this process.

    Args:
        environ: the environment; None means that of the process.
        **options: values given on the command line; None means "not given".

    Raises:
        UsageError: config.toml or a variable holds something else than what its key takes.
    """
    return _read(os.environ if environ is None else environ, options)


def read_settings_or_default(
    environ: Mapping[str, str] | None = None, **options: object
) -> tuple[Settings, UsageError | None]:
    """Return the settings and None; when they are wrong, what is left without the wrong source, and the error.

    For `visget doctor`, which goes on where other commands stop.
    """
    env = os.environ if environ is None else environ
    try:
        return _read(env, options), None
    except UsageError as error:
        places = {name: env[name] for name in ("VISGET_HOME", "VISGET_CACHE_DIR", "VISGET_CONFIG_DIR") if name in env}
        for source, file in ((env, False), (places, True)):
            try:
                return _read(source, options, file=file), error
            except UsageError:
                continue
        return _read(places, options, file=False), error


def _read(
    env: Mapping[str, str], options: Mapping[str, object], only: tuple[str, ...] = (), *, file: bool = True
) -> Settings:
    config = Path(env["VISGET_CONFIG_DIR"]) if env.get("VISGET_CONFIG_DIR") else config_dir()
    values: dict[str, object] = {
        "home": Path(env["VISGET_HOME"]) if env.get("VISGET_HOME") else data_dir(),
        "cache": Path(env["VISGET_CACHE_DIR"]) if env.get("VISGET_CACHE_DIR") else cache_dir(),
        "config": config,
        "jobs": _cores(),
    }
    if file:
        values.update(_from_file(config / "config.toml", only))
    values.update(_from_environment(env))
    values.update({key: value for key, value in options.items() if value is not None})
    _arm_failpoint(env)
    values["home"] = Path(str(values["home"])).expanduser().absolute()
    return Settings(**values)  # type: ignore[arg-type]  # every value was checked by the reader of its source


def _arm_failpoint(env: Mapping[str, str]) -> None:
    """Arm the point at which a test wants this process to die or fail; nobody sets both variables by accident."""
    if env.get("VISGET_FAILPOINT") and env.get("VISGET_TESTING") == "1":
        from visget.failpoint import arm, parse

        arm(parse(env["VISGET_FAILPOINT"]))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _from_file(path: Path, only: tuple[str, ...] = ()) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the configuration: {error}", where=str(path)) from error
    if only and not any(word in text for word in only):
        return {}
    import tomllib

    from visget.nearest import nearest

    try:
        table = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError is one; an integer of thousands of digits gives a plain one
        raise UsageError(f"the configuration is not valid TOML: {error}", where=str(path)) from error
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in _KEYS:
            close = nearest(key, _KEYS)
            raise UsageError(
                f"unknown key {key!r}", where=str(path), hint=f"did you mean {close[0]!r}?" if close else None
            )
        values[key.replace("-", "_")] = _checked(key, value, str(path))
    return values


def _from_environment(env: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in sorted(_KEYS - {"registries"}):
        name = "VISGET_" + key.replace("-", "_").upper()
        if name in env and (env[name] or key == "offline"):
            values[key.replace("-", "_")] = _checked(key, env[name], name)
    if env.get("LD_LIBRARY_PATH"):
        values["library_path"] = env["LD_LIBRARY_PATH"]
    # The variables that other tools made customary; ours win over them.
    if "ca_bundle" not in values:
        bundle = next((env[n] for n in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT") if env.get(n)), None)
        if bundle:
            values["ca_bundle"] = bundle
    if "proxy" not in values:
        names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        proxy = next((env[n] for n in names if env.get(n)), None)
        if proxy:
            values["proxy"] = proxy
    if "no_proxy" not in values:
        values["no_proxy"] = env.get("no_proxy") or env.get("NO_PROXY") or ""
    return values


def _checked(key: str, value: object, where: str) -> object:
    """Return `value` as the type that `key` takes."""
    if key == "registries":
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return dict(value)
        raise UsageError("registries must be a table of name = location", where=where)
    if key in ("offline", "allow-network-fs"):
        text = str(value).lower()
        if text in _TRUE | _FALSE:
            return text in _TRUE
        raise UsageError(f"{key} must be true or false, not {value!r}", where=where)
    if key in ("jobs", "compile-seconds", "compile-memory-mb", "cache-limit-mb"):
        try:
            number = int(str(value))
        except ValueError:
            number = 0
        if number < 1:
            raise UsageError(f"{key} must be a whole number of 1 or more, not {value!r}", where=where)
        return number
    if key == "sandbox" and value not in ("require", "auto", "off"):
        raise UsageError(f"sandbox must be require, auto or off, not {value!r}", where=where)
    if key == "trust-policy" and value not in ("tofu", "pinned"):
        raise UsageError(f"trust-policy must be tofu or pinned, not {value!r}", where=where)
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a text, not {value!r}", where=where)
    return value


def check_location(location: str) -> None:
    """Refuse what config.toml cannot name.

    Raises:
        UsageError: it has control characters, or bytes that are no text.
    """
    import unicodedata  # here, because this module is on the path of every load

    if any(unicodedata.category(char) in ("Cc", "Cs") for char in location):
        raise UsageError(
            f"{location!r} cannot be the location of a registry: it has control characters or is not UTF-8",
            hint="choose a directory with another name",
        )


def remember_registry(settings: Settings, name: str, location: str) -> bool:
    """Write `location` as the registry `name` into config.toml unless a registry of that name exists.

    Returns:
        Whether the file was changed.
    """
    if name in settings.registries:
        return False
    check_location(location)
    path = settings.config / "config.toml"
    with translated("write the configuration", path):
        settings.config.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        quoted = location.replace("\\", "\\\\").replace('"', '\\"')
        line = f'{name} = "{quoted}"\n'
        if "[registries]\n" in text:
            text = text.replace("[registries]\n", "[registries]\n" + line, 1)
        else:
            text = text + ("\n" if text and not text.endswith("\n\n") else "") + "[registries]\n" + line
        atomic_write(path, text.encode())
    return True


def with_options(settings: Settings, **options: object) -> Settings:
    """Return `settings` with the options that are not None put in."""
    given = {key: value for key, value in options.items() if value is not None}
    return settings._replace(**given)  # type: ignore[arg-type]  # the callers pass typed options


def environment_variable(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the variable `name`, which the user named for this one purpose; None when there is none."""
    return (os.environ if environ is None else environ).get(name)


def color_wish(environ: Mapping[str, str] | None = None) -> bool | None:
    """Return what NO_COLOR (no-color.org), FORCE_COLOR and TERM say about colours; None when they say nothing."""
    env = os.environ if environ is None else environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return False if env.get("TERM") == "dumb" else None


def process_environment() -> dict[str, str]:
    """Return a copy of this process's environment, for a program that is to run in it with something added."""
    return dict(os.environ)
