// SPDX-License-Identifier: Apache-2.0
// gemm_f32(): products of f32 of any orders, of many matrices, and added to C. Each block makes a tile of a matrix.
#include <fmt/format.h>

#include <array>
#include <compare>

#include "dsl/threads/grids.hpp"
#include "stdlib/epilogue/arguments.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/spec/named_functions.hpp"
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {
namespace {

constexpr GemmTile tile_of_size[] = {{}, {128, 128, 8, 8, 8}};

/// One of the kernels: A, B, C, alpha, beta.
struct GemmF32Kernel {
    MatrixOrder a, b;
    bool is_large;

    const GemmTile& tile() const { return tile_of_size[is_large]; }
    std::string name() const {
        return fmt::format("gemm_f32_{}{}{}", a == MatrixOrder::Rows ? 'n' : 't', b == MatrixOrder::Rows ? 'n' : 't',
                           is_large ? "_large" : "");
    }
    KernelHandle make() const {
        using enum MatrixOrder;
        if (a == Rows) return b == Rows ? of_orders<Rows, Rows>() : of_orders<Rows, Columns>();
        return b == Rows ? of_orders<Columns, Rows>() : of_orders<Columns, Columns>();
    }
    auto operator<=>(const GemmF32Kernel&) const = default;

private:
    template <MatrixOrder a, MatrixOrder b>
    KernelHandle of_orders() const {
        return is_large ? made<a, b, tile_of_size[1]>() : made<a, b, tile_of_size[0]>();
    }
    template <MatrixOrder a, MatrixOrder b, GemmTile tile>
    KernelHandle made() const {
        return kernel(name().c_str(), params("A", "B", "C", "alpha", "beta"),
                      [](In<float, 3> A, In<float, 3> B, InOut<float, 3> C, f32 alpha, f32 beta) {
                          record<a, b, tile>(A, B, C, value(alpha), value(beta));
                      })
            .launch_bounds(tile.threads())
            .handle();
    }
    template <MatrixOrder a, MatrixOrder b, GemmTile tile>
    static void record(const In<float, 3>& A, const In<float, 3>& B, const InOut<float, 3>& C, const Leaf<float>& alpha,
                       const Leaf<float>& beta) {
        require_linear_grid();
        const auto m = value(C.extent(1)), n = value(C.extent(2)), k = value(A.extent(a == MatrixOrder::Rows ? 2 : 1));
        const auto down = tiles_of(m, tile.m), across = tiles_of(n, tile.n);
        const auto block = value(block_id().x), strip = value(block / across), plane = value(strip / down);
        const auto element = [&]<MatrixOrder order>(const In<float, 3>& x, auto&& is, const u32& i, const u32& j) {
            return order == MatrixOrder::Rows ? x.load_if(is, plane, i, j, 0.0f) : x.load_if(is, plane, j, i, 0.0f);
        };
        detail::tiled_product<tile, a, b>(
            value((strip - plane * down) * tile.m), value((block - strip * across) * tile.n), m, n, k,
            [&](auto&& is, const u32& i, const u32& j) { return element.template operator()<a>(A, is, i, j); },
            [&](auto&& is, const u32& i, const u32& j) { return element.template operator()<b>(B, is, i, j); },
            [&](auto&& is, const u32& i, const u32& j, auto&& sum) {
                const auto scaled = value(alpha * sum);
                const auto old = value(C.load_if(is & (beta != 0.0f), plane, i, j, 0.0f));
                C.store_if(is, plane, i, j, select(beta != 0.0f, fma(beta, old, scaled), scaled));
            });
    }
};

/// A call whose arrays fit each other, as matrices of rows of columns.
class GemmF32Call {
public:
    GemmF32Call(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                const GemmF32Options& options)
        : queue_(queue), A_(matrices("A", A)), B_(matrices("B", B)), C_(matrices("C", C)), options_(options) {
        const SizeCheck check{function, queue.where()};
        check.enumerator("a", std::size_t(options.a), 2), check.enumerator("b", std::size_t(options.b), 2);
        check.enumerator("block", std::size_t(options.block), 3);
        check_shape("A", A_, options.a == MatrixOrder::Rows, m(), k());
        check_shape("B", B_, options.b == MatrixOrder::Rows, k(), n());
        const OperandRole roles[] = {{"A", A_.part}, {"B", B_.part}, {"C", C_.part, Role::Written}};
        check_roles(function, queue.where(), roles);
    }

    void run() const {
        if (m() == 0 || n() == 0 || C_.extents[0] == 0) return;
        const bool has_many =
            m() > 64 && n() > 64 && blocks(tile_of_size[1]) >= queue_.device().properties().multiprocessors;
        const GemmF32Kernel is{options_.a, options_.b,
                               options_.block == GemmBlock::large || (options_.block == GemmBlock::chosen && has_many)};
        const std::uint64_t count = blocks(is.tile());
        if (count > 0x7fffffff)
            place().fail(fmt::format("{} tiles of C", count), "a launch has fewer than 2^31 blocks: call it in parts");
        KernelArguments arguments(Kernels<GemmF32Kernel>::of(is), queue_.where());
        for (const TensorView* x : {&A_, &B_, &C_}) arguments.add_view(*x, 3);
        arguments.add_numbers(options_.alpha, options_.beta);
        arguments.launch(queue_, count, is.tile().threads());
    }

private:
    static constexpr std::string_view function = "gemm_f32";
    CallPlace place() const { return {function, queue_.where()}; }
    std::uint64_t m() const { return C_.extents[1]; }
    std::uint64_t n() const { return C_.extents[2]; }
    std::uint64_t k() const { return A_.extents[options_.a == MatrixOrder::Rows ? 2 : 1]; }
    std::uint64_t blocks(const GemmTile& tile) const {
        return C_.extents[0] * ((m() - 1) / tile.m + 1) * ((n() - 1) / tile.n + 1);
    }

    TensorView matrices(std::string_view what, const TensorView& given) const {
        if (!given.part.is_there()) place().fail(runtime::freed, runtime::freed_hint);
        if (given.format || given.type != ir::Type::F32)
            place().fail(fmt::format("{} has elements of {}", what, given.type_name()),
                         "they are f32; others are multiplied by gemm_tensor_core()");
        return matrices_of(place(), what, given,
                           "they follow each other; a matrix that is stored by columns is given as it is stored, with "
                           "MatrixOrder::Columns");
    }
    void check_shape(std::string_view what, const TensorView& x, bool is_by_rows, std::uint64_t rows,
                     std::uint64_t columns) const {
        const std::array wanted{C_.extents[0], is_by_rows ? rows : columns, is_by_rows ? columns : rows};
        if (x.shape<3>() != wanted)
            place().fail(
                fmt::format("{} is {}, not {}", what, fmt::join(x.shape<3>(), " x "), fmt::join(wanted, " x ")),
                fmt::format("C is {}, and k is {}: A is m x k, B is k x n, C is m x n; stored by columns, A is "
                            "k x m and B is n x k",
                            fmt::join(C_.shape<3>(), " x "), k()));
    }

    const Queue& queue_;
    TensorView A_, B_, C_;
    const GemmF32Options& options_;
};

}  // namespace

void gemm_f32(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
              const GemmF32Options& options) {
    GemmF32Call(queue, A, B, C, options).run();
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"planes", 0}};
constexpr NamedFunction::Setting settings[] = {{"alpha", "a number, 1 if it is not set"},
                                               {"beta", "a number, 0 if it is not set: then C is not read"}};
