// SPDX-License-Identifier: Apache-2.0
// What the kernels of the library move on the emulator, against what they cannot avoid (traffic_table.hpp): at
// most 1.05 times as much, in accesses that ask for whole sectors. `test_stdlib_traffic [table]` prints it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "codegen/ast/ast.hpp"
#include "runtime/device.hpp"
#include "stdlib/registry.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/traffic_table.hpp"

namespace ikat::test {
namespace {

/// In bytes.
struct Measured {
    std::uint64_t minimum = 0, moved = 0;      // of the arrays that stream
    double efficiency = 1;                     // ... the lowest
    std::uint64_t small = 0, small_moved = 0;  // of the others

    double times() const { return double(moved + small_moved) / double(minimum + small); }
    double times_of_streamed() const { return double(moved) / double(minimum); }
};

std::uint64_t scalar_bits(ir::Type type, double value) {
    return type == ir::Type::F32 ? std::bit_cast<std::uint32_t>(float(value)) : std::uint64_t(value);
}

/// 0, 1, 2 ... where a kernel may use the elements as indices, else zeros.
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
    const auto& parameters = entry.kernel().parameters;
    REQUIRE(parameters.size() == row.arguments.size());
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    buffers.reserve(parameters.size());
    std::vector<runtime::Argument> arguments;
    Measured out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ir::Parameter& parameter = parameters[i];
        const Given& given = row.arguments[i];
        REQUIRE((given.kind == Given::Kind::Number) == (parameter.access == ir::Access::Value));
        if (given.kind == Given::Kind::Number) {
            arguments.push_back({.type = parameter.type, .bits = scalar_bits(parameter.type, given.value)});
            continue;
        }
        const auto elements = std::size_t(given.value);
        buffers.push_back(device.buffer<std::uint8_t>(elements * info(parameter.element).bytes, parameter.name));
        fill(buffers.back(), parameter.element, elements);
        arguments.push_back({.type = parameter.element, .memory = &buffers.back().memory()});
        const std::size_t bytes = buffers.back().size();
        if (given.kind == Given::Kind::Small)
            out.small += bytes;
        else
            out.minimum += parameter.access == ir::Access::InOut ? 2 * bytes : bytes;
    }
    device.launch(runtime::CapturedKernel{entry.kernel()}, entry.grid(arguments, 0), arguments);
    for (const emulator::BufferTraffic& buffer : traffic.at(0).buffers) {
        const auto is_of = [&](const runtime::Argument& a) {
            return a.memory && a.memory->address() == buffer.address;
        };
        const auto i = std::size_t(std::ranges::find_if(arguments, is_of) - arguments.begin());
        add(out, buffer, row.arguments.at(i).kind == Given::Kind::Streamed);
    }
    return out;
}

/// Of the kernel itself, or of its name without the type's suffix.
template <class Row>
const Row* find_row(std::span<const Row> rows, std::string_view kernel) {
    const auto named = [&](std::string_view name) {
        const auto found = std::ranges::find(rows, name, &Row::kernel);
        return found == rows.end() ? nullptr : &*found;
    };
    if (const Row* exact = named(kernel)) return exact;
    for (const std::string_view suffix : {"_f16", "_bf16"})
        if (kernel.ends_with(suffix)) return named(kernel.substr(0, kernel.size() - suffix.size()));
    return nullptr;
}

template <class F>
void each_measured(std::span<const TrafficRow> rows, F f) {
    for (const stdlib::Entry& entry : stdlib::registry())
        if (const TrafficRow* row = find_row(rows, entry.name)) {
            INFO(entry.name);
            f(entry, *row, measure(entry, *row));
        }
}

TEST_CASE("every kernel moves at most 1.05 times what it cannot avoid, in whole sectors") {
    each_measured(traffic_rows(), [](const stdlib::Entry&, const TrafficRow& row, const Measured& got) {
        CHECK(got.times() <= 1.05 * row.times);
        CHECK(got.efficiency >= 0.99);
        CHECK(got.moved >= got.minimum);  // it was all read and written
    });
}

TEST_CASE("rows that are too long to be kept are read once in each pass") {
    each_measured(multi_pass_rows(), [](const stdlib::Entry&, const TrafficRow& row, const Measured& got) {
        CHECK(got.times_of_streamed() == row.times);  // as the documents say
        CHECK(got.efficiency >= 0.99);
    });
}

TEST_CASE("rows that begin in the middle of a sector move hardly more") {
    each_measured(uneven_rows(), [](const stdlib::Entry&, const TrafficRow& row, const Measured& got) {
        CHECK(got.times() <= 1.05 * row.times);
    });
}

TEST_CASE("every kernel of the registry has a row or a reason, and every row and reason a kernel") {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        CHECK((find_row(traffic_rows(), entry.name) != nullptr) !=
              (find_row(traffic_exceptions(), entry.name) != nullptr));
    }
    for (const TrafficRow& row : traffic_rows()) CHECK(stdlib::find(row.kernel) != nullptr);
    for (const TrafficRow& row : multi_pass_rows()) CHECK(stdlib::find(row.kernel) != nullptr);
    for (const TrafficRow& row : uneven_rows()) CHECK(stdlib::find(row.kernel) != nullptr);
    for (const TrafficException& exception : traffic_exceptions()) CHECK(stdlib::find(exception.kernel) != nullptr);
}

TEST_CASE("the table of docs/performance.md", "[.][table]") {
    for (const auto rows : {traffic_rows(), multi_pass_rows(), uneven_rows()}) {
        fmt::print("| kernel | minimum | bytes | moved | times | sectors asked for |\n|---|---|---|---|---|---|\n");
        each_measured(rows, [](const stdlib::Entry& entry, const TrafficRow& row, const Measured& got) {
            fmt::print("| {} | {} | {} | {} | {:.3f} | {:.1f} % |\n", entry.name, row.minimum, got.minimum + got.small,
                       got.moved + got.small_moved, got.times(), 100 * got.efficiency);
        });
    }
}

}  // namespace
}  // namespace ikat::test
