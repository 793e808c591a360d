// SPDX-License-Identifier: Apache-2.0
// The quantisers of the host: the bits of GGML, blocks that come back, numbers that have no place.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/stored.hpp"
#include "stdlib/reference/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

using namespace ikat;
using namespace ikat::stdlib::stored;

namespace {

// ---- the numbers, the same everywhere: integers that are scaled by powers of two

/// An xorshift generator.
class Integers {
public:
    explicit Integers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    std::uint64_t below(std::uint64_t end) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return (state_ >> 20) % end;
    }

private:
    std::uint64_t state_;
};

enum Kind { Normal, Uniform, Constant, Zero, Outlier, Wide, Subnormal, kinds };

/// The sum of four.
float normal(Integers& next) {
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += std::int64_t(next.below(1 << 16));
    return float(sum - (1 << 17)) * 0x1p-17f;
}
float uniform(Integers& next) { return float(std::int64_t(next.below(1 << 24)) - (1 << 23)) * 0x1p-23f; }
/// A number of that exponent.
float of_exponent(Integers& next, std::uint32_t biased) {
    const auto sign = std::uint32_t(next.below(2)), mantissa = std::uint32_t(next.below(1 << 23));
    return std::bit_cast<float>(sign << 31 | biased << 23 | mantissa);
}

std::vector<float> numbers(int kind, std::size_t count) {
    Integers next(std::uint64_t(kind) + 1);
    std::vector<float> out(count);
    float constant = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 256 == 0) constant = uniform(next);
        switch (kind) {
            case Normal: out[i] = normal(next); break;
            case Uniform: out[i] = uniform(next); break;
            case Constant: out[i] = constant; break;
            case Zero: out[i] = next.below(2) ? -0.0f : 0.0f; break;
            case Outlier: out[i] = normal(next) * (next.below(64) == 0 ? 64.0f : 1.0f); break;
            case Wide: out[i] = of_exponent(next, std::uint32_t(127 - 56 + next.below(80))); break;
            case Subnormal: out[i] = of_exponent(next, 0); break;
            default: break;
        }
    }
    return out;
}

/// FNV-1a.
std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
    std::uint64_t out = 0xcbf29ce484222325u;
    for (const std::uint8_t byte : bytes) out = (out ^ byte) * 0x100000001b3u;
    return out;
}

constexpr std::size_t blocks_of_kind = 2900;  // 20 000 blocks of each format

// ---- the sums

