// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace ikat::stdlib {

/// How a matrix is stored: by rows, one after the other, or by columns, as its transpose is by rows.
enum class MatrixOrder : std::uint8_t { Rows, Columns };

}  // namespace ikat::stdlib
