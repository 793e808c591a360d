// SPDX-License-Identifier: Apache-2.0
// Reductions along dimensions: every combination of axes of views of any strides against double, special values, the
// same bits in every order of the warps, what they read, by names.
#include <cmath>
#include <limits>
#include <numeric>

#include "stdlib/reduction/axes.hpp"
#include "stdlib/reference/reduction.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {
namespace axes {

using stdlib::Reduction;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

std::vector<Reduction> reductions() {
    std::vector<Reduction> out;
    for (std::size_t i = 0; i < stdlib::reduction_count; ++i) out.push_back(Reduction(i));
    return out;
}
bool is_of_bits(Reduction what) { return what == Reduction::any || what == Reduction::all; }
bool is_argument(Reduction what) { return what == Reduction::argmax || what == Reduction::argmin; }

std::uint64_t product(const Extents& extents) {
    return std::accumulate(extents.begin(), extents.end(), std::uint64_t{1}, std::multiplies());
}
/// The index of each dimension of element i.
Extents indices_of(std::uint64_t i, const Extents& extents) {
    Extents out(extents.size());
    for (std::size_t d = extents.size(); d-- > 0; i /= extents[d]) out[d] = i % extents[d];
    return out;
}

/// An array whose dimensions are in another order in memory, with gaps of an odd size, or packed.
template <class T>
struct Strided {
    TensorView view;
    std::optional<runtime::Buffer<T>> buffer;

