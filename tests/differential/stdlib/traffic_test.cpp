// SPDX-License-Identifier: Apache-2.0
// The memory traffic of the library's kernels on the emulator, compared with the minimum (traffic_table.hpp): at most
// 1.05 times as much, in accesses that request whole sectors. `test_stdlib_traffic [table]` prints it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "codegen/ast/ast.hpp"
#include "runtime/device.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/traffic_table.hpp"

namespace ikat::test {
namespace {

/// In bytes.
struct Measured {
    std::uint64_t minimum = 0, moved = 0;      // of the streamed arrays
    double efficiency = 1;                     // ... the lowest
    std::uint64_t small = 0, small_moved = 0;  // of the others

    double times() const { return double(moved + small_moved) / double(minimum + small); }
    double times_of_streamed() const { return double(moved) / double(minimum); }
};

std::uint64_t scalar_bits(ir::Type type, double value) {
    return type == ir::Type::F32 ? std::bit_cast<std::uint32_t>(float(value)) : std::uint64_t(value);
}

/// 0, 1, 2 ... if a kernel may use the elements as indices, else zeros.
void fill(runtime::Buffer<std::uint8_t>& buffer, ir::Type element, std::size_t elements) {
    std::vector<std::uint8_t> bytes(buffer.size());
    if (element == ir::Type::U32)
        for (std::uint32_t i = 0; i < elements; ++i) std::memcpy(&bytes[4 * i], &i, 4);
    buffer.upload(bytes);
}

void add(Measured& to, const emulator::BufferTraffic& buffer, bool streams) {
    for (const emulator::Traffic& part : {buffer.read, buffer.written, buffer.atomic}) {
        (streams ? to.moved : to.small_moved) += streams ? part.moved : part.touched;
        if (streams) to.efficiency = std::min(to.efficiency, part.efficiency());
    }
}

Measured measure(const stdlib::Entry& entry, const TrafficRow& row) {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .threads = 1, .traffic = &traffic});
    const auto& parameters = entry.info().parameters;
    REQUIRE(parameters.size() == row.size());
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    buffers.reserve(parameters.size());
    std::vector<runtime::Argument> arguments;
    Measured out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ir::Parameter& parameter = parameters[i];
        const Given& given = row[i];
        REQUIRE((given.kind == Given::Kind::Number) == (parameter.access == ir::Access::Value));
        if (given.kind == Given::Kind::Number) {
            arguments.push_back({.type = parameter.type, .bits = scalar_bits(parameter.type, given.value)});
            continue;
        }
        const auto elements = std::size_t(given.value);
        buffers.push_back(device.buffer<std::uint8_t>(elements * info(parameter.element).bytes, parameter.name));
        fill(buffers.back(), parameter.element, elements);
        arguments.push_back({.type = parameter.element, .part = buffers.back().memory().whole()});
        const std::size_t bytes = buffers.back().size();
        if (given.kind == Given::Kind::Small)
            out.small += bytes;
        else
            out.minimum += parameter.access == ir::Access::InOut ? 2 * bytes : bytes;
    }
    device.launch(entry.handle(), entry.grid(arguments, 0), arguments);
    for (const emulator::BufferTraffic& buffer : traffic.at(0).buffers) {
        const auto is_of = [&](const runtime::Argument& a) {
            return a.is_buffer() && a.part.address() == buffer.address;
        };
        const auto i = std::size_t(std::ranges::find_if(arguments, is_of) - arguments.begin());
        add(out, buffer, row.at(i).kind == Given::Kind::Streamed);
    }
    return out;
}

/// Rows that are not whole vectors, of kernels that take any.
struct Uneven {
    std::string_view kernel;  // without the suffix _f16 or _bf16
    double columns = 1001;
};
constexpr Uneven uneven_kernels[] = {{"bias_activation_relu"},
                                     {"softmax_warp", 333},
                                     {"softmax_block"},
                                     {"softmax_online"},
                                     {"softmax_wide"},
                                     {"log_softmax_wide"},
                                     {"log_softmax"},
                                     {"layernorm"},
                                     {"layernorm_plain"},
                                     {"rmsnorm"},
                                     {"rmsnorm_per_head", 333},
                                     {"fused_residual_rmsnorm"},
                                     {"softmax_backward_warp", 333},
                                     {"softmax_backward_block"},
                                     {"softmax_backward"},
                                     {"log_softmax_backward_warp", 333},
                                     {"log_softmax_backward_block"},
                                     {"log_softmax_backward"},
                                     {"copy_matrix"},
                                     {"kv_scatter"},
                                     {"gemv_warp_reduce"},
                                     {"log_softmax_warp", 333},
                                     {"layernorm_plain_warp", 333},
                                     {"fused_residual_rmsnorm_warp", 333}};

