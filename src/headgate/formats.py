"""The formats of records, for `flow.stream`, `flow.table` and `.to`.

A format without options has a name: `format="csv"`. A format of your own is an object with
`decode(record)` or `encode(row)`.

    from headgate.formats import Csv

    orders = flow.stream("orders", Order, format=Csv(delimiter=";"))
"""

from headgate.flow.formats.avro import Avro
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.custom import Decoder, Encoder
from headgate.flow.formats.plain import Json, Raw, Text
from headgate.flow.formats.registry import Registry

__all__ = ["Avro", "Csv", "Decoder", "Encoder", "Json", "Raw", "Registry", "Text"]
