"""Three small tables to look at: one with vectors, one with a history, one in a nested namespace."""

from typing import Protocol, runtime_checkable

import lance
import pyarrow as pa

from irc_bridge.catalog.models import NewTable
from irc_bridge.catalog.ports import CanChangeNamespaces, CanCreateTables


@runtime_checkable
class Writable(CanChangeNamespaces, CanCreateTables, Protocol):
    pass


def write_samples(catalog: Writable) -> None:
    _write_products(catalog)
    _write_orders(catalog)
    catalog.create_namespace(("sales",), {"comment": "One namespace below the root"})
    catalog.create_namespace(("sales", "europe"), {"comment": "One namespace below sales"})
    _write_customers(catalog)


def _write_products(catalog: Writable) -> None:
    names = ["chair", "table", "lamp", "shelf"]
    vectors = [[float(row == axis) for axis in range(4)] for row in range(len(names))]
    rows = {
        "id": pa.array(range(len(names)), pa.int64()),
        "name": names,
        "embedding": pa.array(vectors, pa.list_(pa.float32(), 4)),
    }
    lance.write_dataset(pa.table(rows), _place(catalog, "products"))


def _write_orders(catalog: Writable) -> None:
    location = _place(catalog, "orders")
    orders = lance.write_dataset(_orders(0, 100), location)
    orders.tags.create("first-day", orders.version)
    lance.write_dataset(_orders(100, 150), location, mode="append")
    lance.dataset(location).delete("id % 10 = 0")


def _orders(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "amount": [each * 1.5 for each in ids]})


def _write_customers(catalog: Writable) -> None:
    rows = {"id": pa.array([1, 2, 3], pa.int32()), "city": ["Paris", "Oslo", None]}
    lance.write_dataset(pa.table(rows), _place(catalog, "sales", "europe", "customers"))


def _place(catalog: Writable, *table: str) -> str:
    return catalog.create_table(table, NewTable(properties={})).location
