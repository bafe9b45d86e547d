#!/bin/sh
# Renews the lock files from the dependency groups of pyproject.toml.  Needs uv on the PATH.
# Every file of a release is listed, so the lock serves Python 3.11 to 3.13 on every platform.
set -eu
cd "$(dirname "$0")/.."

compile() {
    target=$1
    shift
    {
        echo '# Versions and hashes of every file of each release, no address. Made by "make lock"; do not edit.'
        uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
            --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@"
    } >"$target.new"
    mv "$target.new" "$target"
}

compile requirements-dev.lock pyproject.toml --group dev
compile requirements-oracle-0.19.2.lock --group pyproject.toml:oracle
compile requirements-protos.lock --group pyproject.toml:protos
