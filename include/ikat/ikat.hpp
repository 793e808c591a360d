// SPDX-License-Identifier: Apache-2.0
// The language and the runtime: write a kernel, open a device, launch.
#pragma once
#include "codegen/support/notes.hpp"
#include "ikat/dsl.hpp"
#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat {

using emulator::BufferTraffic;
using emulator::LaunchTraffic;
using emulator::SharedTraffic;
using emulator::Traffic;
using runtime::arg;
using runtime::Buffer;
using runtime::BufferSlice;
using runtime::BufferView;
using runtime::Device;
using runtime::DeviceKind;
using runtime::DeviceProperties;
using runtime::Dim3;
using runtime::elapsed_milliseconds;
using runtime::Event;
using runtime::grid;
using runtime::Grid;
using runtime::KernelError;
using runtime::Pool;
using runtime::PoolReport;
using runtime::Queue;
using runtime::Stream;

}  // namespace ikat
