"""The settings of a full-text index in its manifest entry; some are not stored there.

Source: reference index-scalar, 13.1.
"""

from __future__ import annotations

import json

from google.protobuf.message import DecodeError

from pennon.errors import FormatError
from pennon.index.text.parameters import TextParameters
from pennon.proto import index_pb2

_ROWS = index_pb2.InvertedIndexDetails.ROW
_ITEMS = index_pb2.InvertedIndexDetails.LIST_ELEMENT


def inverted_details(parameters: TextParameters, *, by_item: bool, format_version: int) -> bytes:
    """Return the details of a full-text index; of some settings they say nothing."""
    message = index_pb2.InvertedIndexDetails(
        base_tokenizer=parameters.base_tokenizer,
        language=json.dumps(parameters.language),
        with_position=parameters.with_position,
        max_token_length=parameters.max_token_length,
        lower_case=parameters.lower_case,
        stem=parameters.stem,
        remove_stop_words=parameters.remove_stop_words,
        ascii_folding=parameters.ascii_folding,
        min_ngram_length=parameters.min_ngram_length,
        max_ngram_length=parameters.max_ngram_length,
        prefix_only=parameters.prefix_only,
        block_size=parameters.block_size,
        document_granularity=_ITEMS if by_item else _ROWS,
        format_version=format_version,
    )
    if parameters.base_tokenizer == "code":
        message.code_words.split_identifiers = parameters.split_identifiers
        message.code_words.split_on_numerics = parameters.split_on_numerics
        message.code_words.preserve_original = parameters.preserve_original
        message.code_words.index_operators = parameters.index_operators
    return message.SerializeToString()


def parse_inverted_details(details: bytes) -> tuple[TextParameters, bool, int] | None:
    """Return settings, whether documents are items of lists, and the version of the files.

    None for the blank details of old releases.  Raises FormatError.
    """
    try:
        message = index_pb2.InvertedIndexDetails.FromString(details)
        language = json.loads(message.language) if message.language else "English"
    except (DecodeError, ValueError):
        text = f"the details of a full-text index are damaged: {details[:80]!r}"
        raise FormatError(text) from None
    if not message.base_tokenizer:
        return None
    words = message.code_words
    parameters = TextParameters(
        base_tokenizer=message.base_tokenizer,
        language=str(language),
        with_position=message.with_position,
        max_token_length=message.max_token_length if message.HasField("max_token_length") else None,
        lower_case=message.lower_case,
        stem=message.stem,
        remove_stop_words=message.remove_stop_words,
        ascii_folding=message.ascii_folding,
        min_ngram_length=message.min_ngram_length,
        max_ngram_length=message.max_ngram_length,
        prefix_only=message.prefix_only,
        block_size=message.block_size or 128,
        split_identifiers=words.split_identifiers,
        split_on_numerics=words.split_on_numerics,
        preserve_original=words.preserve_original,
        index_operators=words.index_operators,
    )
    by_item = message.document_granularity == _ITEMS
    return parameters, by_item, message.format_version or 1
