// SPDX-License-Identifier: Apache-2.0
// Indices that grow with the counter of a loop, and may wrap on the way, compared with the host: they are modulo 2^32,
// however many rounds the compiler makes at once, and whatever it makes of the addresses.
#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t elements = 4096;

struct Indices {
    std::uint32_t begin, end, base, factor;
};

/// What the index of x is, for the device and the host.
constexpr auto sums = [](const auto& i, const auto& base, const auto&) { return base + i; };
constexpr auto products = [](const auto& i, const auto& base, const auto& factor) { return base + i * factor; };
constexpr auto shifted = [](const auto& i, const auto& base, const auto& factor) { return (i + base) * factor + 3u; };
constexpr auto fixed = [](const auto& i, const auto& base, const auto&) { return i * 5u + base - 7u; };
constexpr auto differences = [](const auto& i, const auto& base, const auto& factor) { return base - i * factor; };

template <std::uint32_t step, unsigned rounds>
auto walk(auto&& index) {
    return kernel("walk", params("x", "y", "begin", "end", "base", "factor"),
                  [index](In<std::uint32_t> x, Out<std::uint32_t> y, u32 begin, u32 end, u32 base, u32 factor) {
                      u32 t = thread_id().x, sum = 0;
                      for (auto i : range(begin + t, end, step).unroll(rounds)) {
                          u32 at = index(i, base, factor);
                          sum = sum * 31 + x[at];
                      }
                      y[t] = sum;
                  });
}

template <std::uint32_t step, unsigned rounds>
void check(auto&& index, const std::vector<Indices>& cases) {
    std::vector<std::uint32_t> values(elements);
    for (std::uint32_t i = 0; i < elements; ++i) values[i] = i * 2654435761u ^ i;
    const auto x = simt_device().upload(values, "x");
    auto y = simt_device().buffer<std::uint32_t>(32, "y");
    const auto walked = walk<step, rounds>(index);
    for (const Indices& it : cases) {
        simt_device().launch(walked, runtime::Grid{{1}, {32}}, x, y, it.begin, it.end, it.base, it.factor);
        const auto got = y.download();
        for (std::uint32_t t = 0; t < 32; ++t) {
            std::uint32_t sum = 0;
            for (std::uint64_t i = it.begin + t; i < it.end; i += step)
                sum = sum * 31 + values.at(index(std::uint32_t(i), it.base, it.factor));
            INFO(it.begin << " to " << it.end << " by " << step << ", base " << it.base << ", factor " << it.factor);
            CHECK(got[t] == sum);
        }
    }
}

void check_steps(auto&& index, const std::vector<Indices>& cases) {
    check<1, 0>(index, cases);
    check<7, 0>(index, cases);
    check<64, 0>(index, cases);
    check<1, 1>(index, cases);
    check<3, 4>(index, cases);
}

TEST_CASE("an index that wraps in a loop is taken modulo 2^32") {
    constexpr std::uint32_t top = 0xffffffff;
    check_steps(sums, {{0, 500, 7, 0}, {16, 700, top - 15, 0}, {top - 300, top, 301, 0}, {top - 300, top, 1000, 0}});
    check_steps(products, {{0, 100, 5, 9},
                           {10, 120, top, 1},

                           {0, 400, 3000, top},
                           {5, 5, 0, 1},
                           {40, 200, 0u - 40 * 17, 17}});
    check_steps(shifted, {{0, 100, 5, 9}, {100, 300, 0u - 100, 17}, {top - 99, top, 100, 11}});
    check_steps(fixed, {{0, 500, 7, 0}, {2, 300, 0u - 3, 0}, {0, 100, 1000, 0}});
    check_steps(differences, {{0, 500, 600, 1}, {0, 100, 1000, 3}, {0, 300, 5, 0u - 2}});
}

}  // namespace
}  // namespace ikat::test
