// SPDX-License-Identifier: Apache-2.0
// A kernel that was compiled when the program was built, as the files that ikat_add_kernels() writes hold it. Nothing
// is captured or compiled when the program runs.
//
//     const Module module = load(device, app_kernels::saxpy);
//     device.launch(module, app_kernels::saxpy.name, grid(n, 256), parameters(2.0f, x, y, n));
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/device.hpp"

namespace ikat::runtime {

/// For one target: its PTX and, where ptxas was found, the machine code. Programs that call the CUDA driver themselves
/// give either to cuModuleLoadData; the PTX ends with a zero byte behind its view.
struct EmbeddedImage {
    std::string_view target;  // "sm_80"
    std::string_view ptx;
    std::span<const unsigned char> cubin{};
};

struct EmbeddedKernel {
    std::string_view name;                  // of the entry
    std::span<const EmbeddedImage> images;  // one per target, in ascending order
};

/// The image for the newest target that a device of target "sm_90" can run, or null: that of an "a" target runs on the
/// same target alone.
const EmbeddedImage* image_for(const EmbeddedKernel& kernel, std::string_view target);

/// The kernel's PTX on the device. Throws Error if there is none that it can run.
Module load(const Device& device, const EmbeddedKernel& kernel);

/// Arguments as the entry of a module takes them: numbers of the types that its parameters have (2.0f for a float), and
/// buffers. The types are not checked.
template <class... A>
std::vector<std::byte> parameters(const A&... arguments) {
    const auto as_argument = []<class T>(const T& argument) -> Argument {
        if constexpr (is_buffer<T>) {
            return {.type = ir::type_of<typename T::value_type>, .memory = &argument.memory()};
        } else {
            static_assert(ir::contains(ir::AnyNum, ir::type_of<T>),
                          "parameters: a kernel takes buffers and numbers of the host");
            Argument out{.type = ir::type_of<T>};
            const auto bytes = std::as_bytes(std::span(&argument, 1));
            for (std::size_t i = 0; i < bytes.size(); ++i) out.bits |= std::uint64_t(bytes[i]) << 8 * i;
            return out;
        }
    };
    const Argument list[] = {as_argument(arguments)..., {}};
    return pack(std::span(list, sizeof...(A)));
}

}  // namespace ikat::runtime

namespace ikat {
using runtime::EmbeddedImage;
using runtime::EmbeddedKernel;
}  // namespace ikat
