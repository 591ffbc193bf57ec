"""Which of the published versions a requirement means.

Invariant: a pre-release or a yanked version is chosen only when it is asked for by its number. A pure module.
"""

from __future__ import annotations

from visget.errors import NotFoundError
from visget.names import Requirement
from visget.registry.protocol import Release, Releases


def choose(releases: Releases, requirement: Requirement) -> Release:
    """Return the newest release that satisfies `requirement`.

    Pre-releases count only when a clause names one (PEP 440), yanked releases only for an exact ``==`` (PEP 592).

    Raises:
        NotFoundError: none does; the message lists what there is.
    """
    specifier = requirement.specifier
    fitting = [release for release in releases.versions if specifier.contains(release.version, prereleases=True)]
    allowed = [
        release for release in fitting if specifier.prereleases or not release.version.is_prerelease
    ]
    exact = any(clause.operator in ("==", "===") and not clause.version.endswith(".*") for clause in specifier)
    good = [release for release in allowed if release.yanked is None or exact]
    if good:
        return max(good, key=lambda release: release.version)
    raise NotFoundError(_why_none(releases, requirement, fitting, allowed), hint=_hint(releases, fitting, allowed))


def _why_none(
    releases: Releases, requirement: Requirement, fitting: list[Release], allowed: list[Release]
) -> str:
    name = releases.name
    if not releases.versions:
        return f"{name} has no published version"
    wanted = str(requirement) if requirement.specifier else name
    if allowed:
        reason = allowed[-1].yanked or "no reason given"
        return f"every version that satisfies {wanted} was withdrawn by its owner ({allowed[-1].version}: {reason})"
    if fitting:
        return f"only pre-releases satisfy {wanted}"
    return f"no published version satisfies {wanted}"


def _hint(releases: Releases, fitting: list[Release], allowed: list[Release]) -> str | None:
    if not releases.versions:
        return None
    if near := allowed or fitting:
        return f"to have it all the same, name it exactly: {releases.name}=={near[-1].version}"
    newest = [str(release.version) for release in reversed(releases.versions)]
    more = f" and {len(newest) - 10} older ones" if len(newest) > 10 else ""
    return f"there is {', '.join(newest[:10])}{more}"
