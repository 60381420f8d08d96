"""S3 and what speaks its language."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from shapeguard.cache.object_store import CLIENT, RETRIES, ObjectRemote, obstore
from shapeguard.core.errors import RemoteError


class S3Remote(ObjectRemote):
    """A bucket: `s3://bucket/folder`; credentials, region and endpoint from the usual `AWS_` variables."""

    scheme = "s3"
    credentials = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    def store(self, bucket: str, prefix: str | None) -> object:
        """Give the store; an endpoint on plain HTTP is taken where it is named as one."""
        obstore()
        from obstore.store import S3Store

        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        if endpoint and not _is_address(endpoint):
            raise RemoteError(
                f"AWS_ENDPOINT_URL={endpoint!r} is no address", hint="write http://host:port or https://host"
            )
        config: Any = {"endpoint": endpoint} if endpoint else {}
        if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
            config["region"] = "us-east-1"
        options: Any = {**CLIENT, "allow_http": endpoint.startswith("http://")}
        retries: Any = RETRIES
        return S3Store(bucket, prefix=prefix, config=config, client_options=options, retry_config=retries)


def _is_address(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
