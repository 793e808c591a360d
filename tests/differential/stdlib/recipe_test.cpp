// SPDX-License-Identifier: Apache-2.0
// Every kernel of the library, in each of its types, against the reference of its recipe, at all the sizes of
// samples.cpp; and what recipes have to say.
#include "stdlib/spec/recipe.hpp"

#include <algorithm>
#include <cstring>

#include "codegen/ast/ast.hpp"
#include "codegen/support/half.hpp"
#include "dsl/record/capture.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/samples.hpp"

namespace ikat::test {
namespace {

void check_launch(const runtime::Device& device, const stdlib::Entry& entry,
                  std::vector<stdlib::Example::Argument> given) {
    stdlib::Example example(entry.info(), std::move(given));
    entry.recipe->reference(example);
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    buffers.reserve(example.arguments().size());
    std::vector<runtime::Argument> arguments;
    for (const auto& [type, is_number, bits, bytes] : example.arguments()) {
        if (is_number) {
            arguments.push_back({.type = type, .bits = bits});
            continue;
        }
        buffers.push_back(device.buffer<std::uint8_t>(bytes.size()));
        buffers.back().upload({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
        arguments.push_back({.type = type, .part = buffers.back().memory().whole()});
    }
    device.launch(entry.handle(), entry.grid(arguments, 0), arguments);
    for (const stdlib::Example::Expected& expected : example.expected()) {
        const runtime::Argument& argument = arguments[expected.parameter];
        const std::vector<std::uint8_t> got = runtime::BufferSlice<std::uint8_t>(argument.part).download();
        INFO("parameter " << entry.info().parameters[expected.parameter].name);
        check_expected(expected, argument.type, got);
    }
}

void check_kernel(const runtime::Device& device, const stdlib::Entry& entry) {
    for (const std::vector<std::uint32_t>& values : samples_of(entry.info())) {
        std::string text;
        for (const std::uint32_t value : values) text += " " + std::to_string(value);
        INFO(entry.name << " of" << text);
        check_launch(device, entry, arguments_of(entry, values));
    }
}

}  // namespace

TEST_CASE("every kernel gives what the reference of its recipe says") {
    const runtime::Device device = open_device();
    for (const stdlib::Entry& entry : stdlib::registry()) check_kernel(device, entry);
}

TEST_CASE("functions of one f16 or bf16, for every argument") {
    const runtime::Device device = open_device();
    std::size_t count = 0;
    for (const stdlib::Entry& entry : stdlib::registry()) {
        const auto& parameters = entry.info().parameters;  // x, y, n
        if (!entry.recipe->call.starts_with("elementwise(queue, Unary::") || parameters[0].element == ir::Type::F32)
            continue;
        INFO(entry.name);
        const std::uint32_t all = 1 << 16;
        auto arguments = arguments_of(entry, std::span(&all, 1));
        for (std::uint32_t i = 0; i < all; ++i) {
            const bool infinity = i == (parameters[0].element == ir::Type::F16 ? 0xfc00 : 0xff80);
            const auto bits = std::uint16_t(infinity ? 0 : i);  // of -infinity the host's x times 0 is a NaN
            std::memcpy(&arguments[0].bytes[2 * i], &bits, 2);
        }
        check_launch(device, entry, std::move(arguments));
        ++count;
    }
    CHECK(count == 12);
}

TEST_CASE("every recipe has a reference, which expects all that a kernel writes") {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        INFO(entry.name);
        REQUIRE(entry.recipe->reference);
        stdlib::Example example(entry.info(), arguments_of(entry, samples_of(entry.info()).front()));
        entry.recipe->reference(example);
        const auto& parameters = entry.info().parameters;
        const auto written = std::ranges::count_if(parameters, [](const ir::Parameter& parameter) {
            return parameter.access == ir::Access::Out || parameter.access == ir::Access::InOut;
        });
        CHECK(example.expected().size() == std::size_t(written));
    }
}

TEST_CASE("a grid for almost 2^32 rows or columns has all its blocks") {
    for (const char* name : {"gemv_warp_reduce", "gemv_coalesced", "softmax_warp", "softmax_block", "rmsnorm"}) {
        INFO(name);
        const stdlib::Entry* entry = stdlib::find(name);
        REQUIRE(entry);
        std::vector<runtime::Argument> arguments(entry->info().parameters.size());
        for (runtime::Argument& each : arguments) each.bits = ~std::uint32_t{0} - 1;
        CHECK(entry->variant->grid(stdlib::Call(entry->info(), arguments)).blocks.x > 1u << 20);
    }
}

TEST_CASE("sizes name parameters, and all arrays but results have one") {
    for (const stdlib::Entry& entry : stdlib::registry()) {
        if (entry.recipe->call.starts_with("copy_matrix")) continue;  // its matrices bring their extents
        INFO(entry.name);
        const auto& parameters = entry.info().parameters;
        for (const ir::Parameter& parameter : parameters) {
            if (parameter.access == ir::Access::Value || parameter.name == "partial") continue;
            INFO(parameter.name);
            const stdlib::SizeProduct* const size = entry.recipe->sizes_of(*entry.variant).find(parameter.name);
            REQUIRE(size);
            for (const stdlib::SizeProduct::Factor& factor : size->factors())
                CHECK((factor.parameter.empty() ||
                       std::ranges::count(parameters, factor.parameter, &ir::Parameter::name) == 1));
        }
    }
}

}  // namespace ikat::test
