// SPDX-License-Identifier: Apache-2.0
// Work as a value (docs/runtime.md): nodes, the recorder that notes them, and arrays whose shape is data.
#pragma once
#include "ikat/ikat.hpp"
#include "runtime/exec/recorder.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat {

/// The kinds of work that a Node holds.
namespace node = runtime::node;
using runtime::MutableTensorView;
using runtime::Node;
using runtime::Recorder;
using runtime::TensorView;

}  // namespace ikat
