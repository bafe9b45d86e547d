"""Images as Arrow columns: their addresses, their encoded bytes, or tensors of their pixels.

::

    ImageURIArray ──read_uris()──→ EncodedImageArray ──to_tensor()──→ FixedShapeImageTensorArray
    text                           PNG, JPEG, ...    ←─to_encoded()──  images of one shape
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from pennon.errors import ArgumentError, ColumnTypeError, StoreError, UnsupportedError

_TIMEOUT_S = 60
_SHOWN_BYTES = 30


class _ImageType(pa.ExtensionType):  # type: ignore[misc]
    """A type of images; subclasses pickle as pyarrow's own types do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).__arrow_ext_deserialize__, (
            self.storage_type,
            self.__arrow_ext_serialize__(),
        )


class ImageURIType(_ImageType):
    """The Arrow type of addresses of images: text, ``lance.arrow.image_uri``.

    ``storage_type``: string or large_string; ArgumentError else.
    """

    def __init__(self, storage_type: pa.DataType | None = None) -> None:
        stored = pa.string() if storage_type is None else storage_type
        if not (pa.types.is_string(stored) or pa.types.is_large_string(stored)):
            message = f"addresses of images are stored as string or large_string, not as {stored}"
            raise ArgumentError(message)
        super().__init__(stored, "lance.arrow.image_uri")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> ImageURIType:
        del serialized
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[ImageURIArray]:
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type[ImageURIScalar]:
        return ImageURIScalar


class EncodedImageType(_ImageType):
    """The Arrow type of encoded images: bytes, ``lance.arrow.encoded_image``.

    ``storage_type``: binary or large_binary; ArgumentError else.
    """

    def __init__(self, storage_type: pa.DataType | None = None) -> None:
        stored = pa.binary() if storage_type is None else storage_type
        if not (pa.types.is_binary(stored) or pa.types.is_large_binary(stored)):
            message = f"encoded images are stored as binary or large_binary, not as {stored}"
            raise ArgumentError(message)
        super().__init__(stored, "lance.arrow.encoded_image")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> EncodedImageType:
        del serialized
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[EncodedImageArray]:
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type[EncodedImageScalar]:
        return EncodedImageScalar


