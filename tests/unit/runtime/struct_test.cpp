// SPDX-License-Identifier: Apache-2.0
// Host structs as parameters, in variables and in memory: what the kernel reads, the PTX, what a launch passes. Structs
// of device variables.
#include <ikat/ikat.hpp>

#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

struct Affine {
    BOOST_HANA_DEFINE_STRUCT(Affine, (float, scale), (half, offset), (double, wide), (long long, step),
                             (std::uint32_t, n));
    int other = 7;
};

const auto affine = kernel("affine", params("x", "p", "k"), [](InOut<float> x, Struct<Affine> p, i32 k) {
    u32 i = global_id().x;
    if_(i < p[&Affine::n], [&] {
        auto step = p[&Affine::step];
        f32 sum = p[&Affine::scale] * x[i] + cast<f32>(p[&Affine::offset]) + cast<f32>(p[&Affine::wide]);
        x[i] = sum + cast<f32>(step + cast<i64>(k));
    });
});

TEST_CASE("structs: fields are separate parameters, between the others") {
    CHECK_THAT(
        compile(affine.ast(), {}).ptx,
        contains("(\n    .param .u64 x,\n    .param .f32 p_scale,\n    .param .b16 p_offset,\n    .param .f64 p_wide,\n"
                 "    .param .s64 p_step,\n    .param .u32 p_n,\n    .param .s32 k\n)"));
}

TEST_CASE("structs: a launch passes the fields' values") {
    const Device device = Device::open({.device = "emulator", .threads = 1});
    Buffer<float> x = device.upload(std::vector<float>{1, 2, 3, 4});
    device.launch(affine, grid(4, 32), x, Affine{2.0f, half(0.5f), 0.25, -5, 3}, 100);
    CHECK(x.download() == std::vector<float>{97.75, 99.75, 101.75, 4});
    const Affine constant{0.0f, half(0.0f), 1e300, 1ll << 40, 1};
    const auto wide = kernel("wide", [](Struct<Affine> p, Out<double> y, Out<std::int64_t> z) {
        y[0] = p[&Affine::wide];
        z[0] = p[&Affine::step];
    });
    Buffer<double> y = device.buffer<double>(1);
    Buffer<std::int64_t> z = device.buffer<std::int64_t>(1);
    device.launch(wide, grid(1, 1), constant, y, z);
    CHECK(y.download()[0] == 1e300);
    CHECK(z.download()[0] == 1ll << 40);
}

TEST_CASE("structs: contracts name fields, and launches check them") {
    const auto even = kernel("even", params("p"), [](Struct<Affine> p) {
                          check(p[&Affine::n] % 2 == 0, "even");
                      }).require(multiple_of<2>("p_n"));
    const Device device = Device::open({.device = "emulator", .threads = 1});
    CHECK_NOTHROW(device.launch(even, grid(1, 1), Affine{0, half(0.0f), 0, 0, 4}));
    CHECK_THAT(message_of([&] {
                   device.launch(even, grid(1, 1), Affine{0, half(0.0f), 0, 0, 5});
               }),
               contains("'p_n' is 5, which is not a multiple of 2"));
}

struct Bounds {
    BOOST_HANA_DEFINE_STRUCT(Bounds, (std::int8_t, low), (bool, open), (std::uint16_t, high));
};
struct Narrow {
    BOOST_HANA_DEFINE_STRUCT(Narrow, (bool, on), (Bounds, bounds), (bfloat16, scale), (half2, pair),
                             (std::uint8_t, last));
};

const auto narrow = kernel("narrow", params("p", "y"), [](Struct<Narrow> p, Out<float> y) {
    auto bounds = p[&Narrow::bounds];
    y[0] = cast<f32>(bounds[&Bounds::low]);
    y[1] = cast<f32>(bounds[&Bounds::high]);
    y[2] = select(bounds[&Bounds::open], 1.0f, 0.0f) + select(p[&Narrow::on], 2.0f, 0.0f);
    y[3] = cast<f32>(p[&Narrow::scale]);
    y[4] = cast<f32>(p[&Narrow::pair][1]);
    y[5] = cast<f32>(p[&Narrow::last]);
});

