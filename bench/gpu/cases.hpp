// SPDX-License-Identifier: Apache-2.0
// What bench_gpu times: functions of the library with data of their own on a device, each named by a line of words.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "bench/gpu/peer.hpp"
#include "runtime/device.hpp"

namespace ikat::bench {

/// A function of the library, and its data on a device.
struct Case {
    std::function<void(const runtime::Queue&)> launch;
    /// How far the results are from a reference in double: for a sample of them, the norm of the differences by the
    /// norm of the reference. Call it after a launch. NaN where a result is.
    std::function<double()> error;
    double allowed = 0;     // errors of correct results are below this
    double operations = 0;  // multiplications and additions that it must do
    double bytes = 0;       // that it must read and write
    /// The same by cuBLASLt, where it has such a function.
    std::function<Product()> product;
};

/// The case of a line, such as "gemm_tensor_core bf16 wgmma nt 4096 4096 4096". Throws Error for one that is none.
Case make_case(const runtime::Device& device, std::string_view line);

/// A line for each form, to be read by people.
extern const std::string_view forms;

}  // namespace ikat::bench
