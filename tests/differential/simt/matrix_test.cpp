// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warp: each form that the language has, with exact numbers, compared with loops of the host.
// Which element is where is what the fragments say; tests/unit/emulator/matrix_test.cpp holds that against others.
#include "tests/differential/simt/matrices.hpp"
#include "tests/differential/simt/run.hpp"

#include <limits>

namespace ikat::test {
namespace {

template <class F>
using RegisterOfFragment = DeviceTypeOf<decltype(std::declval<const F&>()[0])>;

/// What D is for rows of A and columns of B, both contiguous.
template <class M>
std::vector<double> expected(const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& c,
                             auto&& product) {
    std::vector<double> out;
    for (int row = 0; row < M::m; ++row)
        for (int column = 0; column < M::n; ++column) {
            double sum = c[row * M::n + column];
            for (int k = 0; k < M::k; ++k) sum += product(a[row * M::k + k], b[column * M::k + k]);
            out.push_back(sum);
        }
    return out;
}

/// Puts one warp's elements from rows of A, columns of B and rows of C together, and back; `with` makes the product.
template <class M>
auto product_kernel(auto with) {
    using A = RegisterOfFragment<typename M::A>;
    using B = RegisterOfFragment<typename M::B>;
    using C = RegisterOfFragment<typename M::C>;
    return kernel("product", params("x", "w", "y"), [with](In<A> x, In<B> w, InOut<C> y) {
        typename M::A a;
        typename M::B b;
        typename M::C c;
        constexpr int in_a = M::A::elements_per_register, in_b = M::B::elements_per_register,
                      in_c = M::C::elements_per_register;
        for (int r = 0; r < int(M::A::size); ++r)
            a[r] = x[M::A::row(r * in_a) * (M::k / in_a) + M::A::column(r * in_a) / in_a];
        for (int r = 0; r < int(M::B::size); ++r)
            b[r] = w[M::B::column(r * in_b) * (M::k / in_b) + M::B::row(r * in_b) / in_b];
        const auto at = [&](int r) { return M::C::row(r * in_c) * (M::n / in_c) + M::C::column(r * in_c) / in_c; };
        for (int r = 0; r < int(M::C::size); ++r) c[r] = y[at(r)];
        c = with(a, b, c);
        for (int r = 0; r < int(M::C::size); ++r) y[at(r)] = c[r];
    });
}

template <class M, class T, class Sum, class T2 = T>
void check_product(const std::vector<int>& c, auto with, auto&& product, auto&& sum) {
    const auto a = random_matrix<T>(M::m * M::k), b = random_matrix<T2>(M::n * M::k);
    const auto made = product_kernel<M>(with);
    const auto x = simt_device().upload(packed<T, RegisterOfFragment<typename M::A>>(a), "x");
    const auto w = simt_device().upload(packed<T2, RegisterOfFragment<typename M::B>>(b), "w");
    auto y = simt_device().upload(packed<Sum, RegisterOfFragment<typename M::C>>(c), "y");
    const std::string ptx = compile(made.ast(), {.target = "sm_90"}).ptx;
    const std::uint64_t addresses[] = {x.address(), w.address(), y.address()};
    simt_device().launch(simt_device().load(ptx, "product"), "product", {{1}, {32}},
                         std::as_bytes(std::span(addresses)));
    std::vector<double> wanted = expected<M>(a, b, c, product);
    for (double& value : wanted) value = sum(value);
    CHECK(numbers<Sum>(y.download()) == wanted);
    if (tests::skip_without_ptxas()) return;
    const tests::PtxasReport report = tests::assemble(ptx, "sm_90");
    INFO(report.log << "\n" << ptx);
    CHECK(report.assembled);
    CHECK_FALSE(report.warned);
}

constexpr auto plain = [](const auto& a, const auto& b, const auto& c) { return mma(a, b, c); };
constexpr auto times = [](int a, int b) { return a * b; };
constexpr auto itself = [](double sum) { return sum; };

template <int m, int k, class T, class Sum, class T2 = T>
void check_form() {
    using M = Mma<m, 8, k, T, Sum, T2>;
    CAPTURE(M::form.extents().name, int(M::form.a), int(M::form.b), int(M::form.sum));
    const auto c = random_matrix<Sum>(m * 8);
    if constexpr (std::is_same_v<T, b1>)
        check_product<M, T, Sum, T2>(
            c, plain, [](int a, int b) { return a ^ b; }, itself);
    else
        check_product<M, T, Sum, T2>(c, plain, times, itself);
}

TEST_CASE("products of floats") {
    check_form<16, 8, half, float>();
    check_form<16, 8, half, half>();
    check_form<16, 16, half, float>();
    check_form<16, 16, half, half>();
    check_form<16, 8, bfloat16, float>();
    check_form<16, 16, bfloat16, float>();
    check_form<16, 4, tf32, float>();
    check_form<16, 8, tf32, float>();
    check_form<8, 4, double, double>();
    check_form<16, 4, double, double>();
    check_form<16, 8, double, double>();
    check_form<16, 16, double, double>();
    check_form<16, 16, e4m3, float, e5m2>();
    check_form<16, 16, e5m2, half>();
    check_form<16, 32, e4m3, float>();
    check_form<16, 32, e5m2, half, e4m3>();
}

TEST_CASE("products of integers and bits") {
    check_form<8, 16, std::int8_t, std::int32_t>();
    check_form<16, 16, std::uint8_t, std::int32_t, std::int8_t>();
    check_form<16, 32, std::int8_t, std::int32_t>();
    check_form<16, 32, std::int8_t, std::int32_t, std::uint8_t>();
    check_form<8, 32, s4, std::int32_t>();
    check_form<16, 32, u4, std::int32_t, s4>();
    check_form<16, 64, u4, std::int32_t>();
    check_form<8, 128, b1, std::int32_t>();
    check_form<16, 128, b1, std::int32_t>();
    check_form<16, 256, b1, std::int32_t>();
}

TEST_CASE("sums of integers wrap, or are clamped where that is asked for; bits are counted in both") {
    using M = Mma<16, 8, 32, std::int8_t, std::int32_t>;
    constexpr int max = std::numeric_limits<std::int32_t>::max();
    const std::vector<int> full(M::m * M::n, max - 3);
    check_product<M, std::int8_t, std::int32_t>(
        full, plain, times, [](double sum) { return double(std::int32_t(std::uint32_t(std::int64_t(sum)))); });
    const auto clamped = [](const auto& a, const auto& b, const auto& c) { return mma_saturating(a, b, c); };
    check_product<M, std::int8_t, std::int32_t>(full, clamped, times,
                                                [](double sum) { return std::min(sum, double(max)); });
    using Bits = Mma<16, 8, 256, b1, std::int32_t>;
    const auto both = [](const auto& a, const auto& b, const auto& c) { return mma_and(a, b, c); };
    check_product<Bits, b1, std::int32_t>(std::vector<int>(Bits::m * Bits::n, 7), both, times, itself);
}

/// Four products, by A and B in one order or the other. Of each matrix there are four, one after the other; a lane has
/// the pairs of its own product.
template <class M, class A, class B>
void check_quad_pairs() {
    using Sum = RegisterOfFragment<typename M::C>;
    CAPTURE(int(M::form.sum), int(A::layout::flags), int(B::layout::flags));
    const auto made = kernel("products", params("x", "w", "y"), [](In<half> x, In<half> w, InOut<Sum> y) {
        A a;
        B b;
        typename M::C c;
        const auto pair = [](const auto& from, int r, auto&& at) {
            Regs<f16, 2> both;
            for (int i = 0; i < 2; ++i) both[i] = from[M::product() * 32 + at(2 * r + i)];
            return pack(both[0], both[1]);
        };
        for (int r = 0; r < 2; ++r) a[r] = pair(x, r, [](int i) { return A::row(i) * M::k + A::column(i); });
        for (int r = 0; r < 2; ++r) b[r] = pair(w, r, [](int i) { return B::column(i) * M::k + B::row(i); });
        constexpr int in_c = M::C::elements_per_register;
        const auto at = [&](int r) {
            return (M::product() * 64 + M::C::row(r * in_c) * M::n + M::C::column(r * in_c)) / in_c;
        };
        for (int r = 0; r < int(M::C::size); ++r) c[r] = y[at(r)];
        c = mma(a, b, c);
        for (int r = 0; r < int(M::C::size); ++r) y[at(r)] = c[r];
    });
    const auto a = random_matrix<half>(4 * 32), b = random_matrix<half>(4 * 32), c = random_matrix<half>(4 * 64);
    const auto x = simt_device().upload(packed<half, half>(a), "x"),
               w = simt_device().upload(packed<half, half>(b), "w");
    using Element = std::conditional_t<std::is_same_v<Sum, float>, float, half>;
    auto y = simt_device().upload(packed<Element, Sum>(c), "y");
    simt_device().launch(made, runtime::Grid{{1}, {32}}, x, w, y);
    std::vector<double> wanted;
    const auto part = [](const std::vector<int>& of, int size, int i) {
        return std::vector(of.begin() + size * i, of.begin() + size * (i + 1));
    };
    for (int i = 0; i < 4; ++i)
        for (double sum : expected<M>(part(a, 32, i), part(b, 32, i), part(c, 64, i), times)) wanted.push_back(sum);
    CHECK(numbers<Element>(y.download()) == wanted);
    check_assembled(made, 75);
}
template <class Sum>
void check_quad_pairs() {
    using M = Mma<8, 8, 4, half, Sum>;
    check_quad_pairs<M, typename M::A, typename M::B>();
    check_quad_pairs<M, typename M::AByColumns, typename M::B>();
    check_quad_pairs<M, typename M::A, typename M::BByRows>();
    check_quad_pairs<M, typename M::AByColumns, typename M::BByRows>();
}

TEST_CASE("four products by the quad pairs of a warp") {
    check_quad_pairs<half>();
    check_quad_pairs<float>();
}

/// Sums that stay in registers through a loop, scaled as lanes are at its end.
const auto long_product = kernel("long_product", params("x", "w", "y", "steps"),
                                 [](In<bfloat16x2> x, In<bfloat16x2> w, Out<float> y, u32 steps) {
                                     using M = Mma<16, 8, 16, bfloat16, float>;
                                     M::C sums(0.0f);
                                     for (auto step : range(steps)) {
                                         M::A a;
                                         M::B b;
                                         for (int r = 0; r < int(M::A::size); ++r)
                                             a[r] = x[(M::A::row(2 * r) * steps + step) * 8 + M::A::column(2 * r) / 2];
                                         for (int r = 0; r < int(M::B::size); ++r)
                                             b[r] = w[(M::B::column(2 * r) * steps + step) * 8 + M::B::row(2 * r) / 2];
                                         sums = mma(a, b, sums);
                                     }
                                     M::C scaled = 0.5f * sums;
                                     for (int i = 0; i < M::C::elements; ++i)
                                         y[M::C::row(i) * 8 + M::C::column(i)] = scaled[i];
                                 });

TEST_CASE("a product of long rows") {
    const std::uint32_t steps = 5;
    const int k = 16 * int(steps);
    const auto a = random_matrix<bfloat16>(16 * k), b = random_matrix<bfloat16>(8 * k);
    const auto x = simt_device().upload(packed<bfloat16, bfloat16x2>(a), "x");
    const auto w = simt_device().upload(packed<bfloat16, bfloat16x2>(b), "w");
    auto y = simt_device().buffer<float>(16 * 8, "y");
    simt_device().launch(long_product, runtime::Grid{{1}, {32}}, x, w, y, steps);
    const auto found = y.download();
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
            int sum = 0;
            for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[column * k + i];
            CHECK(found[row * 8 + column] == 0.5f * float(sum));
        }
    check_assembled(long_product, 80);
}

/// A by rows and B by rows of k from shared memory; D's pairs are transposed, and A's first matrix as it was loaded.
const auto from_shared =
    kernel("from_shared", params("x", "w", "y", "z"), [](In<half> x, In<half> w, InOut<float> y, Out<half2> z) {
        using M = Mma<16, 8, 16, half, float>;
        Shared<half, 16, 16> a;
        Shared<half, 16, 8> b;
        u32 lane = lane_id();
        for (int i = 0; i < 8; ++i) a.flat()[i * 32 + lane] = x[i * 32 + lane];
        for (int i = 0; i < 4; ++i) b.flat()[i * 32 + lane] = w[i * 32 + lane];
        sync_warp();
        M::A rows = load_matrix<4>(a[lane % 16, lane / 16 * 8]);
        M::B columns = load_matrix_transposed<2>(b[lane % 16, 0]);
        M::C sums(0.0f);
        sums = mma(rows, columns, sums);
        for (int i = 0; i < M::C::elements; ++i) y[M::C::row(i) * 8 + M::C::column(i)] = sums[i];
        auto one = load_matrix<1>(a[lane % 8, 8]);
        z[lane] = transpose_matrix(one[0]);
    });

TEST_CASE("matrices from shared memory, and transposes") {
    const auto a = random_matrix<half>(16 * 16), b = random_matrix<half>(16 * 8);
    const auto x = simt_device().upload(packed<half, half>(a), "x");
    const auto w = simt_device().upload(packed<half, half>(b), "w");
    auto y = simt_device().upload(std::vector<float>(16 * 8), "y");
    auto z = simt_device().buffer<half2>(32, "z");
    simt_device().launch(from_shared, runtime::Grid{{1}, {32}}, x, w, y, z);
    const auto found = y.download();
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column) {
            int sum = 0;
            for (int i = 0; i < 16; ++i) sum += a[row * 16 + i] * b[i * 8 + column];
            CHECK(found[row * 8 + column] == float(sum));
        }
    const auto transposed = z.download();
    for (int lane = 0; lane < 32; ++lane) {  // lane: row lane / 4, columns 2 * (lane % 4) and the next
        const int row = lane / 4, column = 2 * (lane % 4);
        CHECK(float(transposed[lane].x) == float(a[column * 16 + 8 + row]));
        CHECK(float(transposed[lane].y) == float(a[(column + 1) * 16 + 8 + row]));
    }
    check_assembled(from_shared, 80);
}

