// SPDX-License-Identifier: Apache-2.0
// Kernels on matrices, on stacks of matrices and on parts of buffers.
#include <ikat/ikat.hpp>

#include <numeric>
#include <sstream>

#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

std::vector<float> counting(std::size_t n) {
    std::vector<float> out(n);
    std::iota(out.begin(), out.end(), 0.0f);
    return out;
}

const auto row_sums = kernel("row_sums", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    u32 i = global_id().x;
    if_(i < A.extent(0), [&] {
        auto row = A[i];
        f32 sum = 0;
        for (auto j : range(A.extent(1))) sum += row[j];
        y[i] = sum;
    });
});

const auto transpose = kernel("transpose", params("A", "B"), [](In<float, 2> A, Out<float, 2> B) {
    u32 i = global_id().y, j = global_id().x;
    auto inside = (i < A.extent(0)) & (j < A.extent(1));
    B.store_if(inside, j, i, A.load_if(inside, i, j, 0));
});

TEST_CASE("the parameters of a view are a pointer, extents and pitches") {
    const auto both = kernel("both", params("A", "T"), [](In<float, 2> A, Out<float, 3> T) {
        T[A.pitch(), A.extent(1), T.extent(2)] = A[T.pitch(), A.extent(0)] + cast<f32>(T.pitch(0));
    });
    const std::string ptx = compile(both.ast(), {}).ptx;
    CHECK_THAT(ptx, contains("(\n    .param .u64 A,\n    .param .u32 A_extent0,\n    .param .u32 A_extent1,\n"
                             "    .param .u32 A_pitch,\n    .param .u64 T,\n    .param .u32 T_extent0,\n"
                             "    .param .u32 T_extent1,\n    .param .u32 T_extent2,\n    .param .u32 T_pitch0,\n"
                             "    .param .u32 T_pitch1\n)"));
}

TEST_CASE("views: rows of a matrix, with and without gaps between them") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(counting(12));
    Buffer<float> y = device.buffer<float>(4);
    device.launch(row_sums, grid(4, 32), x.view(4, 3), y);
    CHECK(y.download() == std::vector<float>{3, 12, 21, 30});
    device.launch(row_sums, grid(3, 32), x.view(3, 2).pitched(4), y);
    CHECK(y.download() == std::vector<float>{1, 9, 17, 30});
    device.launch(row_sums, grid(2, 32), x.slice(1, 8).view(2, 3).pitched(5), y.slice(2, 2));
    CHECK(y.download() == std::vector<float>{1, 9, 6, 21});
}

TEST_CASE("views: columns of each row, and rows in pieces") {
    const Device device = emulator();
    const Buffer<float> x = device.upload(counting(24));
    Buffer<float> y = device.buffer<float>(4);
    const auto matrix = x.view(4, 6);
    device.launch(row_sums, grid(4, 32), matrix.columns(1, 2), y);
    CHECK(y.download() == std::vector<float>{3, 15, 27, 39});
    const auto pieces = matrix.columns(2, 4).split(2);
    CHECK(pieces.extents() == std::array<std::uint64_t, 3>{4, 2, 2});
    CHECK(pieces.pitches() == std::array<std::uint64_t, 2>{6, 2});
    CHECK(pieces.part().offset == 8);
    CHECK(matrix.columns(6, 0).part().bytes == 0);
    CHECK_THROWS_WITH(matrix.columns(5, 2), contains("columns from 5 on, 2 of them, of rows of 6 elements"));
    CHECK_THROWS_WITH(matrix.columns(1, ~0ull), contains("of rows of 6 elements"));
    CHECK_THROWS_WITH(matrix.split(4), contains("rows of 6 elements in pieces of 4"));
    CHECK_THROWS_WITH(matrix.split(0), contains("rows of 6 elements in pieces of 0"));
}

TEST_CASE("views: a transpose between matrices of different pitches") {
    const Device device = emulator();
    const Buffer<float> a = device.upload(counting(70 * 40));
    Buffer<float> b = device.buffer<float>(33 * 72);
    b.fill(-1);
    device.launch(transpose, Grid{{2, 9}, {32, 8}}, a.view(70, 33).pitched(40), b.view(33, 70).pitched(72));
    const std::vector<float> result = b.download();
    for (std::size_t j = 0; j < 33; ++j)
        for (std::size_t i = 0; i < 72; ++i) REQUIRE(result[j * 72 + i] == (i < 70 ? float(i * 40 + j) : -1.0f));
}

