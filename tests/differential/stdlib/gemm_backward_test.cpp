// SPDX-License-Identifier: Apache-2.0
// The gradients of products: within the bound of sums in f32 of what plain loops in double give, for all orders and
// types, for matrices with gaps, for none, added to what was there; the same bits in every order of the warps.
#include <cmath>
#include <limits>

#include "stdlib/backward/gemm_backward.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace gemm_backward {

using namespace stdlib;
using runtime::Device;
using enum MatrixOrder;
enum class Of : std::uint8_t { a, b };

/// A product C = A B of so many matrices.
struct Shape {
    std::uint32_t m, n, k, matrices = 1, gap = 0;
};

/// Matrices of random numbers, of so many rows and columns as they are stored.
template <class T>
struct Matrices {
    Matrices(const Device& device, const Shape& of, std::uint32_t r, std::uint32_t c, MatrixOrder order,
             std::uint32_t seed)
        : rows(order == Rows ? r : c),
          columns(order == Rows ? c : r),
          order(order),
          pitch(columns + of.gap),
          elements(random_elements<T>(std::size_t(of.matrices) * rows * pitch, seed)),
          buffer(device.upload(elements, "matrix")),
          matrices(of.matrices) {}

    std::uint32_t rows, columns;
    MatrixOrder order;
    std::uint32_t pitch;
    std::vector<T> elements;
    runtime::Buffer<T> buffer;
    std::uint32_t matrices;

    auto view() { return buffer.view(matrices, rows, columns).pitched(std::uint64_t(rows) * pitch, pitch); }
    std::size_t at(std::uint32_t p, std::uint32_t i, std::uint32_t j) const {
        return (std::size_t(p) * rows + (order == Rows ? i : j)) * pitch + (order == Rows ? j : i);
    }
    double operator()(std::uint32_t p, std::uint32_t i, std::uint32_t j) const {
        return double(float(elements[at(p, i, j)]));
    }
};

/// What a gradient of To from factors of T is, and whether it is within its bound.
template <class T, class To>
struct Gradient {
    Gradient(const Device& device, Of of, const Shape& shape, GemmBackwardOptions with)
        : shape(shape),
          of(of),
          with(with),
          left(make_left(device)),
          right(make_right(device)),
          made(device, shape, of == Of::a ? shape.m : shape.k, of == Of::a ? shape.k : shape.n,
               of == Of::a ? with.a : with.b, 3) {}

    Shape shape;
    Of of;
    GemmBackwardOptions with;
    Matrices<T> left, right;  // dC and B, or A and dC
    Matrices<To> made;

    Matrices<T> make_left(const Device& device) const {
        return of == Of::a ? Matrices<T>(device, shape, shape.m, shape.n, Rows, 1)
                           : Matrices<T>(device, shape, shape.m, shape.k, with.a, 1);
    }
    Matrices<T> make_right(const Device& device) const {
        return of == Of::a ? Matrices<T>(device, shape, shape.k, shape.n, with.b, 2)
                           : Matrices<T>(device, shape, shape.m, shape.n, Rows, 2);
    }
    std::vector<To> run(const Device& device) {
        made.buffer.upload(made.elements);
        (of == Of::a ? gemm_backward_a : gemm_backward_b)(device, left.view(), right.view(), made.view(), with);
        return made.buffer.download();
    }

