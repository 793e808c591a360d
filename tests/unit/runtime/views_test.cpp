// SPDX-License-Identifier: Apache-2.0
// Kernels of the language that leave the views and slices that their launches give them, and those that declare a halo.
#include <ikat/async.hpp>
#include <ikat/ikat.hpp>
#include <ikat/testing.hpp>

#include "tests/catch.hpp"

using namespace ikat;
using tests::contains;

namespace {

const auto copy_rows =
    kernel("copy_rows", params("x", "y", "columns"), [](In<float, 2> x, Out<float, 2> y, u32 columns) {
        u32 row = block_id().x;
        for (auto column : range(thread_id().x, columns, block_dim().x)) y[row][column] = x[row][column];
    });
constexpr int line_of_copy = __LINE__ - 2;

const auto copy = kernel("copy", params("x", "y"), [](In<float> x, Out<float> y) {
    u32 i = thread_id().x;
    y[i] = x[i];
});

const auto blurred = [](In<float, 2> x, Out<float, 2> y) {
    u64 i = cast<u64>(thread_id().x), j = cast<u64>(block_id().x);  // which wrap below 0
    y[j][i] = x[j - 1][i] + x[j + 1][i] + x[j][i - 1] + x[j][i + 1];
};
const auto blur = kernel("blur", params("x", "y"), blurred);
const auto blur_with_halo = kernel("blur_with_halo", params("x", "y"), blurred).require(halo<1>("x"));
const auto blur_with_rows = kernel("blur_with_rows", params("x", "y"), blurred).require(halo<1, 0>("x"));

const auto vectors = kernel("vectors", params("x", "y"), [](In<float, 2> x, Out<float, 2> y) {
    u32 i = thread_id().x, j = block_id().x;
    y[j].vec<4>(i) = x[j].vec<4>(i);
});

const auto last_of_planes = kernel("last_of_planes", params("x", "y", "i"), [](In<float, 3> x, Out<float> y, u32 i) {
    y[thread_id().x] = x[thread_id().x][3][i];
});

const auto add_to = kernel("add_to", params("x", "i"), [](InOut<float> x, u32 i) { atomic_add(x[i], 1.0f); });

const auto box_to = kernel("box_to", params("x", "y"), [](TensorMap<float, Box<8, 8>> x, InOut<float> y) {
    Shared<float, 8, 8> s;
    Shared<Barrier, 1> full;
    full[0].init(1);
    fence_async();
    full[0].arrive_expect(x.bytes);
    tma_load(s[0, 0], x[0, 0], full[0]);
    full[0].wait(0);
    y[0] = s[0, 0];
});

/// What is found in a launch; the function is given a device and two buffers of 32 rows of 64 elements.
template <class F>
std::string found(F launch, std::string_view check = "strict") {
    return testing::findings_in(
               [&](const Device& device) {
                   Buffer<float> x = device.upload(std::vector<float>(2048, 1)), y = device.buffer<float>(2048);
                   launch(device, x, y);
               },
               {.check = check})
        .text;
}

std::string found_in_copy(std::uint32_t columns, std::string_view check = "strict") {
    return found(
        [&](const Device& device, auto& x, auto& y) {
            device.launch(copy_rows, Grid{{16}, {32}}, x.view(20, 40).pitched(64), y.view(32, 64), columns);
        },
        check);
}

/// The rows and columns inside of a border of 1.
template <class K>
std::string found_in_blur(const K& k, std::uint32_t columns = 32) {
    return found([&](const Device& device, auto& x, auto& y) {
        device.launch(k, Grid{{30}, {columns}}, x.slice(65, 2048 - 65 - 64).view(30, 32).pitched(64),
                      y.view(30, 40).pitched(64));
    });
}

}  // namespace