TEST_CASE("views: rank 3, planes and windows") {
    const auto sums = kernel("sums", params("T", "y"), [](In<float, 3> T, Out<float, 2> y) {
        u32 p = block_id().x, i = thread_id().x;
        auto middle = T[p].window(0, 1, T.extent(1), T.extent(2) - 2);
        f32 sum = 0;
        for (auto j : range(middle.extent(1))) sum += middle[i, j];
        y[p, i] = sum * 1000 + T[p, i, 0] + T[p, i][1];
    });
    const Device device = emulator();
    const Buffer<float> t = device.upload(counting(2 * 20));
    Buffer<float> y = device.buffer<float>(6);
    device.launch(sums, Grid{{2}, {3}}, t.view(2, 3, 4).pitched(20, 5), y.view(2, 3));
    std::vector<float> expected;
    for (int p = 0; p < 2; ++p)
        for (int i = 0; i < 3; ++i) {
            const auto at = [&](int j) { return float(p * 20 + i * 5 + j); };
            expected.push_back((at(1) + at(2)) * 1000 + at(0) + at(1));
        }
    CHECK(y.download() == expected);
}

TEST_CASE("views: pitches in any order, such as heads that follow each other within a row") {
    // Two heads of three rows of four elements: rows are 8 apart, and heads 4.
    const auto heads = kernel("heads", params("T", "y"), [](In<float, 3> T, Out<float> y) {
        u32 i = thread_id().x;
        y[i] = T[1, i, 0] * 100 + T[0][i, 3];
    });
    const auto beyond = kernel("beyond", params("T", "y"), [](In<float, 3> T, Out<float> y) { y[0] = T[1, 1, 3]; });
    const Device device = emulator();
    const Buffer<float> x = device.upload(counting(24), "x");
    Buffer<float> y = device.buffer<float>(3);
    device.launch(heads, Grid{{1}, {3}}, x.view(2, 3, 4).pitched(4, 8), y);
    CHECK(y.download() == std::vector<float>{403, 1211, 2019});
    // Rows overlap: those of a head begin before the other head's end.
    CHECK_THAT(message_of([&] { (void)x.view(2, 3, 4).pitched(4, 7); }),
               contains("a view of 2 x 3 x 4 elements with a pitch of 7, which is less than 8"));
    // A finding says the place by its dimensions, whatever their order.
    CHECK_THAT(message_of([&] {
                   device.launch(beyond, Grid{{1}, {1}}, x.slice(0, 23).view(2, 3, 3).pitched(4, 8), y);
               }),
               contains("column 3 of row 1 of plane 1"));
}

TEST_CASE("views: the product of row and pitch is 64 bits wide") {
    // Element [65536, 0] of a view with rows of 65536 elements is element 2^32: out of this buffer, and reported.
    const auto far = kernel("far", params("A", "i"), [](Out<float, 2> A, u32 i) { A[i * i, 0] = 1; });
    const Device device = emulator();
    Buffer<float> x = device.buffer<float>(65536, "x");
    const std::string message = message_of([&] { device.launch(far, Grid{{1}, {1}}, x.view(1, 65536), 256); });
    std::ostringstream address;
    address << "global store of 4 bytes, at 0x" << std::hex << x.address() + (std::uint64_t{4} << 32);
    CHECK_THAT(message, contains(address.str()));
}

