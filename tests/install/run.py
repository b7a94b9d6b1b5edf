#!/usr/bin/env python3
"""Checks that others can use vigil: as installed, by pkg-config and by CMake, and as a meson subproject.

usage: run.py BUILD_DIR SOURCE_DIR

Installs the built BUILD_DIR into a scratch folder, which is not its configured prefix, so that the package files have
to be relocatable, and then builds and runs consumer.cpp in each of these ways. CXX names the compiler (default: c++).
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONSUMER = HERE / "consumer.cpp"
COMPILER = shlex.split(os.environ.get("CXX", "c++"))


def step(text):
    print(f"== {text}", flush=True)


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def run(*command, **environment):
    """The output of a command, which has to succeed; `environment` is added to ours."""
    command = [str(word) for word in command]
    print(f"   {shlex.join(command)}", flush=True)
    env = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def with_folder(variable, folder):
    """The search path in an environment variable, with this folder before all others."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get(variable)])])


def forget_libraries_of(build):
    """meson lets its tests find the shared libraries of the build directory; ours have to do without."""
    folders = os.environ.pop("LD_LIBRARY_PATH", "").split(os.pathsep)
    kept = [folder for folder in folders if folder and not Path(folder).resolve().is_relative_to(build)]
    if kept:
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(kept)


def build_info(build, name):
    """What meson tells about a build directory, by name."""
    entries = json.loads((build / "meson-info" / f"intro-{name}.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}


class Installation:
    """The project, installed below a scratch folder."""

    def __init__(self, build, scratch):
        options = build_info(build, "buildoptions")
        kind = options["default_library"]["value"]
        self.shared = kind in {"shared", "both"}
        self.static = kind in {"static", "both"}
        self.has_program = any(
            target["type"] == "executable" and target["installed"] for target in build_info(build, "targets").values()
        )
        self.prefix = scratch / options["prefix"]["value"].lstrip("/")
        self.libdir = self.prefix / options["libdir"]["value"]
        self.includedir = self.prefix / options["includedir"]["value"]
        self.bindir = self.prefix / options["bindir"]["value"]
        run("meson", "install", "-C", build, "--no-rebuild", DESTDIR=scratch)
        self.version = self.pkg_config("--modversion")

    def pkg_config(self, *arguments):
        path = with_folder("PKG_CONFIG_PATH", self.libdir / "pkgconfig")
        return run("pkg-config", *arguments, "vigil", PKG_CONFIG_PATH=path)

    def flags(self, *arguments):
        """Compiler and linker flags from pkg-config, whose folders have to be those of the scratch folder."""
        flags = shlex.split(self.pkg_config(*arguments, "--cflags", "--libs"))
        for option, folder in [("-I", self.includedir), ("-L", self.libdir)]:
            named = [Path(flag[2:]).resolve() for flag in flags if flag.startswith(option)]
            expect(folder.resolve() in named, f"pkg-config names {named} for {option}, not the installed {folder}")
        return flags


def check_consumer(program, installation, **environment):
    version = run(program, **environment)
    expect(version == installation.version, f"it says version {version!r}, vigil.pc {installation.version!r}")


def needs_shared_library(program):
    return b"libvigil.so" in program.read_bytes()


def check_headers(installation):
    step("no installed header needs libuv's")
    headers = list(installation.includedir.rglob("*.hpp"))
    expect(headers, f"no headers in {installation.includedir}")
    for header in headers:
        text = header.read_text(encoding="utf-8")
        expect(not re.search(r'^\s*#\s*include\s*[<"]uv[./]', text, re.MULTILINE), f"{header} includes uv.h")


def check_program(installation):
    step("the installed program")
    program = installation.bindir / "vigil"
    said = run(program, "--version", LD_LIBRARY_PATH=with_folder("LD_LIBRARY_PATH", installation.libdir))
    expect(said == f"vigil {installation.version}", f"it says {said!r}, vigil.pc {installation.version!r}")


def check_pkg_config_shared(installation, scratch):
    step("pkg-config, shared library")
    program = scratch / "consumer-shared"
    run(*COMPILER, CONSUMER, "-o", program, *installation.flags())
    expect(needs_shared_library(program), "the program does not use the shared library")
    check_consumer(program, installation, LD_LIBRARY_PATH=with_folder("LD_LIBRARY_PATH", installation.libdir))


def check_pkg_config_static(installation, scratch):
    step("pkg-config, static library")
    program = scratch / "consumer-static"
    archive = str(installation.libdir / "libvigil.a")
    flags = [archive if flag == "-lvigil" else flag for flag in installation.flags("--static")]
    run(*COMPILER, CONSUMER, "-o", program, *flags)
    expect(not needs_shared_library(program), "the program uses the shared library")
    check_consumer(program, installation)


def check_cmake(installation, scratch):
    step("CMake")
    build = scratch / "cmake"
    run("cmake", "-G", "Ninja", "-S", HERE / "cmake", "-B", build, f"-DCMAKE_PREFIX_PATH={installation.prefix}")
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = Path(re.search(r"^vigil_DIR:PATH=(.*)$", cache, re.MULTILINE)[1])
    expect(found.resolve().is_relative_to(installation.prefix.resolve()), f"CMake found another vigil: {found}")
    run("cmake", "--build", build)
    program = build / "consumer"
    expect(needs_shared_library(program) == installation.shared, "the program uses the wrong kind of library")
    check_consumer(program, installation)


def check_subproject(installation, scratch, source):
    step("meson subproject")
    project = scratch / "subproject"
    shutil.copytree(HERE / "subproject", project)
    shutil.copy(CONSUMER, project)
    (project / "subprojects").mkdir()
    (project / "subprojects" / "vigil").symlink_to(source, target_is_directory=True)
    build = project / "build"
    run("meson", "setup", build, project, "--force-fallback-for=vigil")
    run("meson", "compile", "-C", build)
    check_consumer(build / "consumer", installation)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, source = (Path(argument).resolve() for argument in sys.argv[1:])
    forget_libraries_of(build)
    with tempfile.TemporaryDirectory(prefix="vigil-install-") as folder:
        scratch = Path(folder).resolve()
        step("install")
        installation = Installation(build, scratch / "root")
        check_headers(installation)
        if installation.has_program:
            check_program(installation)
        if installation.shared:
            check_pkg_config_shared(installation, scratch)
        if installation.static:
            check_pkg_config_static(installation, scratch)
        check_cmake(installation, scratch)
        check_subproject(installation, scratch, source)
    print("all of them work")


if __name__ == "__main__":
    main()