constexpr auto family = family_of(
    "gemm_f32_(nn|nt|tn|tt)", "C = alpha A B + beta C in f32, without tensor cores",
    "Each product and sum is one fma, along k. t is for a factor that is stored by columns: of _nt, B is n x k.\n"
    "Any sizes; with `planes` there are several products.",
    settings, sizes);

NamedFunction function_of(MatrixOrder a, MatrixOrder b) {
    const bool a_by_rows = a == MatrixOrder::Rows, b_by_rows = b == MatrixOrder::Rows;
    NamedFunction out{.name = GemmF32Kernel{a, b, false}.name(), .family = &family};
    out.formula = "C = alpha A B + beta C";
    out.call = fmt::format("gemm_f32(queue, A, B, C, {{{}{}{}}})", a_by_rows ? "" : ".a = MatrixOrder::Columns",
                           a_by_rows || b_by_rows ? "" : ", ", b_by_rows ? "" : ".b = MatrixOrder::Columns");
    out.arrays = {input("A", a_by_rows ? OperandShape("[planes] m k") : OperandShape("[planes] k m"), ir::Type::F32),
                  input("B", b_by_rows ? OperandShape("[planes] k n") : OperandShape("[planes] n k"), ir::Type::F32),
                  output("C", "[planes] m n", ir::Type::F32)};
    out.arrays[2].read_if = "beta";
    if (a_by_rows && b_by_rows) out.other_names = {"gemm_f32"};
    out.run = [a, b](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        gemm_f32(
            queue, arrays[0], arrays[1], arrays[2],
            {.alpha = given.number("alpha").value_or(1), .beta = given.number("beta").value_or(0), .a = a, .b = b});
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> gemm_f32_functions() {
    using enum MatrixOrder;
    return {function_of(Rows, Rows), function_of(Rows, Columns), function_of(Columns, Rows),
            function_of(Columns, Columns)};
}

}  // namespace ikat::stdlib
