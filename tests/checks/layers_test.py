#!/usr/bin/env python3
"""Proves that layers.py finds each kind of violation, and nothing in a tree that keeps the rules."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import layers  # noqa: E402


class LayersTest(unittest.TestCase):
    def check(self, files):
        """The violations in a tree of these files: {path: text}."""
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n", encoding="utf-8")
            return layers.violations(root)

    def green(self, path, text):
        self.assertEqual(self.check({path: text}), [], f"{path}: {text}")

    def red(self, path, text, fault):
        found = self.check({path: text})
        self.assertEqual(len(found), 1, f"{path}: {text}: {found}")
        self.assertTrue(found[0].startswith(path), found[0])
        self.assertIn(fault, found[0])

    def test_an_include_points_to_its_own_layer_or_down(self):
        order = ["core", "queue", "tube", "loop", "wire", "broker", "bin"]
        for rank, layer in enumerate(order):
            for lower in order[: rank + 1]:
                self.green(f"include/vigil/{layer}/a.hpp", f"#include <vigil/{lower}/b.hpp>")
                self.green(f"src/{layer}/a.cpp", f'#include "{lower}/b.hpp"')
                self.green(f"src/{layer}/a.cpp", f"#include <vigil/{lower}/b.hpp>")

    def test_an_include_does_not_point_up(self):
        order = ["core", "queue", "tube", "loop", "wire", "broker", "bin"]
        for rank, layer in enumerate(order):
            for upper in order[rank + 1 :]:
                self.red(f"include/vigil/{layer}/a.hpp", f"#include <vigil/{upper}/b.hpp>", "above it")
                self.red(f"src/{layer}/a.cpp", f'#include "{upper}/b.hpp"', "above it")
                self.red(f"src/{layer}/a.hpp", f"#include <vigil/{upper}/b.hpp>", "above it")

    def test_siblings_do_not_include_each_other(self):
        siblings = ["wire", "store", "redis", "http"]
        for layer in siblings:
            for other in set(siblings) - {layer}:
                self.red(f"src/{layer}/a.cpp", f'#include "{other}/b.hpp"', "beside it")
                self.red(f"include/vigil/{layer}/a.hpp", f"#include <vigil/{other}/b.hpp>", "beside it")

    def test_the_form_of_an_include_hides_nothing(self):
        self.red("src/queue/a.cpp", '  #  include   "loop/b.hpp"  // why', "above it")
        self.red("src/queue/a.cpp", "#include <loop/b.hpp>", "above it")
        self.red("src/queue/a.cpp", '#include "vigil/loop/b.hpp"', "above it")
        self.red("src/queue/a.cpp", '#include "queue/../loop/b.hpp"', "'..'")
        self.red("src/queue/a.cpp", "#include HEADER", "cannot be checked")
        self.green("src/queue/a.cpp", '// #include "loop/b.hpp"\n/*\n#include <uv.h>\n*/')

    def test_a_neighbour_may_be_named_without_its_folder(self):
        self.assertEqual(self.check({"src/loop/a.cpp": '#include "b.hpp"', "src/loop/b.hpp": ""}), [])

    def test_vigil_hpp_contains_the_library_only(self):
        for layer in ["core", "queue", "tube", "loop", "store"]:
            self.green("include/vigil/vigil.hpp", f"#include <vigil/{layer}/a.hpp>")
        for layer in ["wire", "redis", "http", "broker", "bin"]:
            self.red("include/vigil/vigil.hpp", f"#include <vigil/{layer}/a.hpp>", "does not contain")

    def test_vigil_hpp_is_for_those_above_the_library(self):
        for layer in ["broker", "bin"]:
            self.green(f"src/{layer}/a.cpp", "#include <vigil/vigil.hpp>")
        for layer in ["core", "queue", "tube", "loop"]:
            self.red(f"src/{layer}/a.cpp", "#include <vigil/vigil.hpp>", "above it")
        self.red("src/store/a.cpp", "#include <vigil/vigil.hpp>", "beside it")

    def test_a_public_header_includes_no_private_one(self):
        self.red("include/vigil/loop/a.hpp", '#include "loop/b.hpp"', "private")

    def test_core_queue_and_tube_include_the_standard_library_only(self):
        for layer in ["core", "queue", "tube"]:
            for top in ["include/vigil", "src"]:
                self.green(f"{top}/{layer}/a.hpp", "#include <vector>\n#include <cstdint>")
                for header in ["fcntl.h", "unistd.h", "sys/mman.h", "time.h"]:
                    self.red(f"{top}/{layer}/a.hpp", f"#include <{header}>", "standard C++ headers only")
        for layer in ["loop", "store", "wire", "bin"]:
            self.green(f"src/{layer}/a.cpp", "#include <fcntl.h>\n#include <unistd.h>\n#include <sys/mman.h>")

    def test_a_third_party_header_has_one_folder(self):
        owner = {
            "uv.h": "loop",
            "zmq.hpp": "wire",
            "zmq_addon.hpp": "wire",
            "msgpack.hpp": "wire",
            "msgpack/v3/unpack.hpp": "wire",
            "hiredis/hiredis.h": "redis",
            "microhttpd.h": "http",
            "xxhash.h": "core",
            "spdlog/spdlog.h": "bin",
            "CLI/App.hpp": "bin",
        }
        for header, folder in owner.items():
            for layer in ["core", "queue", "tube", "loop", "wire", "store", "redis", "http", "broker", "bin"]:
                if layer == folder:
                    self.green(f"src/{layer}/a.cpp", f"#include <{header}>")
                else:
                    self.red(f"src/{layer}/a.cpp", f"#include <{header}>", f"for src/{folder} only")
                self.red(f"include/vigil/{layer}/a.hpp", f"#include <{header}>", "third-party")
            self.red("include/vigil/vigil.hpp", f"#include <{header}>", "third-party")

    def test_a_new_third_party_header_must_be_given_a_folder(self):
        self.red("src/store/a.cpp", "#include <lmdb.h>", "not a known header")
        self.red("src/store/a.cpp", '#include "nowhere.hpp"', "not a known header")
        self.red("include/vigil/store/a.hpp", "#include <boost/asio.hpp>", "third-party")

    def test_only_src_loop_reads_a_clock(self):
        reads = [
            "auto t = std::chrono::steady_clock::now();",
            "using Clock = std::chrono::system_clock;",
            "high_resolution_clock::time_point t;",
            "clock_gettime(CLOCK_MONOTONIC, &t);",
            "gettimeofday(&t, nullptr);",
            "std::timespec_get(&t, TIME_UTC);",
            "auto t = time(nullptr);",
            "auto t = std::time (&seconds);",
            "auto t = ::time(0);",
            "auto t = std::clock();",
            "auto t = uv_now(loop);",
            "auto t = uv_hrtime();",
        ]
        for text in reads:
            self.green("src/loop/a.cpp", text)
            for layer in ["core", "tube", "store", "wire", "bin"]:
                path = f"src/{layer}/a.cpp"
                found = self.check({path: text})
                self.assertTrue(found and all("reads a clock" in fault for fault in found), f"{path}: {text}: {found}")
            for path in ["include/vigil/loop/a.hpp", "include/vigil/queue/a.hpp", "include/vigil/vigil.hpp"]:
                self.assertTrue(self.check({path: text}), f"{path}: {text}")

    def test_queue_and_tube_ask_no_clock_of_any_kind(self):
        for layer in ["queue", "tube"]:
            self.red(f"include/vigil/{layer}/a.hpp", "auto t = Clock::now();", "reads a clock")
            self.red(f"src/{layer}/a.cpp", "auto t = Clock :: now ();", "reads a clock")

    def test_what_only_sounds_like_a_clock_is_allowed(self):
        for text in [
            "// steady_clock::now() is for the loop",
            "/* time(nullptr) */",
            'auto text = "steady_clock time(0)";',
            'auto text = R"x(uv_now(")x";',
            "std::chrono::time_point<Monotonic> due; auto t = due.time_since_epoch();",
            "auto t = item.time(3); auto u = item->time(3); auto v = lifetime(3); TimePoint time() const;",
            "void evict_due(TimePoint now, std::size_t limit); auto n = now();",
            "auto million = 1'000'000; auto quote = '\"'; // steady_clock",
        ]:
            self.green("include/vigil/queue/a.hpp", text)

    def test_literals_and_comments_do_not_hide_a_clock(self):
        self.red("src/store/a.cpp", "auto q = '\"'; auto t = uv_now(loop); auto r = '\"';", "uv_now")
        self.red("src/store/a.cpp", 'auto a = "http://x"; auto t = uv_now(loop);', "uv_now")
        found = self.check({"src/store/a.cpp": "/*\n\n*/\n\nauto t = uv_now(loop);"})
        self.assertTrue(found[0].startswith("src/store/a.cpp:5:"), found)

    def test_every_source_belongs_to_a_layer(self):
        self.red("src/main.cpp", "", "belongs to no layer")
        self.red("src/util/a.cpp", "", "belongs to no layer")
        self.red("include/vigil/util/a.hpp", "", "belongs to no layer")
        self.red("include/vigil/all.hpp", "", "belongs to no layer")
        self.red("src/bin/a.cpp", "#include <vigil/all.hpp>", "belongs to no layer")
        self.green("src/packaging/a.cpp", "#include <uv.h>")

    def test_an_empty_tree_is_not_green(self):
        self.assertEqual(len(self.check({})), 1)

    def test_the_exit_code_says_whether_there_are_violations(self):
        for text, code in [("", 0), ("#include <uv.h>", 1)]:
            with tempfile.TemporaryDirectory() as root:
                source = Path(root, "src/queue/a.cpp")
                source.parent.mkdir(parents=True)
                source.write_text(text, encoding="utf-8")
                run = subprocess.run([sys.executable, layers.__file__, root], capture_output=True, text=True)
                self.assertEqual(run.returncode, code, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