/// Four matrices stored as they were loaded, two as their transposes, and one in 32-bit elements.
const auto to_shared = kernel("to_shared", params("x", "y"), [](In<half> x, Out<half> y) {
    Shared<half, 16, 16> a, b, c;
    Shared<float, 8, 8> d;
    u32 lane = lane_id();
    for (int i = 0; i < 8; ++i) a.flat()[i * 32 + lane] = x[i * 32 + lane];
    sync_warp();
    const auto four = load_matrix<4>(a[lane % 16, lane / 16 * 8]);
    store_matrix<4>(b[lane % 16, lane / 16 * 8], four);
    const auto two = load_matrix<2>(a[lane % 8, lane / 8 % 2 * 8]);
    store_matrix_transposed<2>(c[lane % 16, 8], two);
    store_matrix<1>(d[lane % 8, 0], cast<f32>(lane));
    sync_warp();
    for (int i = 0; i < 8; ++i) y[i * 32 + lane] = b.flat()[i * 32 + lane];
    for (int i = 0; i < 4; ++i) y[256 + i * 32 + lane] = c[lane / 8 + 4 * i, 8 + lane % 8];
    y[384 + lane] = cast<f16>(d[lane / 4, lane % 4]);
});

TEST_CASE("matrices to shared memory, with stmatrix and without") {
    const auto a = random_matrix<half>(16 * 16);
    for (const char* target : {"sm_80", "sm_90"}) {
        if (simt_device().properties().kind != runtime::DeviceKind::Emulator && target == std::string("sm_80"))
            continue;
        INFO(target);
        runtime::Device device = open_device({.target = target});
        const auto x = device.upload(packed<half, half>(a), "x");
        auto y = device.buffer<half>(416, "y");
        device.launch(to_shared, runtime::Grid{{1}, {32}}, x, y);
        const auto found = y.download();
        for (int i = 0; i < 256; ++i) CHECK(float(found[i]) == float(a[i]));
        for (int row = 0; row < 16; ++row)  // matrix row / 8 has columns 8 * (row / 8) … of rows 0 to 7, transposed
            for (int column = 0; column < 8; ++column)
                CHECK(float(found[256 + row * 8 + column]) == float(a[column * 16 + row]));
        for (int lane = 0; lane < 32; ++lane) CHECK(float(found[384 + lane]) == float(lane));
    }
    check_assembled(to_shared, 75);
}

