"""S3 and what speaks its language."""

from __future__ import annotations

import os
from typing import Any

from shapeguard.cache.object_store import CLIENT, RETRIES, ObjectRemote, obstore


class S3Remote(ObjectRemote):
    """A bucket: `s3://bucket/folder`; credentials, region and endpoint from the usual `AWS_` variables."""

    scheme = "s3"

    def store(self, bucket: str, prefix: str | None) -> object:
        """Give the store; an endpoint on plain HTTP is taken where it is named as one."""
        obstore()
        from obstore.store import S3Store

        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        config: Any = {"endpoint": endpoint} if endpoint else {}
        if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
            config["region"] = "us-east-1"
        options: Any = {**CLIENT, "allow_http": endpoint.startswith("http://")}
        retries: Any = RETRIES
        return S3Store(bucket, prefix=prefix, config=config, client_options=options, retry_config=retries)
