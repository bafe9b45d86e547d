"""Fields, their ids and types, and the strings and messages that describe them."""

from pennon.schema.arrow import field_to_arrow as field_to_arrow
from pennon.schema.arrow import schema_from_arrow as schema_from_arrow
from pennon.schema.arrow import schema_to_arrow as schema_to_arrow
from pennon.schema.check import check_writable as check_writable
from pennon.schema.field import Field as Field
from pennon.schema.field import Schema as Schema
from pennon.schema.json_schema import json_to_schema as json_to_schema
from pennon.schema.json_schema import schema_to_json as schema_to_json
from pennon.schema.lance_schema import LanceField as LanceField
from pennon.schema.lance_schema import LanceSchema as LanceSchema
from pennon.schema.project import project as project
from pennon.schema.version import FileVersion as FileVersion
from pennon.schema.wire import parse_fields as parse_fields
from pennon.schema.wire import serialize_fields as serialize_fields
