"""Azure Blob Storage; not tested against a real endpoint."""

from __future__ import annotations

from typing import Any

from shapeguard.cache.object_store import CLIENT, RETRIES, ObjectRemote, obstore


class AzRemote(ObjectRemote):
    """A container: `az://container/folder`; account and credentials from the usual `AZURE_` variables."""

    scheme = "az"
    credentials = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"

    def store(self, bucket: str, prefix: str | None) -> object:
        """Give the store."""
        obstore()
        from obstore.store import AzureStore

        options: Any = CLIENT
        retries: Any = RETRIES
        return AzureStore(bucket, prefix=prefix, client_options=options, retry_config=retries)
