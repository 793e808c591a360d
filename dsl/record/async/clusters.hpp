// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "codegen/support/diagnostic.hpp"

namespace ikat::trace {

class Recorder;

/// When the kernel and its bounds are known: complains about clusters and changes of the number of registers that
/// cannot be, and makes what is used from other blocks of the cluster visible to them. `where` is the kernel.
void finish_clusters(Recorder& recorder, const Location& where);

}  // namespace ikat::trace