TEST_CASE("structs: narrow fields, bool, and nested structs") {
    CHECK_THAT(compile(narrow.ast(), {}).ptx,
               contains("(\n    .param .u8 p_on,\n    .param .s8 p_bounds_low,\n    .param .u8 p_bounds_open,\n"
                        "    .param .u16 p_bounds_high,\n    .param .b16 p_scale,\n    .param .b32 p_pair,\n"
                        "    .param .u8 p_last,\n    .param .u64 y\n)"));
    const Device device = Device::open({.device = "emulator", .threads = 1});
    for (bool on : {false, true})
        for (bool open : {false, true}) {
            Buffer<float> y = device.buffer<float>(6);
            const Narrow given{on, {-100, open, 60000}, bfloat16(1.5f), {half(2.0f), half(-3.0f)}, 200};
            device.launch(narrow, grid(1, 1), given, y);
            const float flags = (open ? 1.0f : 0.0f) + (on ? 2.0f : 0.0f);
            CHECK(y.download() == std::vector<float>{-100, 60000, flags, 1.5f, -3, 200});
        }
}

// ---- in memory and in variables

struct Inner {
    BOOST_HANA_DEFINE_STRUCT(Inner, (std::uint8_t, tag), (double, weight));
    bool operator==(const Inner&) const = default;
};
struct Body {
    BOOST_HANA_DEFINE_STRUCT(Body, (std::int16_t, first), (bool, on), (Inner, inner), (half2, pair));
    float hidden = 3;  // unknown to Hana: takes up space, and is left alone
    bfloat16 last{};
};

Body body(int i) {
    return {std::int16_t(i - 3),
            i % 3 == 0,
            {std::uint8_t(200 + i), i * 0.5},
            {half(float(i)), half(float(-i))},
            float(i),
            bfloat16(float(2 * i))};
}
bool equal(const Body& a, const Body& b) {
    return a.first == b.first && a.on == b.on && a.inner == b.inner && a.pair.x.bits == b.pair.x.bits &&
           a.pair.y.bits == b.pair.y.bits && a.hidden == b.hidden && a.last.bits == b.last.bits;
}
std::vector<Body> bodies(int n) {
    std::vector<Body> out;
    for (int i = 0; i < n; ++i) out.push_back(body(i));
    return out;
}
TEST_CASE("structs in memory have the host's layout") {
    const auto read = kernel("read", params("b", "y"), [](In<Body> b, Out<double> y) {
        u32 i = global_id().x;
        auto out = y.slice(i * 6);
        auto here = b[i];
        out[0] = cast<f64>(here[&Body::first]);
        out[1] = cast<f64>(cast<u32>(b[i][&Body::on]));
        out[2] = cast<f64>(b[i][&Body::inner][&Inner::tag]);
        out[3] = here[&Body::inner][&Inner::weight];
        out[4] = cast<f64>(b.slice(2)[i][&Body::pair][1]);
        out[5] = select(here[&Body::on], 1.0, 0.0);
    });
    const Device device = emulator();
    const auto b = device.upload(bodies(6));
    auto y = device.buffer<double>(24);
    device.launch(read, grid(4, 4), b, y);
    const auto got = y.download();
    for (int i = 0; i < 4; ++i) {
        const std::vector<double> wanted{double(i - 3), double(i % 3 == 0), 200.0 + i,
                                         i * 0.5,       -2.0 - i,           double(i % 3 == 0)};
        CHECK(std::vector<double>(got.begin() + i * 6, got.begin() + i * 6 + 6) == wanted);
    }
}