    /// Each sum has as many roundings as terms, and some for the levels of a tree; tf32 cuts 13 bits off each factor.
    void check(const std::vector<To>& got) const {
        const std::uint32_t rows = of == Of::a ? shape.m : shape.k, columns = of == Of::a ? shape.k : shape.n;
        const std::uint32_t terms = of == Of::a ? shape.n : shape.m;
        const bool is_cut = std::is_same_v<T, float> && with.floats == FloatProduct::tf32;
        std::vector<bool> is_checked(got.size());
        double worst = 0;
        for (std::uint32_t p = 0; p < shape.matrices; ++p)
            for (std::uint32_t i = 0; i < rows; ++i)
                for (std::uint32_t j = 0; j < columns; ++j) {
                    double sum = 0, magnitude = 0;
                    for (std::uint32_t l = 0; l < terms; ++l) {
                        const double x = of == Of::a ? left(p, i, l) : left(p, l, i);
                        const double y = of == Of::a ? right(p, j, l) : right(p, l, j);
                        sum += x * y, magnitude += std::abs(x * y);
                    }
                    const std::size_t at = made.at(p, i, j);
                    const double old = with.accumulate ? made(p, i, j) : 0;
                    const double want = double(with.alpha) * sum + old;
                    const double relative = (terms + 16) * epsilon + (is_cut ? 0x1p-9 + 0x1p-20 : 0);
                    const double in_f32 = std::abs(double(with.alpha)) * magnitude * relative +
                                          2 * epsilon * (std::abs(double(with.alpha)) * magnitude + std::abs(old));
                    const double bound = in_f32 + rounding<To> * (std::abs(want) + in_f32) + tiny<To>;
                    worst = std::max(worst, std::abs(double(float(got[at])) - want) / bound);
                    is_checked[at] = true;
                }
        CHECK(worst <= 1);
        for (std::size_t i = 0; i < got.size(); ++i)  // gaps stay
            if (!is_checked[i] && !(float(got[i]) == float(made.elements[i]))) FAIL_CHECK("a gap has changed");
    }
};

template <class T, class To>
void check(const Device& device, const Shape& shape, const GemmBackwardOptions& with) {
    for (const Of of : {Of::a, Of::b}) {
        INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k << ", matrices " << shape.matrices << ", gap "
                  << shape.gap << ", orders " << int(with.a) << int(with.b) << ", accumulate " << with.accumulate
                  << ", of " << int(of) << ", bytes " << sizeof(T));
        Gradient<T, To> gradient(device, of, shape, with);
        gradient.check(gradient.run(device));
    }
}

TEST_CASE("gradients of products: all types and orders") {
    const Device device = open_device();
    for (const MatrixOrder a : {Rows, Columns})
        for (const MatrixOrder b : {Rows, Columns}) {
            const Shape shape{21, 24, 40, 2};
            const GemmBackwardOptions with{.a = a, .b = b, .alpha = -0.75f, .accumulate = a == b};
            GemmBackwardOptions tf32 = with;
            tf32.floats = FloatProduct::tf32;
            check<float, float>(device, shape, with);
            check<float, float>(device, shape, tf32);
            check<half, half>(device, shape, with);
            check<bfloat16, bfloat16>(device, shape, with);
        }
}

TEST_CASE("gradients of products: f32 from 16-bit factors, added to what is there") {
    const Device device = open_device();
    const GemmBackwardOptions with{.b = Columns, .accumulate = true};
    check<half, float>(device, {17, 33, 9, 1, 3}, with);
    check<bfloat16, float>(device, {40, 16, 24, 3}, with);
}

TEST_CASE("gradients of products: tiles, tails and gaps of f32") {
    const Device device = open_device();
    for (const Shape& shape : {Shape{65, 63, 66}, {1, 1, 1}, {130, 3, 5, 1, 2}, {3, 70, 130}, {1, 100, 7, 3, 5}})
        check<float, float>(device, shape, {.a = Columns, .accumulate = true});
}

TEST_CASE("gradients of products: nothing, and sums of nothing") {
    const Device device = open_device();
    for (const bool accumulate : {false, true})
        for (const Shape& shape : {Shape{0, 4, 5}, {4, 0, 5}, {4, 5, 0}, {4, 5, 6, 0}}) {
            check<float, float>(device, shape, {.accumulate = accumulate});
            check<half, half>(device, shape, {.accumulate = accumulate});
        }
}

TEST_CASE("gradients of products: infinities and NaNs reach their rows and columns alone") {
    const Device device = open_device();
    const std::uint32_t m = 5, n = 6, k = 7;
    std::vector<float> dC(m * n, 1);
    dC[2 * n + 1] = std::numeric_limits<float>::infinity(), dC[4 * n + 3] = std::numeric_limits<float>::quiet_NaN();
    auto given = device.upload(dC, "dC"), B = device.upload(std::vector<float>(k * n, 2), "B");
    // What is not read may be a NaN.
    auto dA = device.upload(std::vector<float>(m * k, std::numeric_limits<float>::quiet_NaN()), "dA");
    gemm_backward_a(device, given.view(m, n), B.view(k, n), dA.view(m, k));
    const std::vector<float> got = dA.download();
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < k; ++j) {
            const float x = got[i * k + j];
            CHECK((i == 2 ? std::isinf(x) : i == 4 ? std::isnan(x) : x == 2 * n));
        }
}

