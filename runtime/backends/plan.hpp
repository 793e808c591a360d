// SPDX-License-Identifier: Apache-2.0
// A device on which nothing runs: it has the properties of an emulator and gives out addresses without
// memory. What a function would launch for arrays of any size is recorded there (exec/recorder.hpp).
#pragma once
#include "runtime/backend.hpp"

namespace ikat::runtime {

Reference<Backend> open_plan(DeviceProperties properties);

}  // namespace ikat::runtime