TEST_CASE("structs are assigned as a whole, by fields, and exchanged") {
    const auto k = kernel("assign", params("b", "given"), [](InOut<Body> b, Struct<Body> given) {
        u32 i = thread_id().x;
        Shared<Body, 2, 4> s;
        s[i / 4, i % 4] = b[i];
        sync_block();
        Var<Body> mine = s[(7 - i) / 4, (7 - i) % 4], other;
        other = mine;
        mine[&Body::first] += 100;
        mine[&Body::inner][&Inner::tag] = 1;
        swap(mine, other);  // mine as before
        Regs<Body, 2> r(mine);
        r[1] = other;
        Local<Body, 3> l;
        l[i % 3] = r[1];
        b[i] = r[0];                            // the body of thread 7 - i
        if_(i == 1, [&] { b[i] = l[i % 3]; });  // ... changed
        if_(i == 2, [&] { b[i] = given; });
        if_(i == 3, [&] { b[i] = Body{7, true, {8, 9}, {half(1.0f), half(2.0f)}, 0, {}}; });
        if_(i == 4, [&] {
            b[i][&Body::on] = !b[i][&Body::on];
            b[i][&Body::inner] = Inner{5, 6};
        });
        sync_block();
        if_(i == 5, [&] {
            auto t = b[5];
            b[5] = b[6];
            b[6] = t;
        });
    });
    const Device device = emulator();
    auto b = device.upload(bodies(8));
    device.launch(k, grid(8, 8), b, body(50));
    std::vector<Body> wanted;
    for (int i = 0; i < 8; ++i) {
        wanted.push_back(body(7 - i));
        if (i == 1) wanted[1].first += 100, wanted[1].inner.tag = 1;
        if (i == 2) wanted[2] = body(50);
        if (i == 3) wanted[3] = {7, true, {8, 9}, {half(1.0f), half(2.0f)}, 0, {}};
        if (i == 4) wanted[4].on = !wanted[4].on, wanted[4].inner = {5, 6};
        wanted[std::size_t(i)].hidden = float(i);  // fields unknown to Hana are not touched
        wanted[std::size_t(i)].last = bfloat16(float(2 * i));
    }
    std::swap(wanted[5], wanted[6]);
    std::swap(wanted[5].hidden, wanted[6].hidden);
    std::swap(wanted[5].last, wanted[6].last);
    const auto got = b.download();
    for (std::size_t i = 0; i < 8; ++i) {
        INFO(i);
        CHECK(equal(got[i], wanted[i]));
    }
}

TEST_CASE("an element's address is computed in 64 bits, once for its fields") {
    const auto k = kernel("far", params("b"), [](InOut<Body> b) {
        u32 i = global_id().x;
        b[i][&Body::inner] = Inner{1, 2};
    });
    const std::string ptx = compile(k.ast(), {}).ptx;
    CHECK_THAT(ptx, contains("mul.wide.u32 %d1, %r0, 40;\n    add.u64 %d0, %d0, %d1;\n    st.global.u8 [%d0+8], 1;\n"
                             "    st.global.f64 [%d0+16], 0d4000000000000000;\n"));
    static_assert(sizeof(Body) == 40);
}

TEST_CASE("atomics change fields of structs in memory") {
    const auto k = kernel("count", params("b"), [](InOut<Affine> b) { atomic_add(b[1][&Affine::n], 2); });
    const Device device = emulator();
    auto b = device.upload(std::vector<Affine>(2));
    device.launch(k, grid(32, 32), b);
    CHECK(b.download()[1].n == 64);
}

struct Pair {
    f32 x, y;
};
Pair sum(const Pair& a, const Pair& b) { return {a.x + b.x, a.y + b.y}; }

TEST_CASE("structs of variables are copied, assigned, and kept in registers") {
    const auto k = kernel("pairs", params("y"), [](InOut<float> y) {
        Pair a{y[0], y[1]}, b = a, c;
        if_(y[0] > 0, [&] { c = a; }).else_([&] { c = Pair{7, 8}; });
        b.x += 10;
        a = b;
        Regs<Pair, 3> r(c);
        r[1] = sum(a, r[0]);
        r[2] = r[1];
        for (auto i : range(2)) r[2] = sum(r[2], Pair{cast<f32>(i), 1});
        y[0] = a.x, y[1] = a.y, y[2] = c.x, y[3] = r[1].x, y[4] = r[2].x, y[5] = r[2].y;
    });
    const Device device = emulator();
    auto y = device.upload(std::vector<float>{1, 2, 0, 0, 0, 0});
    device.launch(k, grid(1, 1), y);
    CHECK(y.download() == std::vector<float>{11, 2, 1, 12, 13, 6});
}

