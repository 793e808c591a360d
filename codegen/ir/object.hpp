// SPDX-License-Identifier: Apache-2.0
// What an address points into: a parameter's buffer, the raw bytes of a parameter itself, or a symbol. It follows from
// how the address is made, and with it its space; an address of neither, say one that was loaded, is in the space that
// its access names.
//
//     %3 = at.u32.u32 4, $tile, %i           object $tile, shared memory
//     load.f32 local [%3]                    refused by the verifier
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

struct Object {
    enum Kind : std::uint8_t { Unknown, Parameter, Symbol } kind = Unknown;
    std::uint32_t number = 0;  // index into parameters or symbols
    bool operator==(const Object&) const = default;
};

/// The object that an address computation starts from. Adding an integer stays in the object: PTX programs that leave
/// it are wrong on the device and caught by the emulator. The distance from one object to another is no such integer:
///
///     %d = sub.u32 %row, %t3                 %row in $t3: an integer
///     %e = sub.u32 %t1, %t3                  leads from $t3 to $t1, and what it is added to is of no known object
Object object_of(const Function& fn, Value address);

}  // namespace ikat::ir