/// Fragments of constants, which PTX takes in registers only: the sums of the rows of A, twice, and B's columns.
const auto constant_factors =
    kernel("constant_factors", params("x", "y"), [](In<std::uint32_t> x, InOut<std::int32_t> y) {
        using M = Mma<16, 8, 16, std::int8_t, std::int32_t>;
        M::A a(0x01010101u), b_of_a;
        M::B ones(0x01010101u), b(x[lane_id()]);
        b_of_a = x[lane_id()];
        M::C sums = mma(b_of_a, ones, mma(a, b, 7));
        for (int i = 0; i < M::C::elements; ++i) y[M::C::row(i) * 8 + M::C::column(i)] = sums[i];
    });

TEST_CASE("a matrix of constants") {
    std::vector<std::uint32_t> words(32);
    for (std::uint32_t i = 0; i < 32; ++i) words[i] = i;  // one byte of four: row and column i / 4 have 4 of them
    const auto x = simt_device().upload(words, "x");
    auto y = simt_device().upload(std::vector<std::int32_t>(16 * 8), "y");
    simt_device().launch(constant_factors, runtime::Grid{{1}, {32}}, x, y);
    const auto found = y.download();
    const auto sum_of = [](int quad) { return 4 * 4 * quad + 0 + 1 + 2 + 3; };
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 8; ++column)
            CHECK(found[std::size_t(row * 8 + column)] == 7 + sum_of(row % 8) + sum_of(column));
    check_assembled(constant_factors, 80);
}