TEST_CASE("gradients of products: the same bits in every order of the warps") {
    std::vector<std::vector<float>> all;
    std::vector<Device> devices{open_device({.threads = 1, .check = "strict,races", .schedules = 4})};
    for (const char* seed : {"0", "1", "2", "3"}) devices.push_back(open_device({.schedule = seed}));
    for (const Device& device : devices) {
        const GemmBackwardOptions with{.accumulate = true, .schedule = GemmSchedule::split_k, .parts = 2};
        Gradient<half, float> of_halves(device, Of::b, {200, 33, 20}, with);
        Gradient<float, float> of_floats(device, Of::a, {70, 90, 65}, with);
        all.push_back(of_halves.run(device));
        const std::vector<float> more = of_floats.run(device);
        all.back().insert(all.back().end(), more.begin(), more.end());
        CHECK(all.back() == all.front());
    }
}

TEST_CASE("gemm_f32: large blocks have the bits of small ones, and of gemm") {
    const Device device = open_device();
    const std::uint32_t m = 130, n = 136, k = 21;
    auto A = device.upload(random_elements<float>(m * k, 1), "A"),
         B = device.upload(random_elements<float>(k * n, 2), "B");
    std::vector<std::vector<float>> all;
    auto C = device.buffer<float>(m * n, "C");
    gemm(device, A.view(m, k), B.view(k, n), C.view(m, n));
    const std::vector<float> want = C.download();
    for (const GemmBlock block : {GemmBlock::small, GemmBlock::large}) {
        C.upload(std::vector<float>(m * n, std::numeric_limits<float>::quiet_NaN()));
        gemm_f32(device, A.view(m, k), B.view(k, n), C.view(m, n), {.block = block});
        CHECK(C.download() == want);
    }
}

TEST_CASE("gradients of products: mistakes") {
    const Device device = open_device();
    const std::vector<float> ones(100, 1);
    auto x = device.upload(ones, "x"), y = device.upload(ones, "y"), z = device.buffer<float>(100, "z");
    auto h = device.upload(std::vector<half>(100, half(1.0f)), "h");
    const auto message = [&](auto&& dC, auto&& B, auto&& dA, GemmBackwardOptions with = {}) {
        return tests::message_of([&] { gemm_backward_a(device, dC, B, dA, with); });
    };
    CHECK(message(x.view(4, 5), y.view(6, 5), z.view(4, 6)).empty());
    CHECK(message(x.view(4, 5), y.view(5, 6), z.view(4, 6)).contains("'B' is 5 x 6, and 'dC' is 4 x 5"));
    CHECK(message(x.view(4, 5), y.view(6, 5), z.view(5, 6)).contains("'dA' is 5 x 6, and 'dC' is 4 x 5"));
    CHECK(message(x.view(4, 5), y.view(6, 5), z.view(4, 7)).contains("'dA' has k = 7, 'B' has 6"));
    CHECK(message(x.view(4, 5), h.view(6, 5), z.view(4, 6)).contains("the factors have elements of f32 and of f16"));
    CHECK(message(x.view(4, 5), y.view(6, 5), h.view(4, 6)).contains("the gradient has elements of f16"));
    CHECK(message(x.view(4, 5), y.view(6, 5), x.view(4, 6)).contains("overlap"));
    CHECK(message(x, y.view(6, 5), z.view(4, 6)).contains("'B' has 2 dimensions, 'dC' 1"));
    CHECK(message(x.view(4, 5), y.view(6, 5), z.view(4, 6), {.a = MatrixOrder(2)}).contains("'a'"));
}

}  // namespace gemm_backward
}  // namespace
}  // namespace ikat::test
