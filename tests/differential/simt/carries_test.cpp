// SPDX-License-Identifier: Apache-2.0
// Multi-word numbers: chains of steps that are adjacent, interleaved, or separated by stores or loops.
#include <array>
#include <random>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;
using u64s = std::vector<std::uint64_t>;

const auto long_sums = kernel("long_sums", params("x"), [](InOut<std::uint64_t> x) {
    u32 i = thread_id().x;
    u64 a0 = x[4 * i], a1 = x[4 * i + 1], b0 = x[4 * i + 2], b1 = x[4 * i + 3];
    auto low = add_carry(a0, b0);
    auto high = add_carry(a1, b1, low.carry);
    auto less = sub_borrow(a0, b0);
    auto lowest = sub_borrow(a1, b1, less.carry);
    x[4 * i] = low.value;
    x[4 * i + 1] = high.value;
    x[4 * i + 2] = less.value;
    x[4 * i + 3] = lowest.value;
});

const auto short_sums = kernel("short_sums", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x, a = x[2 * i], b = x[2 * i + 1];
    auto sum = add_carry(a, b, true);
    auto rest = sub_borrow(a, b, a > 7);
    x[64 + 4 * i] = sum.value;
    x[65 + 4 * i] = select(sum.carry, 1u, 0u);
    x[66 + 4 * i] = rest.value;
    x[67 + 4 * i] = select(rest.carry, 1u, 0u);
});

TEST_CASE("sums that carry") {
    const std::uint64_t ends[] = {0, 1, ~std::uint64_t{0}, std::uint64_t{1} << 63, 0x123456789abcdef0};
    u64s x;
    for (std::uint32_t i = 0; i < 32; ++i)
        for (std::uint32_t k = 0; k < 4; ++k) x.push_back(ends[(i * (k + 1) + k) % 5]);
    const u64s got = run(long_sums, 1, 32, x);
    for (std::size_t i = 0; i < 32; ++i) {
        using Wide = unsigned __int128;
        const Wide a = Wide(x[4 * i + 1]) << 64 | x[4 * i], b = Wide(x[4 * i + 3]) << 64 | x[4 * i + 2];
        CHECK(got[4 * i] == std::uint64_t(a + b));
        CHECK(got[4 * i + 1] == std::uint64_t((a + b) >> 64));
        CHECK(got[4 * i + 2] == std::uint64_t(a - b));
        CHECK(got[4 * i + 3] == std::uint64_t((a - b) >> 64));
    }
    u32s y(64 + 128);
    for (std::uint32_t i = 0; i < 64; ++i) y[i] = std::uint32_t(ends[i * 7 % 5] >> (i % 3));
    const u32s sums = run(short_sums, 1, 32, y);
    for (std::size_t i = 0; i < 32; ++i) {
        const std::uint64_t a = y[2 * i], b = y[2 * i + 1];
        CHECK(sums[64 + 4 * i] == std::uint32_t(a + b + 1));
        CHECK(sums[65 + 4 * i] == (a + b + 1) >> 32);
        CHECK(sums[66 + 4 * i] == std::uint32_t(a - b - (a > 7)));
        CHECK(sums[67 + 4 * i] == (a < b + (a > 7) ? 1 : 0));
    }
}

// Eight words of a and b, then of the sum and of the difference of b and the sum. The two chains are interleaved.
const auto eight_words = kernel("eight_words", params("x"), [](InOut<std::uint32_t> x) {
    u32 first = 32 * thread_id().x;
    Regs<u32, 8> a, b, sum, rest;
    for (int k = 0; k < 8; ++k) a[k] = x[first + k], b[k] = x[first + 8 + k];
    pred carry = false, borrow = false;
    for (int k = 0; k < 8; ++k) {
        auto up = add_carry(a[k], b[k], carry);
        auto down = sub_borrow(b[k], up.value, borrow);
        sum[k] = up.value, rest[k] = down.value;
        carry = up.carry, borrow = down.carry;
    }
    for (int k = 0; k < 8; ++k) x[first + 16 + k] = sum[k], x[first + 24 + k] = rest[k];
});

// The same in a device loop, which stores each word before it loads the next.
const auto word_by_word = kernel("word_by_word", params("x"), [](InOut<std::uint32_t> x) {
    u32 first = 32 * thread_id().x;
    pred carry = false, borrow = false;
    for (auto k : range(8)) {
        auto up = add_carry(x[first + k], x[first + 8 + k], carry);
        auto down = sub_borrow(x[first + 8 + k], up.value, borrow);
        x[first + 16 + k] = up.value, x[first + 24 + k] = down.value;
        carry = up.carry, borrow = down.carry;
    }
});

u32s random_words(std::size_t count) {
    std::mt19937 random(7);
    u32s out(count);
    for (std::uint32_t& word : out) word = random() % 3 == 0 ? 0 : random() % 3 == 0 ? ~0u : std::uint32_t(random());
    return out;
}

