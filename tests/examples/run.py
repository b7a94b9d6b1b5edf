"""Runs one example as a user would and compares what it prints: run.py NAME PROGRAM."""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile


def run(program, stdin=subprocess.DEVNULL):
    done = subprocess.run([program], stdin=stdin, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, done.stderr


def expect(actual, pattern):
    if not re.fullmatch(pattern, actual, re.DOTALL):
        sys.exit(f"expected {pattern!r}\nbut got  {actual!r}")


def timers(program):
    expect(run(program)[0], "ticks run before timers\n(event\n){5}saved once, after 5 events\n")


def ticks(program):
    expect(run(program)[0], "(timers run while the work goes on\n)?sum: 20000000\n")


def signals(program):
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        expect(process.stdout.readline(), r"press Ctrl-C \(or: kill -INT \d+\)\n")
        process.send_signal(signal.SIGINT)
        expect(process.stdout.readline(), "finishing, .*\n")
        process.send_signal(signal.SIGINT)
        expect(process.stdout.read(), "at once, then\n")
        expect(str(process.wait(timeout=60)), "0")


def stdin_echo(program):
    text = "one\ntwo\n" * 5000
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        for_file = run(program, file)
    expect(for_file[0], re.escape(text))
    expect(for_file[1], f"{len(text)} bytes\n")
    expect("".join(run(program)), "0 bytes\n")  # /dev/null
    piped = subprocess.run([program], input=text, capture_output=True, text=True, timeout=60, check=True)
    expect(piped.stdout, re.escape(text))


def coroutines(program):
    expect(
        run(program)[0],
        "no answer, again in 20 ms\nno answer, again in 40 ms\nanswer: hello\nspinner stopped\n",
    )


def foreign_loop(program):
    expect(
        run(program)[0],
        "a tick\na timer\na post from another thread\nthe program's own file descriptor\n",
    )


def virtual_time(program):
    expect(run(program)[0], "(ok: [^\n]*\n){3}")


def debounce(program):
    expect(
        run(program)[0],
        r"index product-2, price 20.00, after 1 changes\n"
        r"index product-1, price 7.90, after 3 changes\n"
        r"(index product-3, price 1\d\d, after \d+ changes\n){2,3}",
    )


def order_timeout(program):
    expect(run(program)[0], "(ok: [^\n]*\n){5}")


def polite_round(program):
    expect(
        run(program)[0],
        "at 0 s: a.example/ b.example/\nat 5 s: c.example/\nat 10 s: a.example/news b.example/\n"
        "2 sites are left\nat 60 s: c.example/ a.example/news\n",
    )


def delayed_to_destination(program):
    expect(
        run(program)[0],
        "first is: welcome 1\n3 in the outbox, 3 wait\n" + "".join(f"send welcome {n}\n" for n in range(1, 6)) + "send reminder\n",
    )


EXAMPLES = {
    "01_timers": timers,
    "02_ticks": ticks,
    "03_signals": signals,
    "04_stdin_echo": stdin_echo,
    "05_coroutines": coroutines,
    "06_foreign_loop": foreign_loop,
    "07_virtual_time": virtual_time,
    "10_debounce": debounce,
    "11_order_timeout": order_timeout,
    "12_polite_round": polite_round,
    "13_delayed_to_destination": delayed_to_destination,
}

if __name__ == "__main__":
    name, program = sys.argv[1:]
    lines = pathlib.Path(__file__).parents[2].joinpath("examples", name + ".cpp").read_text().count("\n")
    if lines >= 60:
        sys.exit(f"examples/{name}.cpp has {lines} lines; an example has fewer than 60")
    EXAMPLES[name](program)
