#!/usr/bin/env bash
# Builds vigil and runs its tests (installing what is missing). The last line says how many passed and failed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
usage: ./tests/run.sh [--sanitize | --tsan] [--long] [TEST...]

  --sanitize   the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
  --tsan       the tests that use threads, under ThreadSanitizer
  --long       also the tests that take minutes
  TEST         only these, by the names that the run prints (loop/timers)
TEXT
}

kind=test
options=(--buildtype=debugoptimized)
targets=(all)
long=
names=()
for argument in "$@"; do
    case "$argument" in
    --sanitize)
        kind=sanitize
        # Less optimized: it takes half as long to build, and little longer to run.
        options+=(-Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false -Ddefault_library=static)
        ;;
    --tsan)
        kind=tsan
        options+=(-Db_sanitize=thread -Db_lundef=false -Ddefault_library=static -Dexamples=disabled -Dbenchmarks=disabled)
        targets=(tests/loop_tests)
        ;;
    --long) long=yes ;;
    --help | -h)
        usage
        exit 0
        ;;
    -*)
        usage >&2
        exit 2
        ;;
    *) names+=("$argument") ;;
    esac
done

selection=()
[ "$kind" = tsan ] && selection+=(--suite threads)
[ "$long" ] || selection+=(--no-suite long)

. .ci/packages.sh
# shellcheck disable=SC2086
ensure_packages $build_packages $test_packages
mkdir -p build
folder=build/$kind
configure "$folder" "${options[@]}"
echo "Building $folder"
ninja -C "$folder" --quiet "${targets[@]}"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
rm -f "$folder/meson-logs/testlog.json"
status=0
meson test -C "$folder" --no-rebuild --print-errorlogs "${selection[@]}" "${names[@]}" || status=$?

python3 tests/summary.py "$folder/meson-logs/testlog.json" || status=1
exit "$status"