// GGML's quantize_row_*_ref for these numbers: the sources in llama-cpp-python 0.3.16, gcc 12 -O2 -ffp-contract=off on
// x86-64. 0 where GGML has no defined bytes: it does not write q of zeros in IQ4_NL, and an exponent below 0 of MXFP4
// does not fit.
struct Expected {
    Quantised format;
    std::array<std::uint64_t, kinds> of_kind;
};
constexpr Expected expected[] = {
    {Quantised::Q4_0,
     {0x06fcfac74c8baae2u, 0x30204180bad2c298u, 0x99c29a3abde95c55u, 0x3468adbf17060445u, 0xcaa8a08fff9d2a2fu,
      0x99cde4102c98d9d4u, 0x2d0edb8c9f118c45u}},
    {Quantised::Q4_1,
     {0xc842fd964a00cba5u, 0x0a66f4ac651ac60eu, 0x98358f5f60b64a85u, 0xf112dc99194fe3e5u, 0x015f397ecdadd4dcu,
      0x4795db3f84b9fb97u, 0x372568bb5f727665u}},
    {Quantised::Q5_0,
     {0x5b7e3418f15a9ffdu, 0xaf1a686296dfae42u, 0x3fdb8c1646929515u, 0x04ac966d0c13fd75u, 0xf04a6ee1e7ec811bu,
      0x0aa183885a685f00u, 0x37bb1a17b332eb85u}},
    {Quantised::Q5_1,
     {0xa016ef11a5de1e91u, 0x70a3ab34aa8f9191u, 0x57cc9995313f21e5u, 0x254b871c09ed3625u, 0x118442b353aa19c7u,
      0xf99876ef60cad55eu, 0x73d3f8b3e46e4da5u}},
    {Quantised::Q8_0,
     {0xe86e4c79ae4041b9u, 0x084f62a0e7c3dde2u, 0x1b822e86c9e1082du, 0x50cb41b3ca627045u, 0x1e8d6772d95a7097u,
      0x9bef99f2b48d4ca5u, 0x50cb41b3ca627045u}},
    {Quantised::Q2_K,
     {0xa4691766e4c77722u, 0xd07e5c2759675edfu, 0x5bafa8453386302du, 0x4b2f23ba334c7a65u, 0x5077516f04ec65a0u,
      0x18cd322ab391a467u, 0x09d103842e4a0d52u}},
    {Quantised::Q3_K,
     {0x873066fdbee3cff6u, 0x6d66da1eb2194639u, 0x94c6aca2f65da34bu, 0xba558cf0221b7b05u, 0x047bb224825433a0u,
      0xb91a04ec535a1374u, 0xba558cf0221b7b05u}},
    {Quantised::Q4_K,
     {0xecdeb5bbbfdc1563u, 0xe9e52ddf4cb6eac2u, 0x16a0fc266465ecfau, 0x369a0395c0fef425u, 0x1174490f9565938du,
      0x0f9edcacf01f1409u, 0x369a0395c0fef425u}},
    {Quantised::Q5_K,
     {0x5acf241ea467a8a0u, 0x5ae6db2c7566b300u, 0x3196af7fece8a9deu, 0x463aa7f81b4f0625u, 0xcea3875b4acc5560u,
      0xa72b6067f22b3d59u, 0x463aa7f81b4f0625u}},
    {Quantised::Q6_K,
     {0x7e4f0bb38498eb8au, 0x07eb4afe6a6402b9u, 0xc1928284d8af1968u, 0x76a1c89b34373345u, 0x9e820b918483310du,
      0xb58b653ca95c01b1u, 0x76a1c89b34373345u}},
    {Quantised::IQ4_NL,
     {0xb0df9fe2ccf2dc1bu, 0x51d08fe7d7225b99u, 0x02a3a4992b214fadu, 0, 0xed7246292876a785u, 0xd1c1a744e572d26bu, 0}},
    {Quantised::IQ4_XS,
     {0xcf05764f3702042cu, 0x32b12359f8f4fdc8u, 0xed74416626b90745u, 0xc38f26795c84d245u, 0xe061f85eb24964bdu,
      0x18198dad9b5f1f49u, 0xc38f26795c84d245u}},
    {Quantised::MXFP4,
     {0xf8bb003cc1afa5ddu, 0xe8b4ffdb46ef214du, 0xb95f9f81d6e9ded5u, 0x2caea8f3b178f335u, 0x27714f715f7d6fa4u,
      0x58c3ed84e75059dfu, 0}},
};

}  // namespace

TEST_CASE("quantised blocks have the bits of GGML") {
    static_assert(std::size(expected) == std::size(runtime::quantised_formats));
    for (const auto& [format, of_kind] : expected)
        for (int kind = 0; kind < kinds; ++kind) {
            const auto& [name, weights, bytes] = *runtime::find_info(format);
            const auto got = quantise(format, numbers(kind, blocks_of_kind * weights));
            INFO(name << ", kind " << kind);
            REQUIRE(got.size() == blocks_of_kind * bytes);
            if (of_kind[std::size_t(kind)] != 0) CHECK(checksum(got) == of_kind[std::size_t(kind)]);
        }
}

namespace {

/// Quantises the numbers of a block, and expects it back. `number` is that of a weight with this q in this part; each
/// part of 16 weights has all of the first and the last q.
template <class Block>
void check_exact(Block block, int first, int last, auto&& number) {
    std::vector<float> x;
    Integers next(std::uint64_t(Block::format) + 100);
    for (std::uint32_t i = 0; i < runtime::find_info(Block::format)->weights; ++i) {
        const int q = i % 16 == 3 ? first : i % 16 == 9 ? last : first + int(next.below(std::uint64_t(last - first)));
        block.set(i, q);
        x.push_back(number(q, i));
    }
    INFO(runtime::find_info(Block::format)->name);
    const std::vector blocks{block};
    const auto want = bytes_of(blocks);
    CHECK(quantise(Block::format, x) == std::vector<std::uint8_t>(want.begin(), want.end()));
}

/// A block with a scale, and a minimum, for each of `parts`, of which the largest are there.
template <class Block>
Block with_minima(std::uint32_t parts, int largest) {
    Block out{.d = half(0.25f), .dmin = half(0.5f)};
    for (std::uint32_t part = 0; part < parts; ++part)
        out.scales.set(part, {.scale = largest - int(part / 2), .minimum = largest - int(parts - 1 - part)});
    return out;
}
/// What with_minima() means.
auto number_with_minima(std::uint32_t parts, int largest) {
    return [=](int q, std::uint32_t weight) {
        const int part = int(weight / (256 / parts));
        return 0.25f * float(largest - part / 2) * float(q) - 0.5f * float(largest - (int(parts) - 1 - part));
    };
}

}  // namespace

