// SPDX-License-Identifier: Apache-2.0
// The functions of the library as members: of a Batch, which records calls and runs them together, and of what
// device.async() gives, which returns futures.
#pragma once
#include "ikat/ikat.hpp"
#include "stdlib/batch/async.hpp"
#include "stdlib/batch/batch.hpp"

namespace ikat {

using stdlib::Async;
using stdlib::Batch;
using stdlib::Future;

}  // namespace ikat