TEST_CASE("views that do not fit are refused where they are made") {
    const Device device = emulator();
    const Buffer<float> x = device.buffer<float>(12, "x");
    const auto refused = [&](auto&& make) { return message_of(make); };
    CHECK_THAT(refused([&] { (void)x.view(4, 4); }),
               contains("buffer 'x': a view of 4 x 4 elements with pitch 4 needs 16, and there are 12"));
    CHECK_THAT(refused([&] { (void)x.view(3, 4).pitched(3); }),
               contains("a view of 3 x 4 elements with a pitch of 3, which is less than 4"));
    CHECK_THAT(refused([&] { (void)x.view(2, 2, 2).pitched(3, 2); }), contains("a pitch of 3, which is less than 4"));
    CHECK_THAT(refused([&] { (void)x.view(-1, 0); }), contains("which is not below 2^32"));
    CHECK_THAT(refused([&] { (void)x.view(1, 1).pitched(1ull << 32); }), contains("which is not below 2^32"));
    CHECK_THAT(refused([&] { (void)x.slice(4, 9); }),
               contains("a slice of 9 elements from element 4 on, of buffer 'x', which has 12 there"));
    CHECK_THAT(refused([&] { (void)x.slice(13, 0); }), contains("from element 13 on"));
    CHECK_THAT(refused([&] { (void)x.slice(1, 4).slice(~0ull, 2); }), contains("which has 4 there"));
    CHECK_NOTHROW(x.view(3, 3).pitched(4).pitched(3));
    CHECK_NOTHROW(x.view(0, 5));
    CHECK_NOTHROW(x.view(5, 0).pitched(3));
    CHECK(x.slice(2, 10).view(2, 3).pitched(5).part().offset == 8);
    CHECK(x.slice(2, 10).view(2, 3).pitched(5).part().bytes == 32);
    CHECK(x.view(2, 0, 3).part().bytes == 0);
    CHECK_NOTHROW(x.view(2, 2).pitched(10));
}

TEST_CASE("views: an error says where the view is made") {
    const Device device = emulator();
    Buffer<float> x = device.buffer<float>(12, "x");
    const Buffer<float>& reads = x;
    const auto matrix = x.view(3, 4);
    const auto here = [](auto&& make, std::uint32_t line, const char* text) {
        const std::string place = std::string(__FILE__) + ":" + std::to_string(line) + ":";
        CHECK_THAT(message_of(make), Catch::Matchers::StartsWith(place) && contains(std::string(": error: ") + text));
    };
    here([&] { (void)x.view(4, 4); }, __LINE__, "buffer 'x': a view of 4 x 4 elements");
    here([&] { (void)reads.view(4, 2, 2); }, __LINE__, "buffer 'x': a view of 4 x 2 x 2 elements");
    here([&] { (void)x.slice(2, 8).view(2u, 3ull, 2); }, __LINE__, "buffer 'x': a view of 2 x 3 x 2 elements");
    here([&] { (void)x.slice(4, 9); }, __LINE__, "a slice of 9 elements from element 4 on");
    here([&] { (void)reads.slice(4, 9); }, __LINE__, "a slice of 9 elements from element 4 on");
    here([&] { (void)x.slice(1, 4).slice(2, 3); }, __LINE__, "a slice of 3 elements from element 2 on");
    here([&] { (void)matrix.pitched(5); }, __LINE__, "buffer 'x': a view of 3 x 4 elements with pitch 5 needs 14");
    here([&] { (void)matrix.columns(3, 2); }, __LINE__, "columns from 3 on, 2 of them, of rows of 4 elements");
    here([&] { (void)matrix.split(3); }, __LINE__, "rows of 4 elements in pieces of 3");
    BufferSlice<float> gone;
    { gone = Buffer<float>(device.buffer<float>(4)).slice(0, 4); }
    here([&] { (void)gone.view(2, 2); }, __LINE__, "a slice or a view of a buffer that has been freed is used");
}

TEST_CASE("views: the hint for a pitch that is too small says how large it must be") {
    const Device device = emulator();
    const Buffer<float> x = device.buffer<float>(64, "x");
    CHECK_THAT(message_of([&] { (void)x.view(2, 24).pitched(16); }),
               contains("hint: the pitch must be at least the row length, 24"));
    CHECK_THAT(message_of([&] { (void)x.view(2, 3, 4).pitched(10, 4); }),
               contains("hint: the pitch must be at least 12, the length of what it steps over"));
}

TEST_CASE("slices: parts of buffers are read, written and passed") {
    const Device device = emulator();
    Buffer<float> x = device.upload(counting(8));
    CHECK(x.slice(2, 3).download() == std::vector<float>{2, 3, 4});
    CHECK(x.slice(2, 5).slice(1, 2).download() == std::vector<float>{3, 4});
    x.slice(6, 2).upload(std::vector<float>{60, 70});
    CHECK(x.download() == std::vector<float>{0, 1, 2, 3, 4, 5, 60, 70});
    CHECK_THAT(message_of([&] { x.slice(6, 1).upload(std::vector<float>{1, 2}); }), contains("8 bytes for a slice"));
    const auto twice = kernel("twice", params("x", "y"), [](In<float> x, Out<float> y) {
        u32 i = thread_id().x;
        auto from = x.slice(1);
        y[i] = from[i] * 2;
    });
    device.launch(twice, Grid{{1}, {2}}, x.slice(4, 3), x.slice(1, 2));
    CHECK(x.download() == std::vector<float>{0, 10, 120, 3, 4, 5, 60, 70});
}