    Strided(const runtime::Device& device, const Extents& extents, std::uint32_t place,
            const std::vector<T>& elements) {
        const std::size_t rank = extents.size();
        std::vector<std::size_t> order(rank);
        std::iota(order.begin(), order.end(), 0);
        if (place != 0) std::rotate(order.begin(), order.begin() + place % rank, order.end());
        view.type = ir::type_of<T>, view.rank = std::uint32_t(rank);
        std::uint64_t stride = 1;
        for (std::size_t d = rank; d-- > 0;) {
            view.extents[order[d]] = extents[order[d]], view.strides[order[d]] = stride;
            stride = stride * extents[order[d]] + (place > 1 ? 3 : 0);
        }
        const std::uint64_t first = place > 2 ? 1 : 0;
        std::vector<T> all(first + stride + 1, T(float(55)));
        for (std::uint64_t i = 0; i < elements.size(); ++i) all[first + place_of(i, extents)] = elements[i];
        buffer.emplace(device.upload(all));
        view.part = buffer->memory().whole().from(first * sizeof(T));
    }
    std::uint64_t place_of(std::uint64_t i, const Extents& extents) const {
        const Extents at = indices_of(i, extents);
        std::uint64_t out = 0;
        for (std::size_t d = 0; d < at.size(); ++d) out += at[d] * view.strides[d];
        return out;
    }
    std::vector<double> elements(const Extents& extents) const {
        const auto all = buffer->download();
        const std::uint64_t first = (view.part.address() - buffer->memory().whole().address()) / sizeof(T);
        std::vector<double> out;
        for (std::uint64_t i = 0; i < product(extents); ++i) {
            if constexpr (std::is_integral_v<T>)
                out.push_back(double(all[first + place_of(i, extents)]));
            else
                out.push_back(double(float(all[first + place_of(i, extents)])));
        }
        return out;
    }
};

template <class T>
std::vector<T> numbers_for(Reduction what, std::uint64_t count, std::uint32_t seed) {
    std::vector<T> out;
    // Few values: there are ties among extrema. Most bits are alike, so that all and any differ among results.
    for (const float x : random_elements<float>(count, seed, -4, 5))
        out.push_back(is_of_bits(what) ? T(float((x > 3.9f) == (what == Reduction::any)))
                                       : T(is_argument(what) ? std::floor(x) : x));
    return out;
}

struct Call {
    Reduction what;
    Extents extents;
    std::vector<int> axes;
    std::uint32_t place = 0;
    bool keeps_ones = false, unbiased = false;
};

/// The elements of each result, in the order of the results.
std::vector<std::vector<double>> elements_of_results(const Call& call, const std::vector<double>& x) {
    std::vector<bool> is_reduced(call.extents.size());
    for (const int axis : call.axes) is_reduced[std::size_t(axis)] = true;
    std::uint64_t results = 1;
    for (std::size_t d = 0; d < call.extents.size(); ++d)
        if (!is_reduced[d]) results *= call.extents[d];
    std::vector<std::vector<double>> out(results);
    for (std::uint64_t i = 0; i < x.size(); ++i) {
        const Extents at = indices_of(i, call.extents);
        std::uint64_t result = 0;
        for (std::size_t d = 0; d < at.size(); ++d)
            if (!is_reduced[d]) result = result * call.extents[d] + at[d];
        out[result].push_back(x[i]);
    }
    return out;
}
Extents extents_of_y(const Call& call) {
    Extents out;
    for (std::size_t d = 0; d < call.extents.size(); ++d) {
        const bool is_reduced = std::ranges::count(call.axes, int(d)) != 0;
        if (!is_reduced || call.keeps_ones) out.push_back(is_reduced ? 1 : call.extents[d]);
    }
    return out.empty() ? Extents{1} : out;
}

template <class T, class Y>
void check_into(const runtime::Device& device, const Call& call, const std::vector<T>& host) {
    const Strided<T> x(device, call.extents, call.place, host);
    const Extents of_y = extents_of_y(call);
    // Dimensions that follow each other in x do not in y, and the other way round.
    const std::uint32_t place_of_y = 3 - call.place;
    const Strided<Y> y(device, of_y, place_of_y, std::vector<Y>(product(of_y), Y(float(9))));
    stdlib::reduce(device, call.what, x.view, MutableTensorView(y.view), call.axes, {.unbiased = call.unbiased});
    std::vector<double> exact;
    for (const T& v : host) exact.push_back(std::is_integral_v<T> ? double(v) : double(float(v)));
    const auto of_results = elements_of_results(call, exact);
    const auto got = y.elements(of_y);
    REQUIRE(got.size() == of_results.size());
    const double unit = sizeof(Y) == 4 ? 0x1p-24 : std::is_same_v<Y, half> ? 0x1p-11 : 0x1p-8;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const auto want = stdlib::reference::reduced(call.what, of_results[i], call.unbiased);
        const double bound = want.error + (want.error == 0 ? 0 : unit * (std::abs(want.value) + want.error) + 0x1p-25);
        const bool right = got[i] == want.value || (std::isnan(got[i]) && std::isnan(want.value)) ||
                           std::abs(got[i] - want.value) <= bound;
        if (!right && wrong++ == 0)
            FAIL_CHECK(stdlib::name_of(call.what)
                       << ": result " << i << " is " << got[i] << ", not " << want.value << " +- " << bound);
    }
    if (place_of_y < 2) return;
    std::size_t changed = 0;
    for (const Y& each : y.buffer->download()) changed += float(each) != 55;
    CHECK(changed <= product(of_y));
}
template <class T>
void check_call(const runtime::Device& device, const Call& call) {
    INFO(call.extents.size() << " dimensions, " << call.extents.front() << " ... " << call.extents.back() << ", axes "
                             << call.axes.front() << " ... " << call.axes.back() << ", place " << call.place);
    const std::uint64_t count = product(call.extents);
    if (is_of_bits(call.what))
        check_into<std::uint8_t, std::uint8_t>(device, call, numbers_for<std::uint8_t>(call.what, count, 3));
    else if (is_argument(call.what))
        check_into<T, std::uint32_t>(device, call, numbers_for<T>(call.what, count, 3));
    else
        check_into<T, T>(device, call, numbers_for<T>(call.what, count, 3));
}

/// All subsets of the dimensions but none.
std::vector<std::vector<int>> subsets(std::size_t rank) {
    std::vector<std::vector<int>> out;
    for (std::uint32_t bits = 1; bits < 1u << rank; ++bits) {
        out.emplace_back();
        for (std::size_t d = 0; d < rank; ++d)
            if (bits >> d & 1) out.back().push_back(int(d));
    }
    return out;
}

