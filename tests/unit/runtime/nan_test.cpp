// SPDX-License-Identifier: Apache-2.0
// Where a kernel of the language makes a NaN or an infinity of numbers: its line is that of the source.
#include <ikat/ikat.hpp>
#include <ikat/testing.hpp>

#include "tests/catch.hpp"

using namespace ikat;
using tests::contains;

namespace {

const auto normalise = kernel("normalise", params("x", "y"), [](In<float> x, Out<float> y) {
    u32 i = thread_id().x;
    f32 sum = x[i] + x[i];
    y[i] = x[i] / sum;
});
constexpr int line_of_kernel = __LINE__ - 5;

const auto squares = kernel("squares", params("x", "y"), [](In<float> x, Out<half> y) {
    u32 i = thread_id().x;
    y[i] = cast<f16>(x[i] * x[i]);
});

/// What is found in a launch with 32 of this number.
template <class K, class T>
std::string found(const K& k, float x, T, std::string_view check) {
    return testing::findings_in(
               [&](const Device& device) {
                   Buffer<float> from = device.upload(std::vector<float>(32, x));
                   Buffer<T> to = device.buffer<T>(32);
                   device.launch(k, grid(32, 32), from, to);
               },
               {.check = check})
        .text;
}

}  // namespace

TEST_CASE("a quotient of zeros in a kernel of the language") {
    const std::string text = found(normalise, 0, 0.0f, "strict,nan");
    CHECK_THAT(text, contains("nan_test.cpp:" + std::to_string(line_of_kernel + 3) + ":") &&
                         contains("error: 0 / 0 is NaN in f32, by block (0,0,0) thread (0,0,0)") &&
                         contains("in kernel 'normalise'"));
    CHECK_THAT(found(normalise, 0, 0.0f, "strict,nan=warning"), contains("warning: 0 / 0 is NaN in f32"));
    for (const char* check : {"strict", "strict,registers,races", "all,no-nan"})
        CHECK(found(normalise, 0, 0.0f, check) == "");
    CHECK(found(normalise, 1, 0.0f, "all") == "");
}

TEST_CASE("a number that its type does not have, in a kernel of the language") {
    CHECK_THAT(found(squares, 300, half{}, "all"), contains("error: 90000, converted to f16, is inf"));
    CHECK(found(squares, 200, half{}, "all") == "");
}