/// f(entry, what it has moved): of 32768 elements, of rows that are too long to be kept, of rows that begin in the
/// middle of a sector.
void each_kernel(auto&& f) {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        if (entry.recipe->bound_by.empty()) f(entry, measure(entry, traffic_row(entry)));
    }
}
void each_of_long_rows(auto&& f) {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        if (entry.variant->passes == 0) continue;
        // Of rows in shared memory, one is as long as two rows of elements and two of floats have room there.
        const double columns = entry.variant->shared ? 8256 : 65536;
        f(entry, measure(entry, traffic_row(entry, {{"rows", 2}, {"columns", columns}})));
    }
}
void each_of_uneven_rows(auto&& f) {
    for (const auto& [kernel, columns] : uneven_kernels) {
        std::size_t types = 0;
        for (const char* suffix : {"", "_f16", "_bf16"}) {
            const stdlib::Entry* entry = stdlib::find(std::string(kernel) + suffix);
            if (!entry) continue;
            INFO(entry->name);
            const Numbers numbers{
                {"rows", 64}, {"columns", columns}, {"tokens", 64}, {"width", columns}, {"cache_rows", 64}};
            f(*entry, measure(*entry, traffic_row(*entry, numbers)));
            ++types;
        }
        CHECK(types >= 2);
    }
}

TEST_CASE("every kernel moves at most 1.05 times the minimum, in whole sectors") {
    each_kernel([](const stdlib::Entry&, const Measured& got) {
        CHECK(got.times() <= 1.05);
        CHECK(got.efficiency >= 0.99);
        CHECK(got.moved >= got.minimum);  // it was all read and written
    });
}

TEST_CASE("rows that are too long for registers are read once in each pass") {
    each_of_long_rows([](const stdlib::Entry& entry, const Measured& got) {
        // As the recipes say; what many threads have read last is still in a cache when they read it again.
        CHECK(got.times_of_streamed() <= entry.variant->passes);
        CHECK(got.times_of_streamed() >= 0.7 * entry.variant->passes);
        CHECK(got.efficiency >= 0.99);
    });
}

TEST_CASE("rows of softmax are read once up to 32768 columns") {
    for (const char* name : {"softmax_wide", "log_softmax_wide", "softmax_wide_f16", "log_softmax_wide_bf16"})
        for (const double columns : {8200.0, 32768.0}) {
            INFO(name << ", " << columns << " columns");
            const stdlib::Entry* entry = stdlib::find(name);
            REQUIRE(entry);
            const stdlib::RowMemory none(0, false);
            CHECK(&entry->recipe->kernel_for(std::uint32_t(columns), 4, true, none).variant == entry->variant);
            const Measured got = measure(*entry, traffic_row(*entry, {{"rows", 2}, {"columns", columns}}));
            CHECK(got.times_of_streamed() <= 1.01);
        }
}

TEST_CASE("rows that start in the middle of a sector move hardly more") {
    each_of_uneven_rows([](const stdlib::Entry&, const Measured& got) { CHECK(got.times() <= 1.05); });
}

TEST_CASE("the table of docs/performance.md", "[.][table]") {
    const auto print_row = [](const stdlib::Entry& entry, const Measured& got) {
        fmt::print("| {} | {} | {} | {} | {:.3f} | {:.1f} % |\n", entry.name, entry.recipe->traffic,
                   got.minimum + got.small, got.moved + got.small_moved, got.times(), 100 * got.efficiency);
    };
    const char* const head =
        "| kernel | minimum | bytes | moved | times | sectors requested |\n|---|---|---|---|---|---|\n";
    fmt::print("{}", head), each_kernel(print_row);
    fmt::print("{}", head), each_of_long_rows(print_row);
    fmt::print("{}", head), each_of_uneven_rows(print_row);
}

}  // namespace
}  // namespace ikat::test