// ---- buffers as fields

struct Blas {
    BOOST_HANA_DEFINE_STRUCT(Blas, (float, a), (BufferSlice<const float>, x), (BufferSlice<float>, y),
                             (BufferSlice<const Inner>, inner), (std::uint32_t, n));
};
const auto blas = kernel("blas", params("p"), [](Struct<Blas> p) {
    In<float> x = p[&Blas::x];
    auto y = p[&Blas::y];
    for (auto i : grid_stride(p[&Blas::n]))
        y[i] = p[&Blas::a] * x[i] + y[i] + cast<f32>(p[&Blas::inner][i][&Inner::weight]);
});

TEST_CASE("buffers are fields of a struct parameter") {
    CHECK_THAT(
        compile(blas.ast(), {}).ptx,
        contains("(\n    .param .f32 p_a,\n    .param .u64 p_x,\n    .param .u64 p_y,\n    .param .u64 p_inner,\n"
                 "    .param .u32 p_n\n)"));
    const Device device = emulator();
    const auto x = device.upload(std::vector<float>{1, 2, 3});
    auto y = device.upload(std::vector<float>{10, 20, 30, 40});
    const auto inner = device.upload(std::vector<Inner>{{1, 0.5}, {2, 0.25}});
    device.launch(blas, grid(2, 32), Blas{2, x, y.slice(1, 3), inner, 2});
    CHECK(y.download() == std::vector<float>{10, 22.5, 34.25, 40});
    CHECK_THAT(message_of([&] {
                   device.launch(blas, grid(2, 32), Blas{2, y.slice(0, 2), y, inner, 2});
               }),
               contains("'p_x' (in f32[]) and 'p_y' (inout f32[]) are the same memory"));
    CHECK_THAT(message_of([&] {
                   device.launch(blas, grid(2, 32), Blas{2, x, {}, inner, 2});
               }),
               contains("the buffer of 'p_y' was moved from, or is an empty slice"));
}

TEST_CASE("a slice of a freed buffer is an error wherever it is used") {
    const Device device = emulator();
    const auto x = device.upload(std::vector<float>{1, 2, 3});
    const auto inner = device.upload(std::vector<Inner>(3));
    BufferSlice<float> gone;
    CHECK_THAT(message_of([&] { gone.slice(0, 0); }), contains("a slice of no buffer is used"));
    {
        Buffer<float> y = device.buffer<float>(3);
        gone = y;
        CHECK(gone.size() == 3);
    }
    const auto freed = contains("a slice or a view of a buffer that has been freed is used");
    CHECK_THAT(message_of([&] {
                   device.launch(blas, grid(2, 32), Blas{2, x, gone, inner, 2});
               }),
               contains("the buffer of 'p_y' has been freed"));
    CHECK_THAT(message_of([&] { gone.download(); }), freed);
    CHECK_THAT(message_of([&] { gone.upload(std::vector<float>{1}); }), freed);
    CHECK_THAT(message_of([&] { gone.slice(0, 1); }), freed);
    CHECK_THAT(message_of([&] { gone.view(1, 1); }), freed);
    const auto copy = kernel("copy", params("x", "y"), [](In<float> x, Out<float> y) { y[0] = x[0]; });
    const std::string message = message_of([&] { device.launch(copy, grid(1, 1), x, gone); });
    CHECK_THAT(message, contains("the buffer of 'y' has been freed"));
    CHECK_THAT(message, contains("struct_test.cpp"));
}

}  // namespace
}  // namespace ikat::tests
