"""Data frames whose values are plain data: what JSON does not have becomes text or a number."""

from typing import TYPE_CHECKING, NamedTuple

from noetl.kernel.errors import RequestInvalid

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

INT64_DIGITS_MAX = 18
MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
NO_FRACTION = r"\.000000"


class PlainFrame(NamedTuple):
    frame: "DataFrame"
    json_columns: list[str]  # whose text is JSON


def plain_frame(frame: "DataFrame") -> PlainFrame:
    """Raises RequestInvalid for columns that cannot be recorded."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - an extra, under its usual name
    from pyspark.sql import types as T  # noqa: PLC0415 - as above

    names = [field.name for field in frame.schema.fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RequestInvalid(f"the result has two columns {twice[0]!r}; rename one with AS")
    columns: list[Column] = []
    json_columns: list[str] = []
    for field in frame.schema.fields:
        column = frame[f"`{field.name.replace('`', '``')}`"]
        kind = field.dataType
        if isinstance(kind, T.BinaryType):
            raise RequestInvalid(f"the column {field.name!r} is bytes; use base64({field.name})")
        if isinstance(kind, T.TimestampType):
            column = F.regexp_replace(F.date_format(column, f"{MOMENT}XXX"), NO_FRACTION, "")
        elif isinstance(kind, T.TimestampNTZType):
            column = F.regexp_replace(F.date_format(column, MOMENT), NO_FRACTION, "")
        elif is_nested(kind) and not is_plain(kind):
            column = F.to_json(column)
            json_columns.append(field.name)
        else:
            wanted = _plain_type(kind)
            column = column if wanted is None else column.cast(wanted)
        columns.append(column.alias(field.name))
    return PlainFrame(frame.select(columns), json_columns)


def is_nested(kind: "DataType") -> bool:
    from pyspark.sql import types as T  # noqa: PLC0415 - an extra

    return isinstance(kind, T.ArrayType | T.StructType | T.MapType | T.VariantType)


def is_plain(kind: "DataType") -> bool:
    """Whether Arrow's type for it is one that reads back as it was."""
    from pyspark.sql import types as T  # noqa: PLC0415 - an extra

    if isinstance(kind, T.ArrayType):
        return is_plain(kind.elementType)
    if isinstance(kind, T.StructType):
        return bool(kind.fields) and all(is_plain(field.dataType) for field in kind.fields)
    plain = (T.StringType, T.BooleanType, T.IntegralType, T.FloatType, T.DoubleType)
    return isinstance(kind, plain)


def _plain_type(kind: "DataType") -> str | None:
    """What to cast to; None: it stays."""
    from pyspark.sql import types as T  # noqa: PLC0415 - an extra

    if is_plain(kind):
        return None
    if isinstance(kind, T.DecimalType):
        return "bigint" if kind.scale == 0 and kind.precision <= INT64_DIGITS_MAX else "double"
    return "string"
