// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "codegen/kernel/pressure.hpp"

namespace ikat::ir {
class Function;
}
namespace ikat {
struct Registers;
}

namespace ikat::nvptx {

SourcePressure pressure_of(const ir::Function& fn, const Registers& registers);

}  // namespace ikat::nvptx
