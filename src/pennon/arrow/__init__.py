"""Extension types of Arrow: bfloat16 numbers and images, with the names of ``lance.arrow``.

Importing this module registers the types with pyarrow: columns of them are then read as such; else as their storage.

- `bfloat16`: numbers of 16 bits with the exponent of a float32; in pandas, too (`bfloat16_pandas`).
- `images`: addresses of images, encoded images (PNG, JPEG, ...), and tensors of pixels.
- `cast`: pyarrow's cast, with bfloat16.
"""

import importlib.util as _importlib_util
from typing import TYPE_CHECKING

from pennon.arrow.bfloat16 import BFloat16 as BFloat16
from pennon.arrow.bfloat16 import BFloat16Array as BFloat16Array
from pennon.arrow.bfloat16 import BFloat16Scalar as BFloat16Scalar
from pennon.arrow.bfloat16 import BFloat16Type as BFloat16Type
from pennon.arrow.bfloat16 import bfloat16_array as bfloat16_array
from pennon.arrow.casts import cast as cast
from pennon.arrow.images import EncodedImageArray as EncodedImageArray
from pennon.arrow.images import EncodedImageScalar as EncodedImageScalar
from pennon.arrow.images import EncodedImageType as EncodedImageType
from pennon.arrow.images import FixedShapeImageTensorArray as FixedShapeImageTensorArray
from pennon.arrow.images import FixedShapeImageTensorScalar as FixedShapeImageTensorScalar
from pennon.arrow.images import FixedShapeImageTensorType as FixedShapeImageTensorType
from pennon.arrow.images import ImageArray as ImageArray
from pennon.arrow.images import ImageScalar as ImageScalar
from pennon.arrow.images import ImageURIArray as ImageURIArray
from pennon.arrow.images import ImageURIScalar as ImageURIScalar
from pennon.arrow.images import ImageURIType as ImageURIType

if TYPE_CHECKING or _importlib_util.find_spec("pandas") is not None:
    from pennon.arrow.bfloat16_pandas import PandasBFloat16Array as PandasBFloat16Array
    from pennon.arrow.bfloat16_pandas import PandasBFloat16Type as PandasBFloat16Type