/// The results of one row of these.
template <class T = float>
double of_row(const runtime::Device& device, Reduction what, const std::vector<T>& row, bool unbiased = false) {
    const auto x = device.upload(row);
    if (is_argument(what)) {
        auto y = device.buffer<std::uint32_t>(1);
        stdlib::reduce(device, what, x, y, 0);
        return double(y.download()[0]);
    }
    auto y = device.buffer<T>(1);
    stdlib::reduce(device, what, x, y, 0, {.unbiased = unbiased});
    return double(float(y.download()[0]));
}

}  // namespace axes
}  // namespace

TEMPLATE_TEST_CASE("reduce: along any dimensions of views of any strides", "", float, half, bfloat16) {
    using namespace axes;
    const runtime::Device device = open_device();
    static tests::Sample sample(4);
    for (const Extents& extents :
         {Extents{1}, Extents{7}, Extents{3, 5}, Extents{33, 40}, Extents{4, 64}, Extents{2, 3, 4}, Extents{4, 1, 65},
          Extents{2, 3, 4, 5, 2}, Extents{5, 600}, Extents{600, 5}})
        for (const auto& list : subsets(extents.size()))
            for (const Reduction what : reductions())
                for (std::uint32_t place = 0; place < 4; ++place)
                    if (sample.next() || extents.size() == 1)
                        check_call<TestType>(device, {what, extents, list, place, place % 2 != 0, place == 2});
}

TEST_CASE("reduce: long dimensions in shares, which another launch combines") {
    using namespace axes;
    const runtime::Device device = open_device();
    for (const Reduction what : reductions()) {
        check_call<half>(device, {what, {20001}, {0}});
        check_call<float>(device, {what, {3, 16400}, {1}, 3});
        check_call<bfloat16>(device, {what, {1030, 9}, {0}, 2, true, true});
        check_call<float>(device, {what, {40, 3, 30, 2}, {0, 2}, 0, false, true});
        check_call<float>(device, {what, {2, 1500}, {1}});
    }
    CHECK(stdlib::reduce_workspace(Reduction::variance, device.buffer<float>(20001), 0) != 0);
    CHECK(stdlib::reduce_workspace(Reduction::variance, device.buffer<float>(200), 0) == 0);
}

TEST_CASE("reduce: infinities, NaNs, ties and subnormal numbers") {
    using namespace axes;
    const runtime::Device device = open_device();
    for (const std::size_t n : {5u, 100u, 2000u}) {
        std::vector<float> row = random_elements<float>(n, 1);
        const auto with = [&](std::size_t at, float x, std::size_t also = 0, float y = 0) {
            std::vector<float> out = row;
            out[at] = x;
            if (also != 0) out[also] = y;
            return out;
        };
        const std::size_t last = n - 1;
        for (const Reduction what :
             {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min, Reduction::variance, Reduction::norm2})
            CHECK(std::isnan(of_row(device, what, with(last, nan))));
        CHECK(of_row(device, Reduction::argmax, with(3, nan, last, nan)) == 3);
        CHECK(of_row(device, Reduction::argmin, with(3, nan, last, -infinity)) == 3);
        CHECK(of_row(device, Reduction::max, with(2, infinity)) == double(infinity));
        CHECK(of_row(device, Reduction::min, with(2, -infinity)) == double(-infinity));
        CHECK(of_row(device, Reduction::argmax, with(1, infinity, last, infinity)) == 1);
        CHECK(of_row(device, Reduction::argmin, with(1, -7, last, -7)) == 1);
        CHECK(std::isnan(of_row(device, Reduction::sum, with(1, infinity, last, -infinity))));
        CHECK(of_row(device, Reduction::sum, with(1, infinity)) == double(infinity));
        CHECK(std::isnan(of_row(device, Reduction::variance, with(1, infinity))));
        // Equal elements have no variance, however large; all -infinity has a maximum and an index.
        for (const float equal : {1234567.8f, 1e20f, 3e38f})
            CHECK(of_row(device, Reduction::variance, std::vector<float>(n, equal)) == 0);
        CHECK(of_row(device, Reduction::variance, std::vector<float>(n, 0.1f), true) == 0);
        CHECK(of_row(device, Reduction::argmax, std::vector<float>(n, -infinity)) == 0);
        CHECK(of_row(device, Reduction::max, std::vector<float>(n, -infinity)) == double(-infinity));
        CHECK(of_row(device, Reduction::argmin, std::vector<float>(n, infinity)) == 0);
        CHECK(of_row(device, Reduction::max, std::vector<float>(n, -1e-40f)) == double(-1e-40f));
        CHECK(of_row(device, Reduction::sum, std::vector<float>(n, 1e-40f)) ==
              Approx(double(1e-40f) * double(n)).epsilon(1e-3));
        // A mean that is large beside the deviation: no cancellation of sums of squares.
        std::vector<float> far(n);
        for (std::size_t i = 0; i < n; ++i) far[i] = 10000 + float(i % 2);
        const double ones = double(n / 2), mean = ones / double(n);
        CHECK(of_row(device, Reduction::variance, far) == Approx(mean * (1 - mean)).epsilon(0.05));
    }
    CHECK(std::isnan(of_row(device, Reduction::variance, std::vector<float>{3}, true)));
    CHECK(of_row(device, Reduction::variance, std::vector<float>{3}) == 0);
    CHECK(of_row(device, Reduction::sum, std::vector<half>(100, half(1000.0f))) == double(infinity));
}

