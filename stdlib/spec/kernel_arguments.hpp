// SPDX-License-Identifier: Apache-2.0
// The arguments of a launch whose arrays have types and shapes that are data, put together one after the other.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/record/capture.hpp"
#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

class KernelArguments {
public:
    /// Of a kernel, which must outlive this, to be launched at a location of the program.
    KernelArguments(const KernelHandle& kernel, const Location& where);

    /// For a parameter of rank 1.
    void add_array(ir::Type type, const runtime::BufferPart& part);
    void add_array(const runtime::TensorView& x) { add_array(x.type, x.part); }
    /// For a parameter of that rank: the last dimensions of the view; others have one index. A dimension that has one
    /// index has a pitch of 0: whatever the kernel's index is, it is that one.
    void add_view(const runtime::TensorView& x, std::uint32_t rank);
    /// For the map of a tensor, with extents and pitches as runtime::map_argument takes them.
    void add_map(const runtime::TensorView& x, std::span<const std::uint64_t> extents,
                 std::span<const std::uint64_t> pitches, std::uint64_t back = 0);
    /// For parameters of these types: std::uint32_t, std::int32_t, float, std::uint64_t.
    template <class... N>
    void add_numbers(N... numbers) {
        (add_number(ir::type_of<N>, bits_of(numbers)), ...);
    }
    void add_number(ir::Type type, std::uint64_t bits);

    /// Launches the kernel with these arguments, each block with so many bytes of dynamic shared memory.
    void launch(const runtime::Queue& queue, std::uint64_t blocks, std::uint32_t threads,
                std::uint32_t dynamic_shared_bytes = 0) const;

private:
    static std::uint64_t bits_of(std::uint64_t number) { return number; }
    static std::uint64_t bits_of(std::uint32_t number) { return number; }
    static std::uint64_t bits_of(std::int32_t number) { return std::uint32_t(number); }
    static std::uint64_t bits_of(float number) { return std::bit_cast<std::uint32_t>(number); }

    const KernelHandle& kernel_;
    Location where_;
    std::vector<runtime::Argument> list_;
};

}  // namespace ikat::stdlib
