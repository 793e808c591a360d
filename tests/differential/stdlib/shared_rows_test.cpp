// SPDX-License-Identifier: Apache-2.0
// Functions of rows that are too long for registers: in the shared memory of a block or of a cluster, or read again.
// Against the references, by the kernel that is for that many columns, and what they read.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/ast/ast.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/shared_rows.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {
namespace shared_rows {

using stdlib::SharedRows;

enum class Kept { block, cluster, nowhere };

/// Rows on a device.
struct Rows {
    const char* target;
    Kept kept;
    std::uint32_t columns;
    std::uint32_t gap;  // elements between rows, and before the first
};

/// The most columns that fit.
std::uint32_t most_columns(const SharedRows& of, std::uint64_t bytes, std::uint32_t blocks, std::uint64_t memory) {
    std::uint32_t low = 0, high = 1u << 24;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (of.block_bytes(middle, bytes, blocks) + SharedRows::other_bytes <= memory ? low : high) = middle;
    }
    return low;
}

/// At both ends of what a block, a cluster and neither of them have, on devices without clusters and with them.
std::vector<Rows> rows_for(const SharedRows& of, std::uint64_t bytes) {
    constexpr std::uint64_t of_80 = 163 << 10, of_90 = 227 << 10;
    const std::uint32_t lanes = 16 / std::uint32_t(bytes), block_80 = most_columns(of, bytes, 1, of_80),
                        block_90 = most_columns(of, bytes, 1, of_90),
                        cluster = most_columns(of, bytes, SharedRows::cluster, of_90);
    return {{"sm_90", Kept::block, of.registers + 64, 0},
            {"sm_80", Kept::block, of.registers + 1, 3},
            {"sm_90", Kept::cluster, block_90 + 1, 3},
            {"sm_80", Kept::nowhere, block_80 / 64 * 64 + 64, 0},
            {"sm_90", Kept::cluster, cluster / lanes * lanes, 0},
            {"sm_90", Kept::block, block_90, 2},
            {"sm_80", Kept::nowhere, block_80 + 1, 3},
            {"sm_90", Kept::cluster, (block_90 + 1 + lanes) / lanes * lanes, lanes},
            {"sm_90", Kept::nowhere, cluster / 64 * 64 + 64, 0}};
}

/// An array of a call: in rows with gaps if it has rows of its own.
class Array {
public:
    Array(const runtime::Device& device, const stdlib::Example::Argument& given, const stdlib::OperandShape& shape,
          std::uint64_t rows, std::uint64_t gap)
        : type_(given.type), bytes_(info(given.type).bytes) {
        rows_ = shape.has_more() ? rows : 1;
        columns_ = given.bytes.size() / bytes_ / rows_;
        pitch_ = columns_ + (shape.has_more() ? gap : 0), first_ = pitch_ - columns_;
        buffer_.emplace(device.buffer<std::uint8_t>((first_ + rows_ * pitch_) * bytes_));
        std::vector<std::uint8_t> all(buffer_->size(), 0x5a);
        for (std::uint64_t row = 0; row < rows_; ++row)
            std::memcpy(&all[(first_ + row * pitch_) * bytes_], &given.bytes[row * columns_ * bytes_],
                        columns_ * bytes_);
        buffer_->upload(all);
        has_rows_ = shape.has_more();
    }
    runtime::MutableTensorView view() const {
        const runtime::BufferPart part = buffer_->memory().whole().from(first_ * bytes_);
        using Extents = std::vector<std::uint64_t>;
        if (!has_rows_)
            return runtime::MutableTensorView(runtime::TensorView(type_, part, Extents{columns_}, Extents{}));
        return runtime::MutableTensorView(runtime::TensorView(type_, part, Extents{rows_, columns_}, Extents{pitch_}));
    }
    ir::Type type() const { return type_; }
    bool has_rows() const { return has_rows_; }
    /// Without the gaps, which must be as they were.
    std::vector<std::uint8_t> elements() const {
        const std::vector<std::uint8_t> all = buffer_->download();
        std::vector<std::uint8_t> out;
        std::size_t changed = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::uint64_t at = i / bytes_;
            if (at >= first_ && (at - first_) % pitch_ < columns_)
                out.push_back(all[i]);
            else
                changed += all[i] != 0x5a;
        }
        CHECK(changed == 0);
        return out;
    }

