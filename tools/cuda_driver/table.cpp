// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_driver/table.hpp"

// Only their addresses are used here, so that no types are needed.
#define FUNCTION(name, since, symbol) extern "C" void symbol();
#define NOT_DONE(name, since, symbol) extern "C" void symbol();
#define PER_THREAD(name, since, symbol) extern "C" void symbol();
#include "tools/cuda_driver/functions.def"
#include "tools/cuda_driver/not_done.def"
#include "tools/cuda_driver/per_thread.def"
#undef FUNCTION
#undef NOT_DONE
#undef PER_THREAD

namespace ikat::cuda_driver {
namespace {

constexpr Entry rows[] = {
#define FUNCTION(name, since, symbol) {#name, since, symbol, false},
#define NOT_DONE(name, since, symbol) {#name, since, symbol, false},
#define PER_THREAD(name, since, symbol) {#name, since, symbol, true},
#include "tools/cuda_driver/functions.def"
#include "tools/cuda_driver/not_done.def"
#include "tools/cuda_driver/per_thread.def"
#undef FUNCTION
#undef NOT_DONE
#undef PER_THREAD
};

}  // namespace

std::span<const Entry> entries() { return rows; }

}  // namespace ikat::cuda_driver
