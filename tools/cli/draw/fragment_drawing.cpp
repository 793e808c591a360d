// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/draw/fragment_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "codegen/support/diagnostic.hpp"
#include "dsl/threads/wgmma.hpp"
#include "tools/cli/draw/drawing.hpp"

namespace ikat::cli {
namespace {

using detail::MatrixPart;

/// A matrix of a product, and where element i of a thread's fragment is in it.
struct Part {
    std::uint32_t rows, columns, threads;
    int elements, per_register;
    std::uint32_t (*row)(int i, std::uint32_t thread);
    std::uint32_t (*column)(int i, std::uint32_t thread);
};

/// A form of products, with its matrices A, B and C; of Wgmma, B lies in shared memory.
struct Form {
    std::string name;
    std::optional<Part> a{}, b{}, c{};
    bool of_quad_pairs = false;
};

template <class Layout>
Part part_of(int rows, int columns, std::uint32_t threads) {
    return {
        .rows = std::uint32_t(rows),
        .columns = std::uint32_t(columns),
        .threads = threads,
        .elements = Layout::registers * Layout::each,
        .per_register = Layout::each,
        .row = [](int i, std::uint32_t thread) { return std::uint32_t(Layout::row(i, detail::ThreadOnHost{thread})); },
        .column = [](int i,
                     std::uint32_t thread) { return std::uint32_t(Layout::column(i, detail::ThreadOnHost{thread})); }};
}

/// As it is written in a kernel.
std::string name_of(ir::MatrixElement element) {
    using enum ir::MatrixElement;
    switch (element) {
        case F16: return "half";
        case BF16: return "bfloat16";
        case F64: return "double";
        case F32: return "float";
        case S32: return "std::int32_t";
        case S8: return "std::int8_t";
        case U8: return "std::uint8_t";
        default: return std::string(ir::matrix_element_names[std::size_t(element)]);
    }
}

std::string name_of(const char* what, std::uint32_t m, std::uint32_t n, std::uint32_t k, ir::MatrixElement element,
                    ir::MatrixElement sum) {
    return fmt::format("{}<{}, {}, {}, {}, {}>", what, m, n, k, name_of(element), name_of(sum));
}

template <int m, int n, int k, class T, class Sum>
void add_mma(std::vector<Form>& out) {
    using M = Mma<m, n, k, T, Sum>;
    constexpr bool quads = M::form.of_quad_pairs();
    const auto part = [&]<MatrixPart which>(int rows, int columns) {
        if constexpr (quads)
            return part_of<detail::QuadPairLayout<M, which>>(rows, columns, 32);
        else
            return part_of<detail::FragmentLayout<M, which>>(rows, columns, 32);
    };
    out.push_back({.name = name_of("Mma", m, n, k, M::form.a, M::form.sum),
                   .a = part.template operator()<MatrixPart::A>(m, k),
                   .b = part.template operator()<MatrixPart::B>(k, n),
                   .c = part.template operator()<MatrixPart::Sum>(m, n),
                   .of_quad_pairs = quads});
}

/// With n columns: the fragments of the widest product begin with those of the others.
template <int k, class T, class Sum>
void add_wgmma(std::vector<Form>& out, std::uint32_t n) {
    using W = Wgmma<64, 256, k, T, Sum>;
    using OfWarp = Mma<16, 8, k, T, Sum>;
    ir::WgmmaForm form = W::form;
    form.columns = std::uint8_t(n / 8);
    if (n % 8 != 0 || n > 256 || !form.exists()) return;
    using LayoutA = detail::FragmentLayout<OfWarp, MatrixPart::A>;
    using LayoutC = detail::FragmentLayout<OfWarp, MatrixPart::Sum>;
    Form made{.name = name_of("Wgmma", 64, n, k, form.a, form.sum),
              .a = part_of<detail::WgmmaLayout<W, LayoutA, MatrixPart::A>>(64, k, 128),
              .c = part_of<detail::WgmmaLayout<W, LayoutC, MatrixPart::Sum>>(64, int(n), 128)};
    made.c->elements = int(64 * n / 128);
    out.push_back(std::move(made));
}

/// Mma of integers, of which the layout does not depend on the sign, in all shapes.
template <class T, int k, int... more>
void add_integers(std::vector<Form>& out) {
    add_mma<8, 8, k, T, std::int32_t>(out);
    (add_mma<16, 8, more, T, std::int32_t>(out), ...);
}

std::vector<Form> products(std::uint32_t n) {
    std::vector<Form> out;
    add_mma<8, 8, 4, half, half>(out), add_mma<8, 8, 4, half, float>(out);
    add_mma<16, 8, 8, half, half>(out), add_mma<16, 8, 8, half, float>(out);
    add_mma<16, 8, 16, half, half>(out), add_mma<16, 8, 16, half, float>(out);
    add_mma<16, 8, 8, bfloat16, float>(out), add_mma<16, 8, 16, bfloat16, float>(out);
    add_mma<16, 8, 4, tf32, float>(out), add_mma<16, 8, 8, tf32, float>(out);
    add_mma<8, 8, 4, double, double>(out), add_mma<16, 8, 4, double, double>(out);
    add_mma<16, 8, 8, double, double>(out), add_mma<16, 8, 16, double, double>(out);
    add_integers<std::int8_t, 16, 16, 32>(out), add_integers<std::uint8_t, 16, 16, 32>(out);
    add_integers<s4, 32, 32, 64>(out), add_integers<u4, 32, 32, 64>(out), add_integers<b1, 128, 128, 256>(out);
    add_mma<16, 8, 16, e4m3, half>(out), add_mma<16, 8, 16, e4m3, float>(out);
    add_mma<16, 8, 32, e4m3, half>(out), add_mma<16, 8, 32, e4m3, float>(out);
    add_mma<16, 8, 16, e5m2, half>(out), add_mma<16, 8, 16, e5m2, float>(out);
    add_mma<16, 8, 32, e5m2, half>(out), add_mma<16, 8, 32, e5m2, float>(out);
    add_wgmma<16, half, half>(out, n), add_wgmma<16, half, float>(out, n), add_wgmma<16, bfloat16, float>(out, n);
    add_wgmma<8, tf32, float>(out, n), add_wgmma<32, e4m3, half>(out, n), add_wgmma<32, e4m3, float>(out, n);
    add_wgmma<32, e5m2, half>(out, n), add_wgmma<32, e5m2, float>(out, n);
    add_wgmma<32, std::int8_t, std::int32_t>(out, n), add_wgmma<32, std::uint8_t, std::int32_t>(out, n);
    add_wgmma<256, b1, std::int32_t>(out, n);
    return out;
}

/// Without blanks and std::, in which texts may differ.
std::string plain(const std::string& name) {
    std::string out = name;
    std::erase(out, ' ');
    for (std::size_t at; (at = out.find("std::")) != out.npos;) out.erase(at, 5);
    return out;
}

/// The second number of "Wgmma<64, 128, ...", or 0.
std::uint32_t columns_of(const std::string& product) {
    std::uint32_t n = 0;
    const std::size_t at = product.find(',');
    if (at != product.npos) std::from_chars(product.data() + at + 1, product.data() + product.size(), n);
    return n;
}

Form form_named(const std::string& product) {
    const std::string wanted = plain(product);
    for (Form& form : products(columns_of(wanted)))
        if (plain(form.name) == wanted) return std::move(form);
    throw Error(fmt::format("there is no product '{}'", product),
                "products are written as in a kernel: Mma<16, 8, 16, bfloat16, float>, Wgmma<64, 128, 16, half, "
                "float>; docs/language/tensor-cores.md has the shapes and types");
}

Part part_named(const Form& form, const std::string& part) {
    const std::optional<Part>& found = part == "A" ? form.a : part == "B" ? form.b : form.c;
    if ((part != "A" && part != "B" && part != "C") || !found)
        throw Error(fmt::format("{} has no fragment '{}'", form.name, part),
                    form.b ? "fragments are A, B and C" : "fragments are A and C; B lies in shared memory");
    return *found;
}

}  // namespace

FragmentDrawing::FragmentDrawing(const std::string& product, const std::string& part) {
    const Form form = form_named(product);
    const Part of = part_named(form, part);
    title_ = fmt::format("{}::{}, {} x {}", form.name, part, of.rows, of.columns);
    if (form.of_quad_pairs) title_ += ", of product 0 of four";
    rows_ = of.rows, columns_ = of.columns, per_register_ = of.per_register, along_columns_ = part == "B";
    holders_.resize(rows_ * columns_);
    for (std::uint32_t thread = 0; thread < of.threads; ++thread) {
        if (form.of_quad_pairs && thread / 4 % 4 != 0) continue;
        for (int i = 0; i < of.elements; ++i)
            holders_[of.row(i, thread) * columns_ + of.column(i, thread)] = {thread, i};
    }
}

std::string FragmentDrawing::table() const {
    const auto thread = [&](std::uint64_t i, std::uint64_t j) { return holder(i, j).thread; };
    const auto element = [&](std::uint64_t i, std::uint64_t j) { return std::uint64_t(holder(i, j).element); };
    return title_ + "\n\n" + number_table("thread", rows_, columns_, thread) + '\n' +
           number_table("element", rows_, columns_, element) +
           fmt::format("\nelements of a register: {}\n", per_register_);
}

std::string FragmentDrawing::svg() const {
    // A box is one register's neighbours: as wide as the number of them, but not much wider than a number.
    const auto size_for = [&](bool several, std::uint64_t usual, std::uint64_t min) {
        return several ? std::max(min, (usual + 20) / std::uint64_t(per_register_)) : usual;
    };
    const std::uint64_t width = size_for(!along_columns_, 44, 3), height = size_for(along_columns_, 30, 3);
    constexpr std::uint64_t left = 40, top = 50;
    Svg out(std::max<std::uint64_t>(left + columns_ * width + 10, 480), top + rows_ * height + 10, title_);
    const std::uint64_t step = std::uint64_t(per_register_);
    for (std::uint64_t j = 0; j < columns_; j += width < 15 ? step : 1)
        out.text(left + j * width + width / 2, top - 6, 10, std::to_string(j));
    for (std::uint64_t i = 0; i < rows_; i += height < 12 ? step : 1)
        out.text(left / 2, top + i * height + height / 2 + 4, 10, std::to_string(i));
    for (std::uint64_t i = 0; i < rows_; ++i)
        for (std::uint64_t j = 0; j < columns_; ++j) {
            const auto [thread, element] = holder(i, j);
            const auto continues = [&](std::uint64_t row, std::uint64_t column) {
                return row < rows_ && column < columns_ && holder(row, column).thread == thread &&
                       holder(row, column).element / per_register_ == element / per_register_;
            };
            const std::uint64_t down = along_columns_, across = !along_columns_;
            if (i >= down && j >= across && continues(i - down, j - across)) continue;
            std::uint64_t count = 1;
            while (continues(i + count * down, j + count * across)) ++count;
            const std::uint64_t w = width * (across ? count : 1), h = height * (down ? count : 1);
            const std::uint64_t x = left + j * width, y = top + i * height;
            out.box(x, y, w, h, light_colour(thread));
            out.text(x + w / 2, y + h / 2 - 1, 12, fmt::format("T{}", thread));
            const int last = element + int(count) - 1;
            out.text(x + w / 2, y + h / 2 + 10, 8,
                     count == 1 ? std::to_string(element)
                                : fmt::format(fmt::runtime(count == 2 ? "{}, {}" : "{} to {}"), element, last));
        }
    return out.str();
}

}  // namespace ikat::cli