private:
    ir::Type type_;
    std::uint64_t bytes_, rows_ = 0, columns_ = 0, pitch_ = 0, first_ = 0;
    bool has_rows_ = false;
    std::optional<runtime::Buffer<std::uint8_t>> buffer_{};
};

/// The kernel of a function whose rows follow each other and are read again.
const stdlib::Entry& packed_entry(const stdlib::Recipe& recipe, std::size_t type) {
    const auto& handle = recipe.variants().back().instances[type]();
    return *stdlib::find(handle.info().name);
}

void run(const stdlib::Recipe& recipe, const runtime::Device& device,
         const std::vector<runtime::MutableTensorView>& views) {
    stdlib::FunctionSettings settings;
    settings.set("epsilon", "1e-3");
    std::vector<stdlib::FunctionOperand> numbers;
    if (!recipe.settings.all().empty()) numbers.emplace_back(1e-3f);
    if (recipe.run)
        recipe.run(device, views, settings);
    else
        stdlib::run_rows({device, recipe, {views.begin(), views.end()}}, numbers);
}

/// What arrays with rows have moved, by what they would at least.
double times_of(const emulator::LaunchTraffic& traffic, const std::vector<Array>& arrays) {
    double moved = 0, least = 0;
    for (const Array& array : arrays) {
        const auto part = array.view().part;
        if (!array.has_rows()) continue;
        for (const emulator::BufferTraffic& buffer : traffic.buffers)
            if (buffer.address <= part.address() && part.address() < buffer.address + buffer.bytes) {
                moved += double(buffer.read.moved + buffer.written.moved);
                least += double(buffer.read.touched + buffer.written.touched);
            }
    }
    return moved / least;
}

void check(const stdlib::Recipe& recipe, std::size_t type, const Rows& of, std::uint32_t rows = 2) {
    std::vector<emulator::LaunchTraffic> traffic;
    runtime::OpenOptions options{.target = of.target};
    if (!std::getenv("IKAT_DEVICE") && !std::getenv("IKAT_CUDA_DRIVER"))
        options.threads = 1, options.traffic = &traffic;
    const runtime::Device device = open_device(options);
    const stdlib::Entry& entry = packed_entry(recipe, type);
    std::vector<std::uint32_t> values{rows, of.columns};
    if (recipe.function() == "softmax_causal_backward") values.insert(values.end(), {rows, 0});
    stdlib::Example example(entry.info(), arguments_of(entry, values));
    recipe.reference(example);
    std::vector<Array> arrays;
    std::vector<std::size_t> parameters;
    for (std::size_t i = 0; i < example.arguments().size(); ++i)
        if (const auto& argument = example.arguments()[i]; !argument.is_number) {
            arrays.emplace_back(device, argument, recipe.operands.all()[arrays.size()].shape, rows, of.gap);
            parameters.push_back(i);
        }
    std::vector<runtime::MutableTensorView> views;
    for (const Array& array : arrays) views.push_back(array.view());
    run(recipe, device, views);
    for (const stdlib::Example::Expected& expected : example.expected()) {
        INFO(entry.info().parameters[expected.parameter].name);
        const auto at = std::size_t(std::ranges::find(parameters, expected.parameter) - parameters.begin());
        check_expected(expected, arrays[at].type(), arrays[at].elements());
    }
    if (traffic.empty()) return;
    INFO(traffic[0].entry);
    CHECK(traffic[0].entry.contains("_shared") == (of.kept == Kept::block));
    CHECK(traffic[0].entry.contains("_cluster") == (of.kept == Kept::cluster));
    // An access to rows that begin anywhere takes parts of sectors.
    if (of.gap != 0) return;
    CHECK(times_of(traffic[0], arrays) <= 1.01 * (of.kept == Kept::nowhere ? recipe.variants().back().passes : 1));
}

}  // namespace shared_rows
}  // namespace

/// f(recipe, how it keeps rows) of all that do.
static void each_with_shared_rows(auto&& f) {
    std::size_t recipes = 0;
    for (const stdlib::Recipe* recipe : stdlib::recipes()) {
        const auto all = recipe->variants();
        const auto shared = std::ranges::find_if(all, [](const auto& each) { return bool(each.shared); });
        if (shared != all.end()) f(*recipe, shared->shared), ++recipes;
    }
    CHECK(recipes == 19);
}

