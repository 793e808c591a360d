// SPDX-License-Identifier: Apache-2.0
// What PTX writes for the attribute of an operation, the key {a} of its spelling.
#pragma once
#include <string>

#include "codegen/ir/op/form.hpp"
#include "codegen/ir/op/op.hpp"

namespace ikat::nvptx {

/// Of a mode or a form: ".lo", ".acq_rel.gpu", ".red.and.pred"; nothing for "plain".
std::string suffix(ir::Op op, ir::Form attribute);

}  // namespace ikat::nvptx