TEST_CASE("eight words, two chains at once") {
    const u32s x = random_words(32 * 32);
    const u32s together = run(eight_words, 1, 32, x), apart = run(word_by_word, 1, 32, x);
    CHECK(together == apart);
    for (std::size_t first = 0; first < x.size(); first += 32) {
        std::uint64_t carry = 0, borrow = 0;
        for (std::size_t k = first; k < first + 8; ++k) {
            const std::uint64_t sum = std::uint64_t(x[k]) + x[k + 8] + carry;
            const std::uint64_t rest = std::uint64_t(x[k + 8]) - std::uint32_t(sum) - borrow;
            CHECK(together[k + 16] == std::uint32_t(sum));
            CHECK(together[k + 24] == std::uint32_t(rest));
            carry = sum >> 32, borrow = rest >> 63;
        }
    }
    check_assembled(eight_words, 75);
    check_assembled(word_by_word, 75);
}

// Steps of any kind on earlier values: sums from other chains, carries that two steps use, or none.
struct Step {
    bool adds, wide;
    std::size_t a, b, carry;
};
std::vector<Step> random_steps(std::uint32_t seed, std::size_t inputs, std::size_t count) {
    std::mt19937 random(seed);
    std::vector<Step> steps;
    const bool one_kind = random() % 2;
    for (std::size_t i = 0; i < count; ++i) {
        const auto any = [&](std::size_t last) { return last - 1 - std::min<std::size_t>(random() % 7, last - 1); };
        const bool follows = i > 0 && random() % 4 != 0;
        steps.push_back({one_kind || random() % 2, !one_kind && random() % 2,
                         random() % 3 ? random() % inputs : any(inputs + i), any(inputs + i),
                         follows ? any(i) : count});
    }
    return steps;
}
constexpr std::size_t inputs = 6, max_steps = 40;

/// Whether a carry is checked: one that no step uses. (Every number is checked.)
bool is_last(const std::vector<Step>& steps, std::size_t carry) {
    return std::ranges::find(steps, carry, &Step::carry) == steps.end();
}

auto steps_kernel(const std::vector<Step>& steps) {
    return kernel("steps", params("x", "y"), [steps](In<std::uint64_t> x, Out<std::uint64_t> y) {
        std::vector<u64> numbers;
        std::vector<pred> carries;
        for (std::size_t i = 0; i < inputs; ++i) numbers.emplace_back(x[std::uint32_t(i)]);
        for (const Step& step : steps) {
            const u64 &a = numbers[step.a], &b = numbers[step.b];
            const pred carry = step.carry < carries.size() ? carries[step.carry] : pred(false);
            const auto take = [&](const auto& result) {
                numbers.emplace_back(cast<u64>(result.value));
                carries.emplace_back(result.carry);
            };
            const u32 low = cast<u32>(a), other = cast<u32>(b);
            if (step.wide)
                step.adds ? take(add_carry(a, b, carry)) : take(sub_borrow(a, b, carry));
            else
                step.adds ? take(add_carry(low, other, carry)) : take(sub_borrow(low, other, carry));
        }
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const u64 number = numbers[inputs + i];
            y[std::uint32_t(i)] = is_last(steps, i) ? number ^ cast<u64>(select(carries[i], 1u, 0u)) << 40 : number;
        }
    });
}

u64s expected_steps(const std::vector<Step>& steps, u64s numbers) {
    u64s carries, out;
    for (const Step& step : steps) {
        using Wide = unsigned __int128;
        const std::uint64_t mask = step.wide ? ~std::uint64_t{0} : 0xffffffff;
        const Wide a = numbers[step.a] & mask, b = numbers[step.b] & mask;
        const Wide carry = step.carry < carries.size() ? carries[step.carry] : 0;
        const Wide all = step.adds ? a + b + carry : a - b - carry;
        numbers.push_back(std::uint64_t(all) & mask);
        carries.push_back(std::uint64_t(all >> (step.wide ? 64 : 32)) & 1);
        out.push_back(numbers.back() ^ (is_last(steps, out.size()) ? carries.back() << 40 : 0));
    }
    return out;
}

TEST_CASE("steps in any order") {
    const u64s ends{0, 1, ~std::uint64_t{0}, 0xffffffff, 0x123456789abcdef0, std::uint64_t{1} << 63};
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        const auto steps = random_steps(seed, inputs, 4 + seed % (max_steps - 4));
        const auto x = simt_device().upload(ends);
        auto y = simt_device().buffer<std::uint64_t>(steps.size());
        simt_device().launch(steps_kernel(steps), runtime::grid(1, 1), x, y);
        INFO("seed " << seed);
        CHECK(y.download() == expected_steps(steps, ends));
    }
}

}  // namespace
}  // namespace ikat::test