TEST_CASE("rows in shared memory: of a block, of a cluster, and longer ones") {
    static tests::Sample sample(11), sample_of_clusters(7);
    each_with_shared_rows([](const stdlib::Recipe& recipe, const stdlib::SharedRows& shared) {
        for (std::size_t type = 0; type < 3; ++type)
            for (const shared_rows::Rows& of : shared_rows::rows_for(shared, type == 0 ? 4 : 2)) {
                if (!(of.kept == shared_rows::Kept::cluster ? sample_of_clusters : sample).next()) continue;
                INFO(recipe.call << ", type " << type << ", " << of.target << ", " << of.columns << " columns, gaps of "
                                 << of.gap);
                shared_rows::check(recipe, type, of);
            }
    });
}

TEST_CASE("rows in shared memory: several for each block") {
    static tests::Sample sample(4);
    each_with_shared_rows([](const stdlib::Recipe& recipe, const stdlib::SharedRows& shared) {
        if (!recipe.steps || !sample.next()) return;
        INFO(recipe.call);
        const auto all = shared_rows::rows_for(shared, 4);
        shared_rows::check(recipe, 0, all[1], 17), shared_rows::check(recipe, 0, all[2], 33);
    });
}

TEST_CASE("rows in shared memory: of longer ones, a deviation of some roundings of the mean is right") {
    for (const auto& [target, columns] : {std::pair("sm_90", 600040u), {"sm_80", 60004u}}) {
        constexpr float rounding = 0x1p-9f;  // of 16384
        std::vector<float> x(columns);
        for (std::uint32_t i = 0; i < columns; ++i) x[i] = 16384 + rounding * float(int(i % 7) - 3);
        const runtime::Device device = open_device({.target = target});
        const auto from = device.upload(x);
        auto to = device.buffer<float>(columns);
        stdlib::layernorm(device, from.view(1, columns), to.view(1, columns), 0.0f);
        const auto y = to.download();
        INFO(target << ", " << columns << " columns");
        for (std::uint32_t i = 0; i < 7; ++i) CHECK(y[i] == Approx((int(i) - 3) / 2.0).margin(1e-5));
    }
}

TEST_CASE("rows in shared memory: those of a kernel of one's own") {
    const auto check = [&]<std::uint32_t blocks>(std::integral_constant<std::uint32_t, blocks>) {
        using Group = stdlib::SharedGroup<256, blocks>;
        auto centred = kernel("centred", params("x", "y", "rows", "columns"),
                              [](In<half> x, Out<half> y, u32 rows, u32 columns) {
                                  stdlib::with_row<Group, half, 0>(x, rows, columns, [&](const auto& row) {
                                      f32 sum = 0;
                                      row.each([&](const auto& v, const auto&) {
                                          for (const auto& x : v) sum += x;
                                      });
                                      const auto mean = value(row.group.sum(sum) / cast<f32>(columns));
                                      row.map(y, [&](const auto& x) { return x - mean; });
                                  });
                              })
                           .launch_bounds(Group::block)
                           .cluster(blocks);
        const runtime::Device device = open_device({.target = "sm_90", .check = "strict,registers,races"});
        for (const std::uint32_t columns : {1u, 5u, 64u, 2501u, 6000u}) {
            constexpr std::uint32_t rows = 3;
            std::vector<half> numbers(rows * columns), wanted(numbers.size());
            for (std::uint32_t i = 0; i < numbers.size(); ++i) {
                // Of each row, the mean is its number, exactly.
                const auto row = float(i / columns), far = float(i % columns % 7);
                const bool is_pair = (i % columns | 1) < columns;
                const float at = !is_pair ? 0 : i % columns % 2 ? -float((i % columns - 1) % 7) : far;
                numbers[i] = half(row + at), wanted[i] = half(at);
            }
            const auto x = device.upload(numbers);
            auto y = device.buffer<half>(numbers.size());
            device.launch(centred, stdlib::shared_row_grid<Group, half>(rows, columns), x, y, rows, columns);
            CHECK(y.download() == wanted);
        }
    };
    check(std::integral_constant<std::uint32_t, 1>()), check(std::integral_constant<std::uint32_t, 4>());
}

}  // namespace ikat::test
