#!/bin/sh
# Compiles the kernels with the address and the undefined-behaviour sanitizer of gcc, in build/sanitized
# and not beside the sources, and runs them over their unit tests and over mutants of data files:
#
#   scripts/sanitize.sh                      all of it, 160 mutants of each file (some minutes)
#   scripts/sanitize.sh -k levels            arguments of pytest choose
#   PENNON_MUTANTS_SEED=7 scripts/sanitize.sh
#
# A finding ends the process with a report; the last line of its output names the mutant.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-$(pwd -P)/.venv/bin/python}
compiler=${CC:-gcc}
tree=build/sanitized

mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard src ':(glob)tests/*.py' \
    tests/unit tests/faults tests/limits setup.py pyproject.toml README.md LICENSE |
    xargs -0 sh -c 'for f in "$@"; do [ ! -f "$f" ] || printf "%s\0" "$f"; done' sh |
    tar --null -T - -cf - | tar -xf - -C "$tree"
cd "$tree"
PENNON_SANITIZE=1 "$python" setup.py -q build_ext --inplace

# Python itself is not instrumented, so the runtimes come first; leaks of Python are not ours.
LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libubsan.so)"
ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=32
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=${HALT:-1}
export LD_PRELOAD ASAN_OPTIONS UBSAN_OPTIONS
# Allocators that hand out parts of their own blocks would hide what lies beyond one.
export PYTHONMALLOC=malloc ARROW_DEFAULT_MEMORY_POOL=system PYTHONPATH="$(pwd -P)/src"
if [ $# -eq 0 ]; then set -- tests/unit/encoding tests/unit/file tests/unit/index tests/faults/test_mutants_2_1.py; fi
exec "$python" -m pytest -q -p tests.faults.exact_memory -p no:cacheprovider -p no:faulthandler \
    --capture=sys --timeout 3600 "$@"