TEST_CASE("reduce: of no elements, and without results") {
    using namespace axes;
    const runtime::Device device = open_device();
    const auto none = device.buffer<float>(1);
    auto y = device.buffer<float>(3);
    const auto of_none = [&](Reduction what) {
        y.fill(7);
        stdlib::reduce(device, what, none.slice(0, 0).view(3, 0), y, 1);
        return y.download();
    };
    CHECK(of_none(Reduction::sum) == std::vector<float>(3));
    CHECK(of_none(Reduction::norm2) == std::vector<float>(3));
    for (const Reduction what : {Reduction::mean, Reduction::variance})
        for (const float each : of_none(what)) CHECK(std::isnan(each));
    CHECK_THAT(tests::message_of([&] { of_none(Reduction::max); }), Catch::Contains("reduce: the max of no elements"));
    auto bits = device.buffer<std::uint8_t>(3);
    for (const bool all : {false, true}) {
        stdlib::reduce(device, all ? Reduction::all : Reduction::any, bits.slice(0, 0).view(3, 0), bits, 1);
        CHECK(bits.download() == std::vector<std::uint8_t>(3, all));
    }
    stdlib::reduce(device, Reduction::max, none.slice(0, 0).view(0, 3), y.slice(0, 0), 1);
}

TEST_CASE("reduce: the same bits in every order, without a race") {
    using namespace axes;
    struct Case {
        Extents extents;
        int axis;
    };
    // A warp, a block, columns, and shares of both.
    for (const Case& of :
         {Case{{9, 100}, 1}, Case{{2, 1200}, 1}, Case{{100, 40}, 0}, Case{{17000}, 0}, Case{{600, 3}, 0}})
        for (const Reduction what : {Reduction::sum, Reduction::variance, Reduction::norm2, Reduction::argmin}) {
            std::vector<std::uint32_t> first;
            for (const char* seed : {"0", "1", "2", "3"}) {
                const auto device = open_device({.threads = 2, .schedule = seed, .check = "strict,registers,races"});
                const auto x = device.upload(random_elements<float>(product(of.extents), 1));
                const TensorView view(ir::Type::F32, x.memory().whole(), of.extents);
                const std::uint64_t results = product(of.extents) / of.extents[std::size_t(of.axis)];
                auto y = device.buffer<std::uint32_t>(results);
                TensorView of_y = y;
                if (!is_argument(what)) of_y.type = ir::Type::F32;
                stdlib::reduce(device, what, view, MutableTensorView(of_y), of.axis);
                const auto got = y.download();
                if (first.empty()) first = got;
                CHECK(got == first);
            }
        }
}

