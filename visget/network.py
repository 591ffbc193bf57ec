"""How this machine reaches the network: proxies, certificate authorities, credentials in URLs.

Invariant: nothing here reads the environment (visget/config.py does), and no message shows a credential.
visget/download.py does the fetching.
"""

from __future__ import annotations

import ssl
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visget.errors import UsageError

if TYPE_CHECKING:
    import urllib3


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """How this machine reaches the network; visget/config.py fills it from settings and the environment."""

    offline: bool = False
    """Refuse every connection."""
    ca_bundle: str | None = None
    """A file or directory of certificate authorities; None means OpenSSL's own (which honours SSL_CERT_FILE)."""
    proxy: str | None = None
    """The proxy to go through, as a URL or HOST:PORT."""
    no_proxy: str = ""
    """Hosts reached directly: a comma-separated list as in NO_PROXY, or ``*``."""
    debian_mirror: str | None = None
    """Where Debian source packages come from; None means apt's own configuration."""
    python_index: str | None = None
    """The package index for Python source distributions (PEP 503 or 691); None means pip's own configuration."""


def shown_url(url: str) -> str:
    """Return `url` without credentials, query and fragment: fit for messages and logs."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def split_credentials(url: str) -> tuple[str, str | None]:
    """Return `url` without its user and password, and them as an Authorization header."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    import urllib3

    authorization = urllib3.make_headers(basic_auth=urllib.parse.unquote(user))["authorization"]
    return parts._replace(netloc=host).geturl(), authorization


def proxy_for(url: str, options: NetworkOptions) -> str | None:
    """Return the URL of the proxy that `url` is to be fetched through, or None for a direct connection."""
    parts = urllib.parse.urlsplit(url)
    proxy = options.proxy
    if not proxy or _direct((parts.hostname or "").lower(), parts.port, options.no_proxy):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _direct(host: str, port: int | None, no_proxy: str) -> bool:
    for entry in no_proxy.lower().split(","):
        name = entry.strip()
        if name == "*":
            return True
        name, _, wanted = name.partition(":")
        if wanted and wanted != str(port):
            continue
        name = name.lstrip(".")
        if name and (host == name or host.endswith("." + name)):
            return True
    return False


def make_pool(proxy: str | None, ca_bundle: str | None, live: list[Any]) -> urllib3.PoolManager:
    """Return connections through `proxy`; `live` always holds the one that was used last, and its socket.

    Raises:
        UsageError: `ca_bundle` cannot be read.
    """
    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection

    # The watchdog needs the socket of a request under way, which urllib3 shows to nobody but the connection.
    class Plain(HTTPConnection):
        def connect(self) -> None:
            live[:] = [self]
            super().connect()
            # http.client forgets the socket of an answer that ends with its connection.
            live.append(self.sock)

        def request(self, *args: Any, **kwargs: Any) -> None:
            live[:] = [self, self.sock]
            super().request(*args, **kwargs)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            live[:] = [self]
            super().connect()
            # http.client forgets the socket of an answer that ends with its connection.
            live.append(self.sock)

        def request(self, *args: Any, **kwargs: Any) -> None:
            live[:] = [self, self.sock]
            super().request(*args, **kwargs)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    context = _tls_context(ca_bundle)
    manager: urllib3.PoolManager
    if proxy is None:
        manager = urllib3.PoolManager(ssl_context=context)
    else:
        bare, authorization = split_credentials(proxy)
        headers = {"proxy-authorization": authorization} if authorization else None
        manager = urllib3.ProxyManager(bare, ssl_context=context, proxy_headers=headers)
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return manager


def _tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    if ca_bundle is None:
        return ssl.create_default_context()
    try:
        if Path(ca_bundle).is_dir():
            return ssl.create_default_context(capath=ca_bundle)
        return ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(
            f"cannot read the certificate authorities: {error.strerror or error}",
            where=ca_bundle,
            hint="set the CA bundle to a file in PEM format",
        ) from error
