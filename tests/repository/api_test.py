#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/api reads of a header: names, comments and groups, and which names lack a comment."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
from declarations import Reader, Unreadable

loader = importlib.machinery.SourceFileLoader("api", str(SCRIPTS / "api"))
api = importlib.util.module_from_spec(importlib.util.spec_from_loader("api", loader))
loader.exec_module(api)


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.hpp").write_text("namespace ikat {\n" + text + "\n}\n")
        return Reader(folder, "a.hpp").read()


def missing(text):
    return [each.name for each in api.without_comment({"a.hpp": read(text)})]


class Comments(unittest.TestCase):
    def test_each_kind_of_name_needs_one(self):
        for text, name in [("void f();", "f"), ("template <class T>\nrequires(sizeof(T) > 2) auto f(T v) -> T { return v; }", "f"),
                           ("struct S { int x; };", "S"), ("enum class E : int { A, B };", "E"), ("using A = int;", "A"),
                           ("inline constexpr int c[] = {1, 2};", "c"), ("template <class T>\nconcept C = requires(T t) { t.f(); };", "C"),
                           ("const auto k = kernel(\"k\", [](f32 a) { g(a); });", "k")]:
            self.assertEqual(missing(text), [name], text)
            self.assertEqual(missing("/// What it does.\n" + text), [], text)
            self.assertEqual(missing("/// Of something else.\n\n" + text), [name], text)

    def test_a_comment_stands_for_a_group_and_for_overloads(self):
        self.assertEqual(missing("/// Both.\nvoid f();\nvoid g();\n\nvoid h();"), ["h"])
        self.assertEqual(missing("/// Both.\nvoid f(int);\n\nvoid g();\nvoid f(float);"), ["g"])
        self.assertEqual(missing("struct s4 {};  // four bits"), [])

    def test_members_that_take_arguments_need_one(self):
        body = "/// A class.\nclass C {\npublic:\n    C(int x) : x_{x} {}\n    int x() const { return x_; }\n    void set(int x);\n" \
               "    bool operator==(const C&) const = default;\n\nprivate:\n    void hidden(int);\n    int x_;\n};"
        self.assertEqual(missing(body), ["set"])

    def test_what_is_internal_or_special_needs_none(self):
        self.assertEqual(missing("namespace detail {\nvoid f(int);\n}"), [])
        self.assertEqual(missing("/// All.\ntemplate <class T>\nstruct S {};\n\ntemplate <>\nstruct S<int> {\n    void f(int);\n};"), [])
        self.assertEqual(missing("class Later;\nstatic_assert(true);\nusing std::max;"), [])

    def test_macros_are_expanded(self):
        macro = "#define IKAT_F(name, T) \\\n    auto name(T v) { return v; }\n{}IKAT_F(one, int)\nIKAT_F(two, int)\n#undef IKAT_F"
        self.assertEqual(missing(macro.replace("{}IKAT", "IKAT")), ["one", "two"])
        self.assertEqual(missing(macro.replace("{}IKAT", "/// Both.\nIKAT")), [])


class Pages(unittest.TestCase):
    def test_signatures(self):
        found = read("/// F.\ntemplate <class T>\nauto f(const T& v, const Where& where = Where::current()) {\n    return v;\n}")
        self.assertEqual(api.shown(found[0].signature), "template <class T>\nauto f(const T& v);")
        self.assertEqual(found[0].comment, ["F."])

    def test_names(self):
        found = read("/// Two.\nextern const int a, b;\n\n/// Sums.\nfriend auto operator+(S, S);\ninline constexpr F c{1, 2}, d{3};\nvoid f(int x, int y);")
        self.assertEqual([[*each.also, each.name] for each in found], [["a", "b"], ["operator+"], ["c", "d"], ["f"]])

    def test_code_in_comments(self):
        self.assertEqual(api.prose(["Before a_b:", "", "    f(x);", "After <x>."]), "Before a\\_b:\n\n\n```cpp\nf(x);\n```\n\nAfter \\<x\\>.")

    def test_what_cannot_be_read_is_an_error(self):
        with self.assertRaisesRegex(Unreadable, r"a.hpp: line 1: '\{' is not closed"):
            read("void f() {")


unittest.main()
