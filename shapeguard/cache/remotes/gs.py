"""Google Cloud Storage; not tested against a real endpoint."""

from __future__ import annotations

from typing import Any

from shapeguard.cache.object_store import CLIENT, RETRIES, ObjectRemote, obstore


class GsRemote(ObjectRemote):
    """A bucket: `gs://bucket/folder`; credentials from the usual `GOOGLE_` variables."""

    scheme = "gs"
    credentials = "GOOGLE_APPLICATION_CREDENTIALS, the path of a key file"

    def store(self, bucket: str, prefix: str | None) -> object:
        """Give the store."""
        obstore()
        from obstore.store import GCSStore

        options: Any = CLIENT
        retries: Any = RETRIES
        return GCSStore(bucket, prefix=prefix, client_options=options, retry_config=retries)
