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
constexpr auto scaled = [](const auto& i, const auto& base, const auto&) { return (i << 3u) + base; };
constexpr auto both = [](const auto& i, const auto& base, const auto& factor) { return (base - i * factor) * 3u + i; };
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
    check_steps(scaled, {{0, 400, 7, 0}, {20, 300, 0u - 160, 0}, {0, 100, 1000, 0}});
    check_steps(both, {{0, 500, 600, 1}, {0, 100, 1000, 3}, {0, 300, 5, 0u - 2}});
    check_steps(differences, {{0, 500, 600, 1}, {0, 100, 1000, 3}, {0, 300, 5, 0u - 2}});
}

TEST_CASE("two indices of one array grow by different factors") {
    static constexpr std::uint32_t rounds = 100;
    const auto two = kernel("two", params("x", "y", "base", "first", "second"),
                            [](In<std::uint32_t> x, Out<std::uint32_t> y, u32 base, u32 first, u32 second) {
                                u32 sum = 0;
                                for (auto i : range(rounds)) {
                                    sum = sum * 31 + x[base + i * first];
                                    sum = sum * 31 + x[base + i * second];
                                }
                                y[0u] = sum;
                            });
    std::vector<std::uint32_t> values(elements);
    for (std::uint32_t i = 0; i < elements; ++i) values[i] = i * 2654435761u ^ i;
    const auto x = simt_device().upload(values, "x");
    auto y = simt_device().buffer<std::uint32_t>(1, "y");
    simt_device().launch(two, runtime::Grid{{1}, {1}}, x, y, 7u, 5u, 11u);
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < rounds; ++i) sum = (sum * 31 + values[7 + i * 5]) * 31 + values[7 + i * 11];
    CHECK(y.download()[0] == sum);
}

// A range of the language ends a step before the highest number; a loop written as IR may end there.
TEST_CASE("the last counter of an unrolled loop is the highest number of its type") {
    const char* const text = R"(kernel @top(%y: inout u32*) {
^0:
  %y = param.u64 %y
  %first = load.u32 global [%y]
  %limit = load.u32 global [%y+4]
  %zero = const.u32 0
  %step = const.u32 3
  %factor = const.u32 31
  %any = lt.u32 %zero, %limit
  branch %any, ^1(%first, %zero), ^2(%zero)
^1(%i: u32, %sum: u32):
  %scaled = mul.u32 %sum, %factor
  %so_far = add.u32 %scaled, %i
  %more = lt.u32 %i, %limit
  %next = add.u32 %i, %step
  branch %more, ^1(%next, %so_far), ^2(%so_far) unroll 4
^2(%all: u32):
  store.u32 global [%y], %all
  return
})";
    constexpr std::uint32_t top = 0xffffffff;
    for (std::uint32_t rounds = 1; rounds < 20; ++rounds) {
        std::uint32_t sum = 0;
        for (std::uint32_t left = rounds; left-- > 0;) sum = sum * 31 + (top - left * 3);
        INFO(rounds);
        CHECK(run_ir(text, {top - (rounds - 1) * 3, top})[0] == sum);
    }
}

}  // namespace
}  // namespace ikat::test
