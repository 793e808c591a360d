// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text/number.hpp"

#include <bit>
#include <set>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using cli::NumberType;

NumberType named(std::string_view name) {
    const auto type = cli::number_type(name);
    REQUIRE(type);
    return *type;
}
std::uint64_t parse(std::string_view type, std::string_view text) { return cli::parse_number(named(type), text); }
std::string refused(std::string_view type, std::string_view text) {
    return message_of([&] { parse(type, text); });
}

TEST_CASE("integers: decimal, hexadecimal, negative; the bits are those of the type's width") {
    CHECK(parse("u32", "7") == 7);
    CHECK(parse("u8", "0xff") == 255);
    CHECK(parse("i8", "-1") == 0xff);
    CHECK(parse("i32", "-2147483648") == 0x80000000);
    CHECK(parse("i64", "-0x8000000000000000") == 0x8000000000000000);
    CHECK(parse("u64", "18446744073709551615") == ~0ull);
    CHECK(parse("b64", "0x1f") == 31);
    CHECK(parse("b16", "65535") == 65535);
}

TEST_CASE("integers that do not fit are refused, with the range") {
    CHECK_THAT(refused("u8", "256"), contains("'256' is not a valid u8"));
    CHECK_THAT(refused("u8", "256"), contains("from 0 to 255"));
    CHECK_THAT(refused("i8", "128"), contains("from -128 to 127"));
    CHECK_THAT(refused("i8", "-129"), contains("is not a valid i8"));
    CHECK_THAT(refused("u32", "-1"), contains("is not a valid u32"));
    CHECK_THAT(refused("u64", "18446744073709551616"), contains("is not a valid u64"));
    CHECK_THAT(refused("b32", "0x100000000"), contains("is not a valid b32"));
    for (const char* text : {"", "-", "1.5", "1 ", "0x", "seven", "+7"})
        CHECK_THAT(refused("i32", text), contains("is not a valid i32"));
}

TEST_CASE("floats are rounded to nearest") {
    CHECK(parse("f32", "1.5") == std::bit_cast<std::uint32_t>(1.5f));
    CHECK(parse("f32", "-0") == 0x80000000);
    CHECK(parse("f64", "1e-300") == std::bit_cast<std::uint64_t>(1e-300));
    CHECK(parse("f16", "1") == 0x3c00);
    CHECK(parse("f16", "65520") == 0x7c00);
    CHECK(parse("f32", "inf") == 0x7f800000);
    CHECK(parse("f32", "+2") == 0x40000000);
    CHECK(parse("f32", "nan") == 0x7fc00000);
    for (const char* text : {"", "1e50", "0x10", "one", "1,2"})
        CHECK_THAT(refused("f32", text), contains("is not a valid f32"));
}

TEST_CASE("printed numbers read back as the same bits") {
    const std::pair<const char*, std::uint64_t> cases[] = {
        {"u8", 200},         {"i8", 0x80},    {"i32", 0xffffffff}, {"i64", 1ull << 63}, {"u64", ~0ull},
        {"f16", 0x2e66},     {"f16", 0x7c00}, {"f32", 0x3dcccccd}, {"f32", 1},          {"f64", 0x3fb999999999999a},
        {"f32", 0x80000000}, {"b32", 0xdead}, {"b8", 0},
    };
    for (const auto& [name, bits] : cases) {
        const std::string text = cli::format_number(named(name), bits);
        INFO(name << " " << text);
        CHECK(parse(name, text) == bits);
    }
    CHECK(cli::format_number(named("f32"), 0x3dcccccd) == "0.1");
    CHECK(cli::format_number(named("u8"), 65) == "65");
    CHECK(cli::format_number(named("b32"), 0xdead) == "0xdead");
}

TEST_CASE("other names are not types") {
    for (const char* name : {"", "f8", "s32", "float", "pred", "b128", "f16x2"}) CHECK_FALSE(cli::number_type(name));
    CHECK(cli::number_type_names() == "u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 e4m3 e5m2 b8 b16 b32 b64");
}

TEST_CASE("random numbers: the same for a seed, floats from -1 to 1, all distinct enough") {
    cli::Random first(7), second(7), other(8);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t bits = first.number(named("f32"));
        CHECK(bits == second.number(named("f32")));
        CHECK(bits != other.number(named("f32")));
        const float value = std::bit_cast<float>(std::uint32_t(bits));
        CHECK((value >= -1 && value < 1));
        seen.insert(bits);
    }
    CHECK(seen.size() > 990);
    cli::Random pinned(1);
    CHECK(pinned.number(named("u64")) == 0x910a2dec89025cc1);  // published first output of SplitMix64 for seed 1
}

}  // namespace
}  // namespace ikat::tests