TEST_CASE("numbers that a block has exactly come back as that block") {
    check_exact(Q4_0{.d = half(0.25f)}, 0, 15, [](int q, auto) { return 0.25f * float(q - 8); });
    check_exact(Q4_1{.d = half(0.25f), .m = half(-1)}, 0, 15, [](int q, auto) { return 0.25f * float(q) - 1; });
    check_exact(Q5_0{.d = half(0.25f)}, 0, 31, [](int q, auto) { return 0.25f * float(q - 16); });
    check_exact(Q5_1{.d = half(0.25f), .m = half(3)}, 0, 31, [](int q, auto) { return 0.25f * float(q) + 3; });
    check_exact(Q8_0{.d = half(0.25f)}, -127, 127, [](int q, auto) { return 0.25f * float(q); });
    check_exact(with_minima<Q2_K>(16, 15), 0, 3, number_with_minima(16, 15));
    check_exact(with_minima<Q4_K>(8, 63), 0, 15, number_with_minima(8, 63));
    check_exact(with_minima<Q5_K>(8, 63), 0, 31, number_with_minima(8, 63));

    Q3_K q3{.d = half(0.25f)};
    Q6_K q6{.d = half(0.25f)};
    for (std::uint32_t part = 0; part < 16; ++part) {
        q3.scales.set(part, int(part) * 3 - 32);
        q6.scales[part] = std::int8_t(int(part) * 15 - 128);
    }
    const auto part_of = [](std::uint32_t weight) { return int(weight / 16); };
    check_exact(q3, 0, 7, [&](int q, auto i) { return 0.25f * float(part_of(i) * 3 - 32) * float(q - 4); });
    check_exact(q6, 0, 63, [&](int q, auto i) { return 0.25f * float(part_of(i) * 15 - 128) * float(q - 32); });

    const auto iq4 = [](int q) { return float(iq4_numbers[std::size_t(q)]); };
    check_exact(IQ4_NL{.d = half(0.25f)}, 0, 15, [&](int q, auto) { return 0.25f * iq4(q); });
    IQ4_XS xs{.d = half(0.25f)};
    for (std::uint32_t part = 0; part < 8; ++part) xs.scales.set(part, int(part) * 7 - 32);
    check_exact(xs, 0, 15, [&](int q, auto i) { return 0.25f * float(int(i / 32) * 7 - 32) * iq4(q); });
    const auto mxfp4 = [](int q, auto) { return 4 * float(mxfp4_doubled[std::size_t(q)]); };
    check_exact(MXFP4{.exponent = 130}, 0, 7, mxfp4);
    check_exact(MXFP4{.exponent = 130}, 9, 15, mxfp4);
}