template <class M>
void check_on_sm_75(const char* name) {
    const auto made = kernel(name, params("x", "y"), [](In<std::uint32_t> x, Out<std::uint32_t> y) {
        typename M::A a;
        typename M::B b;
        for (auto& one : a) one = bit_cast<DeviceTypeOf<decltype(one)>>(x[lane_id()]);
        for (auto& one : b) one = bit_cast<DeviceTypeOf<decltype(one)>>(x[lane_id() + 32]);
        typename M::C c = mma(a, b, typename M::C(0));
        y[lane_id()] = bit_cast<std::uint32_t>(c[0]);
    });
    check_assembled(made, 75);
    CHECK_THROWS_AS(compile(made.ast(), {.target = "sm_70"}), Error);
}

TEST_CASE("products that sm_75 has") {
    check_on_sm_75<Mma<8, 8, 4, half, float>>("quad_pairs");
    check_on_sm_75<Mma<16, 8, 8, half, float>>("halves");
    check_on_sm_75<Mma<8, 8, 16, std::int8_t, std::int32_t>>("bytes");
    check_on_sm_75<Mma<8, 8, 32, u4, std::int32_t>>("nibbles");
    check_on_sm_75<Mma<8, 8, 128, b1, std::int32_t>>("bits");
}

TEST_CASE("products need whole warps") {
    const auto x = simt_device().upload(std::vector<std::uint32_t>(32), "x");
    auto y = simt_device().upload(std::vector<std::int32_t>(16 * 8), "y");
    CHECK_THROWS_WITH(simt_device().launch(constant_factors, runtime::Grid{{1}, {48}}, x, y),
                      Catch::Matchers::Contains("whole warps") || Catch::Matchers::Contains("multiple of 32"));
}

}  // namespace
}  // namespace ikat::test
