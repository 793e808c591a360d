// SPDX-License-Identifier: Apache-2.0
// Kernels of a stream that overlap: from sm_90 on the next one may begin while this one still runs.
//
//     kernel("parts", …  {                    kernel("sum", …  {
//         …                                       u32 i = global_id().x;     runs beside the last blocks of parts
//         launch_next();                          grid_wait();              parts has ended
//         part[i] = sum;                          y[i] = part[2 * i] + part[2 * i + 1];
//     });                                     });
//
// Whoever launches them says nothing of it: a kernel with a grid_wait() may begin early, others do not. For older
// targets both statements are nothing.
#pragma once
#include "dsl/record/trace.hpp"

namespace ikat {

/// Waits until the kernels before this one in its stream have ended, and sees what they have written. Until then a
/// thread reads no memory that they may write, and writes none that they may use.
inline void grid_wait(const trace::Where& where = trace::Where::current()) {
    trace::effect({.op = ir::Op::GridWait}, {}, where);
}

/// The next kernel of the stream may begin once all blocks have called it, or have ended: if it has a grid_wait(),
/// which still waits for the end of this one. What is written before and after is treated alike.
inline void launch_next(const trace::Where& where = trace::Where::current()) {
    trace::effect({.op = ir::Op::LaunchNext}, {}, where);
}

}  // namespace ikat
