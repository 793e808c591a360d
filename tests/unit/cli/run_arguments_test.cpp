// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tools/cli/arguments/run_arguments.hpp"

namespace ikat::cli {
namespace {

using tests::message_of;

std::vector<float> floats(const std::vector<std::uint8_t>& bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

TEST_CASE("arguments: rows of a buffer lie as far apart as its pitch says") {
    const std::string file =
        std::filesystem::temp_directory_path() / ("ikat_rows_" + std::to_string(getpid()) + ".bin");
    Arguments arguments({"f32[2x3]:1,2,3,4,5,6=>" + file, "f32[2x2x1]:7", "f32[2x3]:8"});
    arguments.lay_out(0, {5}), arguments.lay_out(1, {8, 2}), arguments.lay_out(2, {});
    arguments.upload(runtime::Device::open({.device = "emulator"}), {"x", "y", "z"});
    const auto at = [&](std::size_t i, std::size_t first, std::size_t count) {
        return floats(arguments.buffer(i)->slice(first * 4, count * 4).download());
    };
    CHECK(arguments.buffer(0)->size() == (5 + 3) * 4);
    CHECK(at(0, 0, 3) == std::vector{1.0f, 2.0f, 3.0f});
    CHECK(at(0, 5, 3) == std::vector{4.0f, 5.0f, 6.0f});
    CHECK(arguments.buffer(1)->size() == (8 + 2 + 1) * 4);
    for (const std::size_t each : {0, 2, 8, 10}) CHECK(at(1, each, 1) == std::vector{7.0f});
    CHECK(arguments.buffer(2)->size() == 6 * 4);

    arguments.write_outputs();
    std::ifstream in(file, std::ios::binary);
    std::vector<std::uint8_t> bytes(std::istreambuf_iterator<char>(in), {});
    CHECK(floats(bytes) == std::vector{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
    std::filesystem::remove(file);
}

TEST_CASE("arguments: a buffer has one pitch") {
    Arguments arguments({"f32[2x3]:0", "&0", "b8[8]:{&0}", "f32[2x3]:0", "&3"});
    arguments.lay_out(0, {5});
    CHECK_NOTHROW(arguments.lay_out(1, {5}));
    CHECK(message_of([&] {
              arguments.lay_out(1, {});
          }).contains("argument '&0': argument 0 has a pitch of 5, but is taken with rows that follow each other"));
    CHECK(message_of([&] { arguments.lay_out_in_rows(2, 1); }).contains("argument 0 has a pitch of 5"));
    CHECK_NOTHROW(arguments.lay_out_in_rows(3, 2));
    CHECK(message_of([&] { arguments.lay_out(4, {5}); }).contains("but is taken with a pitch of 5"));
}

}  // namespace
}  // namespace ikat::cli