TEST_CASE("slices: what is read must not overlap what is written") {
    const Device device = emulator();
    Buffer<float> x = device.upload(counting(16));
    CHECK_THAT(message_of([&] { device.launch(row_sums, grid(1, 32), x.view(2, 4), x.slice(7, 2)); }),
               contains("'A' (in f32[]) and 'y' (out f32[]) are the same memory"));
    CHECK_NOTHROW(device.launch(row_sums, grid(2, 32), x.view(2, 4), x.slice(8, 2)));
    // The gaps between rows count.
    CHECK_THAT(
        message_of([&] { device.launch(transpose, grid(1, 32), x.view(4, 2).pitched(4), x.slice(2, 14).view(2, 4)); }),
        contains("are the same memory"));
}

TEST_CASE("views: contracts about a pitch are checked, and slices have their own alignments") {
    const auto fours = kernel("fours", params("A", "y"), [](In<float, 2> A, Out<float> y) {
                           auto v = A.vec<4>(thread_id().x, 1);
                           y[thread_id().x] = v[0] + v[3];
                       }).require(multiple_of<4>("A_pitch"), aligned<16>("A"));
    const Device device = emulator();
    Buffer<float> x = device.upload(counting(32)), y = device.buffer<float>(2);
    device.launch(fours, Grid{{1}, {2}}, x.view(2, 8).pitched(12), y);
    CHECK(y.download() == std::vector<float>{11, 35});
    CHECK_THAT(message_of([&] {
                   device.launch(fours, Grid{{1}, {2}}, x.view(2, 9), y);
               }),
               contains("'A_pitch' is 9, which is not a multiple of 4"));
    CHECK_THAT(message_of([&] {
                   device.launch(fours, Grid{{1}, {2}}, x.slice(1, 16).view(2, 8), y);
               }),
               contains("buffer 'A' is not aligned to 16 bytes"));
}

TEST_CASE("slices: an access of several elements is checked where it is made") {
    const Device device = emulator();
    Buffer<float> x = device.upload(counting(32)), y = device.buffer<float>(32);
    const auto first = [&](const auto& k, std::uint64_t from, std::uint32_t n) {
        y.fill(-1);
        device.launch(k, Grid{{1}, {32}}, x.slice(from, 16), y.slice(0, 16), n);
        return y.download()[0];
    };
    const auto fours = kernel("fours", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
        u32 i = global_id().x;
        if_(i < n / 4, [&] { y.vec<4>(i) = x.vec<4>(i); });
    });
    CHECK(first(fours, 4, 16) == 4);
    CHECK_THAT(message_of([&] { first(fours, 2, 16); }), contains("misaligned, 16 bytes are needed"));
    CHECK(first(fours, 2, 3) == -1);  // nothing to do
    // The kernel decides what it reads, whatever it decides by.
    const auto guarded = kernel("guarded", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
        u32 i = thread_id().x;
        if_((block_id().x == 1) & (i < n / 4), [&] { y.vec<4>(i) = x.vec<4>(i); });
        if_(i < n, [&] { y[i] = x[i]; });
    });
    CHECK(first(guarded, 1, 16) == 1);
}

TEST_CASE("dynamic shared memory has vectors, masked access and slices") {
    const auto reversed = kernel("reversed", params("x", "y"), [](In<float> x, Out<float> y) {
        u32 t = thread_id().x;
        auto first = dynamic_shared<float>(3), second = dynamic_shared<float>(8);
        second.vec<2>(t) = x.vec<2>(t);
        if_(t == 0, [&] { first[2] = 100; });
        sync_block();
        y[t] = second.slice(4)[3 - t] + first.load_if(t == 1, t + 1, 0);
    });
    const Device device = emulator();
    const Buffer<float> x = device.upload(counting(8));
    Buffer<float> y = device.buffer<float>(4);
    device.launch(reversed, Grid{{1}, {4}, 64}, x, y);
    CHECK(y.download() == std::vector<float>{7, 106, 5, 4});
}

}  // namespace
}  // namespace ikat::tests
