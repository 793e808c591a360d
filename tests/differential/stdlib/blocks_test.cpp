// SPDX-License-Identifier: Apache-2.0
// Every kernel of the registry with unusual blocks and grids: the launch is rejected, or gives the same results as with
// the launch helper's choice. Inputs are small integers, so that sums are exact in any order.
#include <algorithm>
#include <cstring>

#include "codegen/ast/ast.hpp"
#include "runtime/device.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/traffic_table.hpp"

namespace ikat::test {
namespace {

using Buffers = std::vector<runtime::Buffer<std::uint8_t>>;
using Contents = std::vector<std::vector<std::uint8_t>>;

const Numbers some{{"elements", 2053}};  // no multiple of any vector or block

/// 0, 1, 2, 3, 0, ... in this type; indices are 0, 1, 2 ...
std::vector<std::uint8_t> contents(ir::Type type, std::size_t elements) {
    return with_type(type, [&]<class T>() {
        std::vector<std::uint8_t> out(elements * sizeof(T));
        for (std::size_t i = 0; i < elements; ++i) {
            const std::size_t number = std::is_same_v<T, std::uint32_t> ? i : i % 4;
            if constexpr (is_small_float<T>) {
                const std::uint64_t bits = encode(double(number), T::format, Rounding::Nearest);
                std::memcpy(&out[i * sizeof(T)], &bits, sizeof(T));
            } else if constexpr (std::is_arithmetic_v<T>) {
                const T element = T(number);
                std::memcpy(&out[i * sizeof(T)], &element, sizeof(T));
            }
        }
        return out;
    });
}

std::uint64_t bits_of(ir::Type type, double value) {
    return type == ir::Type::F32 ? std::bit_cast<std::uint32_t>(float(value)) : std::uint64_t(value);
}

/// The buffers after a launch with `block`, or nothing if it is rejected; block.x = 0 is the helper's choice. The grid
/// is the helper's, multiplied by `times` along each dimension.
Contents run(const runtime::Device& device, const stdlib::Entry& entry, const TrafficRow& row, runtime::Dim3 block,
             runtime::Dim3 times = {1}) {
    const auto& parameters = entry.info().parameters;
    REQUIRE(parameters.size() == row.size());
    Buffers buffers;
    buffers.reserve(parameters.size());
    std::vector<runtime::Argument> arguments;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].access == ir::Access::Value) {
            arguments.push_back({.type = parameters[i].type, .bits = bits_of(parameters[i].type, row[i].value)});
            continue;
        }
        auto bytes = contents(parameters[i].element, std::size_t(row[i].value));
        if (parameters[i].access == ir::Access::Out) std::ranges::fill(bytes, std::uint8_t{0xa5});
        buffers.push_back(device.upload(bytes, parameters[i].name));
        arguments.push_back({.type = parameters[i].element, .part = buffers.back().memory().whole()});
    }
    runtime::Grid grid = entry.grid(arguments, std::uint32_t(block.x ? block.count() : 0));
    if (block.x) grid.threads = block;
    grid.blocks = {grid.blocks.x * times.x, grid.blocks.y * times.y, grid.blocks.z * times.z};
    try {
        device.launch(entry.handle(), grid, arguments);
    } catch (const runtime::KernelError&) { throw; } catch (const Error&) {
        return {};
    }
    Contents out;
    for (const auto& buffer : buffers) out.push_back(buffer.download());
    return out;
}

}  // namespace

TEST_CASE("with unusual blocks and grids every kernel of the registry is right or rejected") {
    const auto device = runtime::Device::open({.device = "emulator", .threads = 1});
    std::size_t right = 0, refused = 0;
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        const TrafficRow row = traffic_row(entry, some);
        const Contents want = run(device, entry, row, {0});
        REQUIRE_FALSE(want.empty());
        for (const runtime::Dim3 times : {runtime::Dim3{1, 2}, {1, 1, 3}}) {
            INFO("a grid " << times.y << " and " << times.z << " times as large along y and z");
            const Contents got = run(device, entry, row, {0}, times);
            got.empty() ? ++refused : ++right;
            if (!got.empty()) CHECK(got == want);
        }
        for (const runtime::Dim3 block :
             {runtime::Dim3{1}, {33}, {64}, {100}, {128}, {256}, {1024}, {16, 16}, {8, 4, 2}}) {
            INFO("block " << block.x << " x " << block.y << " x " << block.z);
            const Contents got = run(device, entry, row, block);
            got.empty() ? ++refused : ++right;
            if (!got.empty()) CHECK(got == want);
        }
    }
    CHECK(right > stdlib::registry().size());
    CHECK(refused > stdlib::registry().size());
}

}  // namespace ikat::test
