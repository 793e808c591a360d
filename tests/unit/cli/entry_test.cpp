// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/arguments/entry.hpp"

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using namespace cli;

constexpr const char* two_entries = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry mixed(.param .u8 a, .param .u64 b, .param .f32 c, .param .b32 d, .param .align 16 .b8 e[24], .param .s32 f)
{
    ret;
}
.visible .entry none()
{
    ret;
}
)";

ptx::Module parse(std::string_view text) { return ptx::parse(text, "two.ptx"); }
PtxEntry mixed() { return find_entry(parse(two_entries), "mixed"); }
std::string refused(std::size_t parameter, std::string_view text) {
    return message_of([&] { check_argument(mixed().parameters[parameter], parse_argument(text)); });
}

TEST_CASE("entry: parameters lie at their natural alignment") {
    const PtxEntry entry = mixed();
    REQUIRE(entry.parameters.size() == 6);
    const std::size_t offsets[] = {0, 8, 16, 20, 32, 56}, bytes[] = {1, 8, 4, 4, 24, 4};
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(entry.parameters[i].offset == offsets[i]);
        CHECK(entry.parameters[i].bytes == bytes[i]);
    }
    CHECK(entry.parameters[1].name == "b");
    CHECK(entry.parameters[4].is_array);
    const std::vector<std::byte> structure(24, std::byte(0x55));
    const PassedValue values[] = {{0x11}, {0x2222222222222222}, {0x33333333}, {0x44}, {1, structure}, {0x66}};
    CHECK(pack(entry, std::span(values).first(3)).size() == 20);
    const std::vector<std::byte> packed = pack(entry, values);
    CHECK(packed.size() == 60);
    CHECK(packed[31] == std::byte(0));
    CHECK(packed[32] == std::byte(0x55));
    CHECK(packed[55] == std::byte(0x55));
    CHECK(packed[56] == std::byte(0x66));
    CHECK(packed[0] == std::byte(0x11));
    CHECK(packed[1] == std::byte(0));
    CHECK(packed[8] == std::byte(0x22));
    CHECK(packed[19] == std::byte(0x33));
}

TEST_CASE("entry: chosen by name, or the only one") {
    const ptx::Module module = parse(two_entries);
    CHECK(find_entry(module, "none").parameters.empty());
    CHECK_THAT(message_of([&] { find_entry(module, ""); }), contains("2 entries"));
    CHECK_THAT(message_of([&] { find_entry(module, ""); }), contains("it has: mixed, none"));
    CHECK_THAT(message_of([&] { find_entry(module, "other"); }), contains("no entry 'other'"));
    const std::string_view empty = ".version 7.0\n.target sm_80\n.address_size 64\n";
    CHECK_THAT(message_of([&] { find_entry(parse(empty), ""); }), contains("the file has no entry"));
    const std::string one = std::string(empty) + ".visible .entry only() { ret; }\n";
    CHECK(find_entry(parse(one), "").name == "only");
}

TEST_CASE("entry: arguments must fit") {
    CHECK(refused(0, "u8:1").empty());
    CHECK(refused(0, "i8:-1").empty());
    CHECK(refused(1, "f32[4]").empty());
    CHECK(refused(1, "&0").empty());
    CHECK(refused(1, "u64:5").empty());
    CHECK(refused(2, "f32:1").empty());
    CHECK(refused(2, "b32:1").empty());
    CHECK(refused(3, "f32:1").empty());
    CHECK(refused(3, "u32:1").empty());
    CHECK(refused(5, "u32:1").empty());
    CHECK_THAT(refused(0, "u32:1"), contains("argument 'u32:1' does not fit parameter 'a', which is .u8"));
    CHECK_THAT(refused(2, "u32:1"), contains("write f32:... for a number, b32:0x... for bits"));
    CHECK_THAT(refused(5, "f32:1"), contains("write i32:..."));
    CHECK_THAT(refused(3, "f32[4]"), contains("a buffer is an address of 8 bytes"));
    CHECK(refused(4, "f32[]:1,2,3,4,5,6").empty());
    CHECK(refused(4, "b8[24]:0").empty());
    for (const char* wrong : {"b64:1", "b8[23]:0", "b8[24]", "&1"})
        CHECK_THAT(refused(4, wrong),
                   contains("a structure of 24 bytes, passed by value: write its fields as b8[24]:{u32:7,&0}"));
    CHECK_THAT(refused(4, "b8[24]:0=>-"), contains("has no output"));
}

}  // namespace
}  // namespace ikat::tests
