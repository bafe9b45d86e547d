"""Arrow schemas of pydantic models, with the names of ``lance.pydantic``; needs the package ``pydantic``.

`pennon.write_dataset` takes lists of models as well.
"""

from __future__ import annotations

from pennon.schema.pydantic_models import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    pydantic_to_schema,
)

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "pydantic_to_schema"]
