// SPDX-License-Identifier: Apache-2.0
#include "stdlib/epilogue/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ikat::stdlib {

using runtime::TensorView;

void CallPlace::fail(std::string_view message, std::string hint) const {
    throw Error(
        Diagnostic{.where = where, .message = fmt::format("{}: {}", function, message), .hint = std::move(hint)});
}

TensorView matrices_of(const CallPlace& call, std::string_view what, const TensorView& given, std::string_view hint) {
    if (given.rank < 2 || given.rank > 3)
        call.fail(fmt::format("{} has {} dimension{}", what, given.rank, given.rank == 1 ? "" : "s"),
                  "it is a view (rows, columns), or (matrices, rows, columns)");
    const TensorView out = given.of_rank(3);
    if (out.extents[2] > 1 && out.strides[2] != 1)
        call.fail(fmt::format("the elements of a row of {} are {} apart", what, out.strides[2]), std::string(hint));
    return out;
}

static std::string name_of(std::size_t argument) { return fmt::format("argument {} of the epilogue", argument + 1); }

/// An array that has an element for each column of C, or for each row.
static void check_vector(const CallPlace& call, std::string_view what, const TensorView& given, std::uint64_t wanted,
                         std::string_view of) {
    if (given.rank == 1 && given.extents[0] >= wanted) return;
    call.fail(fmt::format("{} has {} dimension{} and {} elements, and C has {} {}", what, given.rank,
                          given.rank == 1 ? "" : "s", given.extents[given.rank - 1], wanted, of),
              "it is a Buffer, or a slice of one, with an element for each");
}

void check_epilogue(const CallPlace& call, const Epilogue& epilogue, const EpilogueCode& code,
                    const std::array<std::uint64_t, 3>& c) {
    const auto [matrices, rows, columns] = c;
    for (std::size_t i = 0; i < epilogue.arguments.size(); ++i) {
        const auto& array = epilogue.arguments[i].array;
        if (!array) continue;
        const EpilogueParameter& parameter = code.parameters()[i];
        const std::string what = name_of(i);
        if (parameter.is_row_sums) {
            const std::array wanted{matrices, rows, row_sum_columns(columns)};
            const auto given = matrices_of(call, what, *array).shape<3>();
            if (given != wanted)
                call.fail(
                    fmt::format("{} is {} row sums, not {}", what, fmt::join(given, " x "), fmt::join(wanted, " x ")),
                    fmt::format("C is {} x {} x {}: a sum for each row and {} columns, row_sum_columns({})", matrices,
                                rows, columns, columns_of_row_sum, columns));
        } else if (parameter.is_by_place) {
            const TensorView given = matrices_of(call, what, *array);
            const bool fits = given.extents[1] == rows && given.extents[2] == columns &&
                              (given.extents[0] == matrices || given.extents[0] == 1);
            if (!fits)
                call.fail(fmt::format("{} is {} x {} x {}, and C is {} x {} x {}", what, given.extents[0],
                                      given.extents[1], given.extents[2], matrices, rows, columns),
                          "what is read at each element has the shape of C, or of one of its matrices");
        } else {
            check_vector(call, what, *array, parameter.is_by_row ? rows : columns,
                         parameter.is_by_row ? "rows" : "columns");
        }
    }
}

EpilogueRoles::EpilogueRoles(const Epilogue& epilogue) {
    for (std::size_t i = 0; i < epilogue.arguments.size(); ++i) {
        const EpilogueArgument& argument = epilogue.arguments[i];
        if (!argument.array) continue;
        const auto role = argument.is_row_sums ? runtime::Role::Written : runtime::Role::Read;
        roles_.push_back({names_.emplace_back(name_of(i)), argument.array->part, role});
    }
}

void add_epilogue(KernelArguments& to, const EpilogueCode& code, std::span<const GivenArgument> arguments) {
    for (std::size_t i = 0; i < code.parameters().size(); ++i) {
        const GivenArgument& argument = arguments[i];
        if (!argument.array)
            to.add_number(argument.type, argument.bits);
        else if (code.parameters()[i].is_by_place || code.parameters()[i].is_row_sums)
            to.add_view(*argument.array, 3);
        else
            to.add_array(*argument.array);
    }
}

}  // namespace ikat::stdlib
