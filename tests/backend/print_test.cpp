// SPDX-License-Identifier: Apache-2.0
// print and check on the emulator: the output of vprintf, and that a failed check stops the launch.
#include "codegen/ir/text/parse.hpp"
#include "codegen/pipeline/compile.hpp"
#include "runtime/device.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

struct Outcome {
    std::string printed, message;
};

/// Runs the kernel, whose parameter is a u32, with one thread.
Outcome run(std::string_view body, std::uint32_t n) {
    Outcome out;
    const auto device = runtime::Device::open({.device = "emulator", .printed = &out.printed});
    const std::string text = "kernel @talk(%n: u32) {\n^0:\n" + std::string(body) + "  return\n}\n";
    const Compiled compiled =
        compile(ir::parse_function(text, "talk.ir"), {.target = device.properties().target, .verify_each = true});
    const runtime::Module module = device.load(compiled.ptx, "talk");
    out.message = message_of([&] { device.launch(module, "talk", {{1}, {1}}, std::as_bytes(std::span(&n, 1))); });
    return out;
}

TEST_CASE("print shows each type as its kind of number") {
    const Outcome outcome = run(R"(
  %n = param.u32 %n
  %i = convert.i32.u32 %n
  %neg = neg.i32 %i
  %byte = convert.i8.i32 %neg
  %long = convert.i64.i32 %neg
  %f = convert.f32.u32 %n
  %half = const.f16 0.5
  %d = convert.f64.f32 %f
  %ten = const.u32 10
  %less = lt.u32 %n, %ten
  print "100% {{{}}} {} {} {}\n", %n, %neg, %byte, %long
  print "{} {} {} {}", %f, %half, %d, %less
)",
                                3);
    CHECK(outcome.message == "");
    CHECK(outcome.printed == "100% {3} -3 -3 -3\n3 0.5 3 1");
}

TEST_CASE("a check that holds is silent, one that fails prints and stops the launch") {
    const char* body = R"(
  %n = param.u32 %n
  %ten = const.u32 10
  %less = lt.u32 %n, %ten
  check "n is in {0 ... 9}", %less
  print "went on\n"
)";
    CHECK(run(body, 9).printed == "went on\n");
    const Outcome failed = run(body, 10);
    CHECK(failed.printed == "check failed: n is in {0 ... 9}\n");
    INFO(failed.message);
    CHECK(failed.message.find("trap") != std::string::npos);
}

}  // namespace
}  // namespace ikat::tests
