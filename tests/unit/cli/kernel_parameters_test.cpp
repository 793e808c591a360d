// SPDX-License-Identifier: Apache-2.0
// Views on the command line: one argument, whose shape gives the extents.
#include "tools/cli/arguments/kernel_parameters.hpp"

#include <ikat/dsl.hpp>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using namespace cli;

const auto views = kernel("mixed", params("a", "A", "T", "n"),
                          [](f32 a, In<half, 2> A, Out<float, 3> T, u32 n) { T[0, n, 1] = cast<f32>(A[n, 2]) + a; });

std::vector<std::uint64_t> shape_of(std::size_t parameter, const std::string& text) {
    std::vector<runtime::Argument> out;
    append_shape(parameters_of(views.handle().info())[parameter], text, parse_argument(text), out);
    std::vector<std::uint64_t> numbers;
    for (const runtime::Argument& argument : out) {
        CHECK(argument.type == ir::Type::U32);
        numbers.push_back(argument.bits);
    }
    return numbers;
}

TEST_CASE("a view is one parameter of the command line") {
    const auto parameters = parameters_of(views.handle().info());
    REQUIRE(parameters.size() == 4);
    const std::uint32_t numbers[] = {0, 1, 5, 11};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(parameters[i].number == numbers[i]);
        CHECK((parameters[i].view != nullptr) == (i == 1 || i == 2));
    }
    CHECK(views.handle().info().parameters.size() == 12);
    CHECK(signature(views.handle().info()) ==
          "mixed(a: f32, A: in f16[rows x columns], T: out f32[planes x rows x columns], n: u32)");
}

TEST_CASE("the shape of a buffer gives extents and pitches") {
    using Numbers = std::vector<std::uint64_t>;
    CHECK(shape_of(1, "f16[300x250]") == Numbers{300, 250, 250});
    CHECK(shape_of(2, "f32[4x300x250]") == Numbers{4, 300, 250, 75000, 250});
    CHECK(shape_of(2, "f32[0x0x0]") == Numbers{0, 0, 0, 0, 0});
}

TEST_CASE("a shape of another rank is refused") {
    const std::string message = message_of([] { shape_of(1, "f16[4x3x2]"); });
    CHECK_THAT(message, contains("argument 'f16[4x3x2]' has a shape of rank 3, but parameter 'A' is of rank 2"));
    CHECK_THAT(message, contains("f32[300x250]"));
    CHECK_THAT(message_of([] { shape_of(2, "f32[]:1,2"); }), contains("f32[4x300x250]"));
    CHECK_THAT(message_of([] { shape_of(1, "u64:7"); }), contains("argument 'u64:7' is not a buffer"));
}

}  // namespace
}  // namespace ikat::tests
