#!/bin/sh
# Renews the lock files from the dependency groups of pyproject.toml.  Needs uv on the PATH.
# Every file of a release is listed, so the lock serves Python 3.11 to 3.15 on every platform.
set -eu
cd "$(dirname "$0")/.."

# The versions already locked are preferred; `make lock UPGRADE=1` takes the newest.
compile() {
    target=$1
    shift
    [ -z "${UPGRADE:-}" ] && [ -f "$target" ] && tail -n +2 "$target" >"$target.new"
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        -o "$target.new" "$@" >/dev/null
    {
        echo '# Versions and hashes of every file of each release, no address. Made by "make lock"; do not edit.'
        cat "$target.new"
    } >"$target"
    rm "$target.new"
}

compile requirements/dev.lock pyproject.toml --group dev
compile requirements/oracle-0.19.2.lock --group pyproject.toml:oracle-0-19-2
compile requirements/oracle-1.0.4.lock --group pyproject.toml:oracle-1-0-4
for release in 0.7.5 0.8.14 0.10.18 0.15.0 2.0.1 4.0.2 8.0.1; do
    group=oracle-$(echo "$release" | tr . -)
    compile "requirements/oracle-$release.lock" --group "pyproject.toml:$group"
done
# Pennon stands in for pylance there.
compile requirements/engines.lock pyproject.toml --group engines --no-emit-package pylance
compile requirements/embeddings.lock pyproject.toml --group embeddings
# Torch loads without the compiler of its kernels, and without the drivers of what this machine lacks.
compile requirements/train.lock pyproject.toml --group train \
    --no-emit-package triton --no-emit-package cuda-bindings --no-emit-package cuda-pathfinder
for release in 4.0 3.5; do
    group=spark-$(echo "$release" | tr . -)
    compile "requirements/spark-$release.lock" pyproject.toml --group "$group"
done
compile requirements/docs.lock --group pyproject.toml:docs
# The oldest releases that pyproject.toml allows, in the oldest Python: `make lower-bounds`.
compile requirements/lowest.lock pyproject.toml --group lowest --resolution lowest-direct
compile requirements/protos.lock --group pyproject.toml:protos
