// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a Backend.
#pragma once
#include <memory>
#include <string>

#include "runtime/backend.hpp"
#include "runtime/cuda/driver.hpp"

namespace ikat::runtime::cuda {

/// The number of devices that the driver sees.
int device_count(const Driver& driver);

/// The driver's number of a device. Throws Error if there is no such device.
DeviceId device_id(const Driver& driver, int ordinal);

/// The driver's information about a device. Does not create a context.
DeviceProperties device_properties(const Driver& driver, int ordinal);

/// Opens device `ordinal` on its primary context, which it shares with other users of CUDA in the process. Throws Error
/// if there is no such device.
Reference<Backend> open_device(std::shared_ptr<const Driver> driver, int ordinal);

/// The log of the driver's compiler for `ptx` as an Error: the location of the first error in the PTX and, if
/// source_lines has it, in the kernel's source; the whole log as a note.
Error jit_error(const PtxText& ptx, const std::string& failure, const std::string& log);

}  // namespace ikat::runtime::cuda
