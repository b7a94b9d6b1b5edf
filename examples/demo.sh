#!/usr/bin/env bash
# Builds vigil (installing what is missing) and shows what it does: the loop and the queues.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
"") ;;
*)
    echo "usage: ./examples/demo.sh    builds vigil and runs its examples; needs Debian 12, and root or sudo to install packages"
    [ "$1" = --help ] || [ "$1" = -h ] && exit 0 || exit 2
    ;;
esac
. .ci/packages.sh

# shellcheck disable=SC2086
ensure_packages $build_packages
mkdir -p build
configure build/release -Dtests=disabled
echo "Building"
ninja -C build/release --quiet

show() {
    printf '\n== %s\n' "$1"
    shift
    "$@"
}
bin=build/release/examples
show "01_timers: a burst of events ends in one action" $bin/01_timers
show "02_ticks: a long computation that blocks nobody" $bin/02_ticks
show "04_stdin_echo: reading a file like any other stream" $bin/04_stdin_echo <examples/demo.txt
show "05_coroutines: retries with a growing pause" $bin/05_coroutines
show "06_foreign_loop: inside of a program's own poll() loop" $bin/06_foreign_loop
show "07_virtual_time: a hundred years in no time" $bin/07_virtual_time
show "10_debounce: events of one entity collapse into one action" $bin/10_debounce
show "11_order_timeout: unpaid after 30 minutes is cancelled" $bin/11_order_timeout
show "12_polite_round: the site that was not visited for longest" $bin/12_polite_round
show "13_delayed_to_destination: what is due waits while the outbox is full" $bin/13_delayed_to_destination
show "bench/loop_timers: a million timers, half cancelled, beside uv_timer_t" build/release/bench/loop_timers --rounds 1
printf '\nThe programs are in %s, their sources in examples/.\n' $bin
