#!/bin/sh
# Compiles protos/ to src/pennon/proto/*_pb2.py and the .pyi stubs (with the tools of .venv-protos).
set -eu
cd "$(dirname "$0")/.."
bin=$(pwd -P)/.venv-protos/bin
export PATH="$bin:$PATH"
"$bin/python" -m grpc_tools.protoc -I protos \
    --python_out=src --mypy_out=quiet:src protos/pennon/proto/*.proto