TEST_CASE("a column beyond the view of an argument") {
    CHECK(found_in_copy(40) == "");
    const std::string text = found_in_copy(41);
    CHECK_THAT(text,
               contains("views_test.cpp:" + std::to_string(line_of_copy) + ":") &&
                   contains("error: global load of 4 bytes at column 40 of row 0 of argument 'x', a view of 20 x 40 "
                            "elements with a pitch of 64, by block (0,0,0) thread (8,0,0)") &&
                   contains("note: this is inside of its buffer, at offset 160 of buffer 'x' (8192 bytes)") &&
                   contains("in kernel 'copy_rows'"));
    CHECK_THAT(found_in_copy(41, "strict,views=warning"),
               contains("warning: global load of 4 bytes at column 40 of row 0"));
    CHECK(found_in_copy(41, "strict,no-views") == "");
}

TEST_CASE("a slice, and two arguments of one buffer") {
    const auto slices = [](std::uint64_t from, std::uint64_t count, std::uint32_t threads) {
        return found([&](const Device& device, auto& x, auto& y) {
            device.launch(copy, Grid{{1}, {threads}}, x.slice(from, count), y);
        });
    };
    CHECK(slices(64, 32, 32) == "");
    CHECK_THAT(slices(64, 31, 32), contains("at element 31 of argument 'x', a slice of 31 elements"));
    const auto halves = [](std::uint64_t to, std::uint32_t threads) {
        return found([&](const Device& device, auto& x, auto&) {
            device.launch(copy, Grid{{1}, {threads}}, std::as_const(x).slice(0, 32), x.slice(to, 32));
        });
    };
    CHECK(halves(32, 32) == "");
    CHECK_THAT(halves(100, 33), contains("element 32 of argument 'x', a slice of 32 elements") &&
                                    contains("outside of all 2 arguments that are parts of it"));
}

TEST_CASE("a halo is declared") {
    CHECK_THAT(found_in_blur(blur), contains("argument 'x', a view of 30 x 32 elements with a pitch of 64"));
    CHECK(found_in_blur(blur_with_halo) == "");
    CHECK_THAT(found_in_blur(blur_with_halo, 33),
               contains("global load of 4 bytes at column 33 of row 0 of argument 'x'"));
    CHECK_THAT(found_in_blur(blur_with_rows), contains("argument 'x', a view of 30 x 32 elements"));
}

TEST_CASE("vectors may be read in the padding of rows, and not be written there") {
    const auto copied = [](std::uint64_t columns, std::uint64_t to) {
        return found([&](const Device& device, auto& x, auto& y) {
            device.launch(vectors, Grid{{16}, {10}}, x.view(16, columns).pitched(64), y.view(16, to).pitched(64));
        });
    };
    CHECK(copied(40, 40) == "");
    CHECK(copied(37, 40) == "");
    CHECK_THAT(copied(36, 40), contains("global load of 16 bytes at column 36 of row 0 of argument 'x'"));
    CHECK_THAT(copied(37, 37), contains("global store of 16 bytes that reaches column 37 of row 0 of argument 'y'"));
}

TEST_CASE("planes, and atomics") {
    const auto planes = [](std::uint32_t i) {
        return found([&](const Device& device, auto& x, auto& y) {
            device.launch(last_of_planes, Grid{{1}, {3}}, x.view(3, 4, 60).pitched(512, 64), y, i);
        });
    };
    CHECK(planes(59) == "");
    CHECK_THAT(planes(60),
               contains("at column 60 of row 3 of plane 0 of argument 'x', a view of 3 x 4 x 60 elements with a "
                        "pitch of 512 and 64"));
    const auto added = [](std::uint32_t i) {
        return found([&](const Device& device, auto& x, auto&) {
            device.launch(add_to, Grid{{1}, {1}}, x.slice(8, 8), i);
        });
    };
    CHECK(added(7) == "");
    CHECK_THAT(added(8), contains("global atomic of 4 bytes at element 8 of argument 'x'"));
}

TEST_CASE("a copy by a map is not outside of a slice of the same buffer") {
    const auto findings = testing::findings_in(
        [](const Device& device) {
            Buffer<float> x = device.upload(std::vector<float>(2048, 1));
            device.launch(box_to, Grid{{1}, {1}}, std::as_const(x).view(20, 64), x.slice(2000, 4));
            CHECK(x.download()[2000] == 1);
        },
        {.check = "strict", .target = "sm_90"});
    CHECK(findings.text == "");
}
