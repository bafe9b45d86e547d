"""Stores that count, wait or fail, for tests of anything that reads and writes tables.

Each wraps any other store, and they stack:

    store = CountingStore(LatencyStore(MemoryStore("t"), clock=VirtualClock()))
    ...
    assert store.counts.rounds <= 2

`MemoryStore` is here too, because a test wants it beside them.  Suites that an implementation of your own must pass:
`StoreContract` for stores, `ManifestStoreContract` for external manifest stores, `EncodingContract` for encodings of pages,
`IndexContract` for kinds of indices.
"""

from pennon.io.memory import MemoryStore as MemoryStore
from pennon.testing.counting import CountingStore as CountingStore
from pennon.testing.counting import Counts as Counts
from pennon.testing.encoding_contract import EncodedPage as EncodedPage
from pennon.testing.encoding_contract import EncodingContract as EncodingContract
from pennon.testing.faulty import Fault as Fault
from pennon.testing.faulty import FaultyStore as FaultyStore
from pennon.testing.index_contract import IndexContract as IndexContract
from pennon.testing.latency import Clock as Clock
from pennon.testing.latency import LatencyStore as LatencyStore
from pennon.testing.latency import RealClock as RealClock
from pennon.testing.latency import VirtualClock as VirtualClock
from pennon.testing.manifest_contract import ManifestStoreContract as ManifestStoreContract
from pennon.testing.manifests import MemoryManifests as MemoryManifests
from pennon.testing.manifests import WrappedManifests as WrappedManifests
from pennon.testing.store_contract import StoreContract as StoreContract
from pennon.testing.wrapped import WrappedStore as WrappedStore