class FixedShapeImageTensorType(_ImageType):
    """The Arrow type of images of one shape, as lists of a fixed size: ``lance.arrow.fixed_shape_image_tensor``.

    ``arrow_type``: that of a pixel's channel.  ``shape``: of each image, such as (height, width, 3).

    >>> import pyarrow as pa
    >>> from pennon.arrow import FixedShapeImageTensorType
    >>> FixedShapeImageTensorType(pa.uint8(), (2, 2, 3)).storage_type.list_size
    12
    """

    def __init__(self, arrow_type: pa.DataType, shape: Sequence[int]) -> None:
        if not shape or any(length < 0 for length in shape):
            message = f"the shape of an image has lengths of 0 or more, got {tuple(shape)}"
            raise ArgumentError(message)
        self.shape = shape
        self.arrow_type = arrow_type
        stored = pa.list_(arrow_type, math.prod(shape))
        super().__init__(stored, "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"shape": list(self.shape)}).encode()

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> FixedShapeImageTensorType:
        return cls(storage_type.value_type, _parse_shape(serialized))

    def __arrow_ext_class__(self) -> type[FixedShapeImageTensorArray]:
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type[FixedShapeImageTensorScalar]:
        return FixedShapeImageTensorScalar


def _parse_shape(serialized: bytes) -> list[int]:
    """Return the shape that metadata of a column has; raises ArgumentError if there is none."""
    try:
        shape = json.loads(serialized)["shape"]
    except (ValueError, KeyError, TypeError) as error:
        message = f"metadata of an image tensor has no shape: {serialized[:80]!r}"
        raise ArgumentError(message) from error
    if not isinstance(shape, list) or not all(type(length) is int for length in shape):
        message = f"the shape of an image tensor is a list of integers, got {shape!r}"
        raise ArgumentError(message)
    return shape


class ImageArray(pa.ExtensionArray):  # type: ignore[misc]
    """An Arrow array of images; `from_array` makes one of a subclass."""

    def __repr__(self) -> str:
        return f"<lance.arrow.{type(self).__name__} object at 0x{id(self):016x}>\n{self._shown()}"

    def _shown(self) -> str:
        return repr(self.to_pylist())

    @classmethod
    def from_array(cls, images: Any) -> ImageArray:
        """Return an array of images: of addresses if ``images`` are texts, encoded if bytes, else tensors.

        Taken are Arrow arrays of strings, binaries or `pyarrow.FixedShapeTensorArray`, arrays of images,
        and lists of addresses.  Raises ColumnTypeError for others.

        >>> import pyarrow as pa
        >>> from pennon.arrow import ImageArray
        >>> type(ImageArray.from_array(pa.array([b"PNG"]))).__name__
        'EncodedImageArray'
        """
        made: ImageArray
        if isinstance(images, ImageArray):
            made = images
        elif isinstance(images, (pa.StringArray, pa.LargeStringArray)):
            made = pa.ExtensionArray.from_storage(ImageURIType(images.type), images)
        elif isinstance(images, (pa.BinaryArray, pa.LargeBinaryArray)):
            made = pa.ExtensionArray.from_storage(EncodedImageType(images.type), images)
        elif isinstance(images, pa.FixedShapeTensorArray):
            made = _tensors(images)
        elif isinstance(images, Iterable) and not isinstance(images, (pa.Array, str, bytes)):
            made = ImageURIArray.from_uris(images)
        else:
            kind = getattr(images, "type", type(images).__name__)
            message = f"images are texts, bytes or tensors of one shape, got {kind}"
            raise ColumnTypeError(message)
        return made


class ImageURIArray(ImageArray):
    """An Arrow array of addresses of images: paths, or URLs of files, buckets and web servers."""

    @classmethod
    def from_uris(cls, uris: Any) -> ImageURIArray:
        """Return an array of addresses: an Arrow array of strings, or texts and paths.

        Raises ColumnTypeError for others.

        >>> from pennon.arrow import ImageURIArray
        >>> ImageURIArray.from_uris(["file:///tmp/1.png"]).to_pylist()
        ['file:///tmp/1.png']
        """
        if isinstance(uris, (pa.StringArray, pa.LargeStringArray)):
            storage: pa.Array[Any] = uris
        elif isinstance(uris, Iterable) and not isinstance(uris, (str, bytes)):
            storage = pa.array((None if uri is None else str(uri) for uri in uris), pa.string())
        else:
            message = f"addresses of images are a list of texts, got {type(uris).__name__}"
            raise ColumnTypeError(message)
        made: ImageURIArray = pa.ExtensionArray.from_storage(ImageURIType(storage.type), storage)
        return made

    def read_uris(self, storage_type: pa.DataType | None = None) -> EncodedImageArray:
        """Read all images into memory; NULL stays NULL.

        ``storage_type``: binary, or large_binary for more than 2 GiB.  Raises StoreError, which names the
        address, if an image cannot be read: pylance prints a message and goes on with NULL.
        """
        kind = EncodedImageType(storage_type)
        images = [None if uri is None else _read(uri) for uri in self.storage.to_pylist()]
        storage = pa.array(images, kind.storage_type)
        made: EncodedImageArray = pa.ExtensionArray.from_storage(kind, storage)
        return made


class EncodedImageArray(ImageArray):
    """An Arrow array of encoded images, in any format that their bytes tell."""

    def _shown(self) -> str:
        first = next((image for image in self.to_pylist() if image is not None), b"")
        return f"[{len(self)} images]\n{first[:_SHOWN_BYTES]!r}"

    def to_tensor(
        self, decoder: Callable[[pa.Array[Any]], Any] | None = None
    ) -> FixedShapeImageTensorArray:
        """Decode the images, which must have one shape and no NULLs.

        ``decoder``: takes the array of bytes, and returns a numpy array of shape (images, ...) or a
        `pyarrow.FixedShapeTensorArray`; by default the package ``pillow`` decodes.  Raises ArgumentError
        if shapes differ or an image is NULL, UnsupportedError without pillow.
        """
        if decoder is None and self.null_count:
            message = "NULL has no pixels: leave NULLs out before to_tensor()"
            raise ArgumentError(message)
        decoded = (decoder or _decode)(self.storage)
        if not isinstance(decoded, pa.FixedShapeTensorArray):
            decoded = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(decoded))
        return _tensors(decoded)