TEST_CASE("numbers that have no place in a block are errors") {
    const auto says = [](auto&& call, const char* text) { CHECK(tests::message_of(call) == text); };
    says([] { Q4_1{}.set(32, 0); }, "error: weight 32 of a quantised block\n  hint: it is from 0 to 31");
    says([] { Q4_1{}.set(0, 16); }, "error: q 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { Q5_0{}.set(0, 32); }, "error: q 32 of a quantised block\n  hint: it is from 0 to 31");
    says([] { Q5_1{}.set(0, -1); }, "error: q -1 of a quantised block\n  hint: it is from 0 to 31");
    says([] { Q2_K{}.set(0, 4); }, "error: q 4 of a quantised block\n  hint: it is from 0 to 3");
    says([] { Q2_K{}.scales.set(16, {}); }, "error: part 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { Q2_K{}.scales.set(0, {16, 0}); }, "error: scale 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { Q2_K{}.scales.set(0, {0, 16}); }, "error: minimum 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { Q3_K{}.set(256, 0); }, "error: weight 256 of a quantised block\n  hint: it is from 0 to 255");
    says([] { Q3_K{}.set(0, 8); }, "error: q 8 of a quantised block\n  hint: it is from 0 to 7");
    says([] { Q3_K{}.scales.set(0, 32); }, "error: scale 32 of a quantised block\n  hint: it is from -32 to 31");
    says([] { IQ4_NL{}.set(0, 16); }, "error: q 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { IQ4_XS{}.set(0, 16); }, "error: q 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { IQ4_XS{}.scales.set(8, 0); }, "error: part 8 of a quantised block\n  hint: it is from 0 to 7");
    says([] { IQ4_XS{}.scales.set(0, -33); }, "error: scale -33 of a quantised block\n  hint: it is from -32 to 31");
    says([] { MXFP4{}.set(32, 0); }, "error: weight 32 of a quantised block\n  hint: it is from 0 to 31");
}

TEST_CASE("quantised numbers are at most a step away") {
    struct Step {
        Quantised format;
        float step;  // of numbers from -1 to 1
    };
    using enum Quantised;
    for (const auto& [format, step] : {Step{Q4_0, 0x1p-3f},
                                       {Q4_1, 0x1p-3f},
                                       {Q5_0, 0x1p-4f},
                                       {Q5_1, 0x1p-4f},
                                       {Q8_0, 0x1p-7f},
                                       {Q2_K, 0x1p-1f},
                                       {Q3_K, 0x1p-2f},
                                       {Q4_K, 0x1p-3f},
                                       {Q5_K, 0x1p-4f},
                                       {Q6_K, 0x1p-5f},
                                       {IQ4_NL, 0x1p-3f},
                                       {IQ4_XS, 0x1p-3f},
                                       {MXFP4, 0x1p-2f}}) {
        const std::vector<float> x = numbers(Uniform, 256 * 100);
        const auto decoded = stdlib::reference::dequantise(format, quantise(format, x, 256));
        REQUIRE(decoded.size() == x.size());
        float farthest = 0;
        for (std::size_t i = 0; i < x.size(); ++i) farthest = std::max(farthest, std::abs(x[i] - decoded[i]));
        INFO(runtime::find_info(format)->name << ": " << farthest);
        CHECK(farthest <= step);
        CHECK(farthest >= step / 4);
    }
}

TEST_CASE("numbers that cannot be quantised are errors") {
    const auto says = [](auto&& call, const char* text) { CHECK(tests::message_of(call) == text); };
    std::vector<float> x(512, 1);
    says([&] { quantise(Quantised::Q4_0, std::span(x).first(33)); },
         "error: numbers: 33 to quantise to q4_0\n  hint: a block has 32 weights, and there are only whole blocks");
    says([&] { quantise(Quantised::Q4_K, x, 128); },
         "error: rows of 128 to quantise to q4_k\n  hint: a block has 256 weights, and there are only whole blocks");
    says([&] { quantise(Quantised::Q8_0, x, 96); },
         "error: 512 numbers to quantise in rows of 96\n  hint: a matrix has whole rows");
    says([&] { quantise(Quantised::Q8_0, x, 0); },
         "error: 512 numbers to quantise in rows of 0\n  hint: a matrix has whole rows");
    says([&] { quantise(Quantised(99), x); }, "error: quantised format 99\n  hint: formats are numbered from 0 to 12");
    x[37] = std::numeric_limits<float>::quiet_NaN();
    says([&] { quantise(Quantised::MXFP4, x); },
         "error: number 37 to quantise is nan\n  hint: blocks of quantised weights have finite numbers only");
    x[36] = -std::numeric_limits<float>::infinity();
    says([&] { quantise(Quantised::Q6_K, x); },
         "error: number 36 to quantise is -inf\n  hint: blocks of quantised weights have finite numbers only");
    CHECK(quantise(Quantised::Q4_K, {}).empty());
    CHECK(quantise(Quantised::Q4_K, {}, 0).empty());
}

TEST_CASE("numbers at the limits of float have blocks") {
    constexpr float largest = std::numeric_limits<float>::max();
    for (const auto& [format, sums] : expected)
        for (const float scale : {1.0f, 0x1p-30f, 0x1p-60f, 0x1p-120f, 0x1p-149f / largest}) {
            std::vector<float> x;
            for (int i = 0; i < 256; ++i) x.push_back((i % 2 ? largest : -largest / float(i + 1)) * scale);
            CHECK(quantise(format, x).size() ==
                  256 / runtime::find_info(format)->weights * runtime::find_info(format)->bytes);
        }
    CHECK(quantise(Quantised::MXFP4, std::vector<float>(32, largest))[0] == 253);
    const std::vector<std::uint8_t> small = quantise(Quantised::MXFP4, std::vector<float>(32, 0x1p-126f));
    CHECK(small[0] == 0);     // 2^-128 is the least half unit
    CHECK(small[1] == 0x44);  // of which this is four
    CHECK(quantise(Quantised::MXFP4, std::vector<float>(32, 0x1p-140f)) == std::vector<std::uint8_t>(17));
    CHECK(quantise(Quantised::MXFP4, std::vector<float>(32, 0x1.fffffep3f))[0] == 129);
}