TEST_CASE("reduce: each element is read once, in whole sectors") {
    using namespace axes;
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .threads = 2, .traffic = &traffic});
    const auto check = [&]<class T>(T, const Extents& extents, int axis) {
        INFO(extents.size() << " dimensions, axis " << axis);
        const auto x = device.upload(random_elements<T>(product(extents), 1));
        auto y = device.buffer<T>(product(extents) / extents[std::size_t(axis)]);
        const TensorView view(ir::type_of<T>, x.memory().whole(), extents);
        Extents rest = extents;
        rest.erase(rest.begin() + axis);
        traffic.clear();
        stdlib::reduce(device, Reduction::mean, view,
                       MutableTensorView(TensorView(ir::type_of<T>, y.memory().whole(), rest)), axis);
        std::uint64_t moved = 0;
        for (const emulator::LaunchTraffic& launch : traffic)
            for (const emulator::BufferTraffic& buffer : launch.buffers)
                moved += buffer.read.moved + buffer.written.moved;
        CHECK(double(moved) <= 1.05 * double(sizeof(T) * (x.size() + y.size())));
    };
    check(float(), {64, 512}, 1);
    check(half(), {16, 2048}, 1);
    check(float(), {512, 64}, 0);
    check(half(), {300, 256}, 0);
    check(half(), {4, 100, 64}, 1);
    check(bfloat16(), {2, 65536}, 1);
}

TEST_CASE("reduce: by names") {
    const runtime::Device device = open_device();
    const auto* function = stdlib::find_function("reduce_variance");
    REQUIRE(function);
    const auto x = device.upload(std::vector<float>{1, 10, 3, 20, 5, 60});
    auto y = device.buffer<float>(2);
    stdlib::FunctionSettings settings;
    settings.set("unbiased", "1");
    const std::vector<MutableTensorView> arrays{MutableTensorView(TensorView(x.view(1, 3, 2))), y.view(1, 2)};
    function->run(device, arrays, settings);
    CHECK(y.download() == std::vector<float>{4, 700});
    for (std::size_t i = 0; i < stdlib::reduction_count; ++i)
        CHECK(stdlib::find_function("reduce_" + std::string(stdlib::name_of(stdlib::Reduction(i)))));
}

TEST_CASE("reduce: mistakes") {
    using namespace axes;
    const runtime::Device device = open_device();
    const auto x = device.upload(std::vector<float>(24), "x");
    auto y = device.buffer<float>(24, "y");
    auto words = device.buffer<std::uint32_t>(24, "words");
    const auto message = [&](Reduction what, const TensorView& x, const MutableTensorView& y, const stdlib::Axes& axes,
                             const stdlib::ReductionOptions& options = {}) {
        return tests::message_of([&] { stdlib::reduce(device, what, x, y, axes, options); });
    };
    using Catch::Contains;
    const TensorView a = x.view(2, 3, 4);
    CHECK_THAT(message(Reduction::sum, a, y, 3), Contains("reduce: axis 3 of 'x', which is 2 x 3 x 4"));
    CHECK_THAT(message(Reduction::sum, a, y, {1, -2}), Contains("axis -2 is there twice"));
    CHECK_THAT(message(Reduction::sum, a, y, stdlib::Axes(std::vector<int>{})), Contains("there are no axes"));
    CHECK_THAT(message(Reduction::sum, a, y.view(4, 6), 1),
               Contains("'y' is 4 x 6") && Contains("remains 2 x 4, or 2 x 1 x 4"));
    CHECK_THAT(message(Reduction::argmax, a, y.slice(0, 8).view(2, 4), 1), Contains("'y' has elements of f32"));
    CHECK_THAT(message(Reduction::any, a, y.slice(0, 8).view(2, 4), 1), Contains("those of any and all are u8"));
    CHECK_THAT(message(Reduction::sum, TensorView(words.view(2, 12)), y.slice(0, 2), 1),
               Contains("'x' has elements of u32"));
    CHECK_THAT(message(Reduction::sum, y.view(2, 12), y.slice(0, 2), 1), Contains("'x' (read) and 'y' (written)"));
    const auto long_row = device.buffer<float>(30000);
    auto little = device.buffer<std::uint8_t>(4);
    CHECK_THAT(message(Reduction::sum, long_row, y.slice(0, 1), 0, {.workspace = little}), Contains("reduce"));
}

}  // namespace ikat::test