class FixedShapeImageTensorArray(ImageArray):
    """An Arrow array of images as tensors of pixels, all of one shape."""

    def to_numpy(self, zero_copy_only: bool = True, writable: bool = False) -> npt.NDArray[Any]:
        """Return the images as one array of shape (images, ...); arguments are there for pyarrow's sake."""
        del zero_copy_only, writable
        kind = pa.fixed_shape_tensor(self.storage.type.value_type, list(self.type.shape))
        tensors: Any = pa.ExtensionArray.from_storage(kind, self.storage)
        found: npt.NDArray[Any] = tensors.to_numpy_ndarray()
        return found

    def to_encoded(
        self,
        encoder: Callable[[npt.NDArray[Any]], pa.Array[Any]] | None = None,
        storage_type: pa.DataType | None = None,
    ) -> EncodedImageArray:
        """Encode the images: as PNG by the package ``pillow``, or with ``encoder``.

        ``encoder`` takes the array of `to_numpy` and returns an Arrow array of bytes.  ``storage_type``:
        binary, or large_binary for more than 2 GiB.  Raises UnsupportedError without pillow.
        """
        kind = EncodedImageType(storage_type)
        images = self.to_numpy()
        storage = encoder(images) if encoder else pa.array(_encode(images), kind.storage_type)
        made: EncodedImageArray = pa.ExtensionArray.from_storage(kind, storage)
        return made


class ImageScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """A value of an array of images."""

    def as_py(self, **kwargs: Any) -> Any:
        """Return the stored value: a text, bytes, or a list of numbers."""
        return None if self.value is None else self.value.as_py(**kwargs)


class ImageURIScalar(ImageScalar):
    """The address of an image."""


class EncodedImageScalar(ImageScalar):
    """An encoded image."""


class FixedShapeImageTensorScalar(ImageScalar):
    """The pixels of an image."""


def _tensors(images: Any) -> FixedShapeImageTensorArray:
    kind = FixedShapeImageTensorType(images.type.value_type, images.type.shape)
    made: FixedShapeImageTensorArray = pa.ExtensionArray.from_storage(kind, images.storage)
    return made


def _read(uri: str) -> bytes:
    try:
        if urlsplit(uri).scheme in {"http", "https"}:
            with urlopen(uri, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - of these two schemes
                return bytes(answer.read())
        filesystem, path = fs.FileSystem.from_uri(uri)
        with filesystem.open_input_stream(path) as stream:
            data: bytes = stream.read()
            return data
    except (OSError, pa.ArrowException) as error:
        message = f"the image {uri!r} cannot be read: {error}"
        raise StoreError(message) from error


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        message = "images are decoded and encoded by the package pillow (pip install pillow), or by a function that you pass"
        raise UnsupportedError(message) from error


def _decode(images: pa.Array[Any]) -> npt.NDArray[Any]:
    """Return the pixels of encoded images, stacked."""
    pillow = _pillow()
    decoded = [np.asarray(pillow.open(BytesIO(image))) for image in images.to_pylist()]
    shapes = sorted({image.shape for image in decoded})
    if len(shapes) > 1:
        message = f"images of one shape become tensors; these have {shapes[:5]}: resize them first"
        raise ArgumentError(message)
    if not decoded:
        message = "an array without images has no shape of pixels"
        raise ArgumentError(message)
    return np.stack(decoded)


def _encode(images: npt.NDArray[Any]) -> list[bytes]:
    pillow = _pillow()
    encoded = []
    for image in images:
        buffer = BytesIO()
        pillow.fromarray(image).save(buffer, format="PNG")
        encoded.append(buffer.getvalue())
    return encoded


def _register() -> None:
    for kind in (
        ImageURIType(),
        EncodedImageType(),
        FixedShapeImageTensorType(pa.uint8(), (0,)),
    ):
        try:
            pa.register_extension_type(kind)
        except pa.ArrowKeyError:  # another library's class has the name; its arrays are the same
            continue


_register()
