// SPDX-License-Identifier: Apache-2.0
// The members of batches are those of the catalogue: no family lists them. A family that is added here becomes one.
#include <ikat/batch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "stdlib/spec/named_functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/batch/members_text.hpp"
#include "tools/testing/golden.hpp"

namespace ikat::tests {
namespace {
namespace batch_members {

using stdlib::ArrayOf, stdlib::ElementOf, stdlib::NumberOf, stdlib::Setting;

/// y = x + by for each row of x, and the number of rows.
const auto shift = kernel("shift", params("y", "rows", "x", "by", "n"),
                          [](Out<float> y, Out<std::uint32_t> rows, In<float> x, f32 by, u32 n) {
                              const u32 i = global_id().x;
                              return_if(i >= n);
                              y[i] = x[i] + by;
                              if_(i == 0u, [&] { rows[0u] = n; });
                          });

void run_shift(const runtime::Queue& queue, std::span<const runtime::MutableTensorView> arrays,
               const stdlib::FunctionSettings& settings) {
    using Words = runtime::BufferSlice<std::uint32_t>;
    using Floats = runtime::BufferSlice<float>;
    const std::uint64_t n = arrays[0].extents[0];
    queue.launch(shift, runtime::grid(n, 64), Floats(arrays[1].part), Words(arrays[2].part), Floats(arrays[0].part),
                 settings.number("by").value_or(1), n);
}

constexpr stdlib::FunctionSetting shift_settings[] = {{"by", "a number; 1 if it is not set"}};
constexpr auto shift_family = stdlib::family_of("shift", "y = x + by", "x has any length.", shift_settings, {});

std::vector<stdlib::NamedFunction> own_functions() {
    stdlib::NamedFunction out{.name = "shift", .family = &shift_family};
    out.formula = "y = x + by";
    out.call = "shift(queue, x, y, rows)";
    out.arrays = {stdlib::input("x", "n"), stdlib::output("y", "n"), stdlib::output("rows", {}, ir::Type::U32)};
    out.run = run_shift;
    return {out};
}

/// As CatalogueMembers has those of the catalogue.
template <class Self>
struct OwnMembers {
    using Where = std::source_location;
#include "tests/differential/batch/own_members.inl"
    const Self& self() const { return static_cast<const Self&>(*this); }
};

/// A batch with the functions of this file.
struct OwnBatch : OwnMembers<OwnBatch> {
    explicit OwnBatch(const Device& device) : batch(device) {}
    template <class X>
    stdlib::CallOperand operand(const X& x, const std::source_location&) const {
        return stdlib::operand_of(x);
    }
    template <class... Outputs>
    auto make(const stdlib::CalledFunction& function, std::vector<stdlib::CallOperand> operands,
              const stdlib::CallSettings& settings) const {
        CHECK(function.name == own.front().name);
        return batch.make<Outputs...>({own.front(), function.where}, std::move(operands), settings);
    }
    std::vector<stdlib::NamedFunction> own = own_functions();
    Batch batch;
};

void check_file(const char* path, const std::string& text) {
    const auto result = golden::compare(std::string(IKAT_SOURCE_DIR "/") + path, text);
    INFO(result.message);
    CHECK(result.passed);
}

TEST_CASE("stdlib/batch/members.inl is the catalogue") {
    check_file("stdlib/batch/members.inl", members_text(stdlib::functions()));
    check_file("tests/differential/batch/own_members.inl", members_text(own_functions()));
}

TEST_CASE("batch: a family that is added is a member") {
    const Device device = test::open_device();
    const auto x = device.upload(std::vector<float>{1, 2, 3}, "x");
    const OwnBatch b(device);
    const auto [y, rows] = b.shift(x);
    const auto [z, same] = b.shift(x, 10);
    b.batch.execute();
    CHECK(y.download() == std::vector<float>{2, 3, 4});
    CHECK(z.download() == std::vector<float>{11, 12, 13});
    CHECK(rows.download() == std::vector<std::uint32_t>{3});
}

}  // namespace batch_members
}  // namespace
}  // namespace ikat::tests
