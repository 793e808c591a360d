// SPDX-License-Identifier: Apache-2.0
// What a launch has to know of a kernel, whatever the kernel came from: captured just now, embedded in a program, or
// read from a file of PTX. It travels with the code (section.hpp), and a launch is checked against it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/kernel/tensor_map_info.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat {

/// What a launch has to know of a kernel: its parameters, contracts and bounds, and where they are in the source.
struct KernelInfo {
    /// A parameter of rank 2 to 5: parameters[pointer], followed by its extents (u32; ... planes, rows, columns), then
    /// its pitches (u32; elements from one index of a dimension to the next; for all dimensions but the last).
    struct View {
        std::uint32_t pointer = 0;
        std::uint32_t rank = 2;
        std::uint32_t parameters() const { return 2 * rank; }  // how many it takes, including the pointer
        std::uint32_t extent(std::uint32_t dimension) const { return pointer + 1 + dimension; }
        std::uint32_t pitch(std::uint32_t dimension) const { return pointer + 1 + rank + dimension; }
        bool operator==(const View&) const = default;
    };

    /// The body's requirements on blocks and grids.
    struct BlockShape {
        bool whole_warps = false;       // a multiple of 32 threads
        bool whole_warpgroups = false;  // ... of 128
        bool linear = false;            // one dimension
        bool linear_grid = false;       // and so has the grid
        std::uint32_t threads = 0;      // exactly that many; 0: any number
        bool operator==(const BlockShape&) const = default;
    };

    /// A contract: a buffer has `count` elements for each `per` of the product of these integers.
    struct MinSize {
        std::uint32_t pointer = 0;
        std::uint64_t count = 1, per = 1;
        std::vector<std::uint32_t> factors{};  // parameters
        bool operator==(const MinSize&) const = default;
    };

    /// Elements beyond each edge of a pointer's view that the body may read: for each dimension this many.
    struct Halo {
        std::uint32_t pointer = 0;
        std::vector<std::uint32_t> widths{};
        bool operator==(const Halo&) const = default;
    };

    /// What the body expects of a parameter. Unlike by a contract, nothing is optimised by it.
    struct Expectation {
        std::uint32_t parameter = 0;
        std::uint64_t multiple = 1;  // of a number; of an address, in bytes
        std::string what, hint;      // "a TileSource copies 16 bytes at once"
        Location where{};
        bool operator==(const Expectation&) const = default;
    };

    /// An optional parameter that the kernel is made without.
    struct Absent {
        std::string name{};
        std::uint32_t before = 0;  // the parameter in front of which it would be
        bool operator==(const Absent&) const = default;
    };

    std::string name;
    std::vector<ir::Parameter> parameters{};
    std::vector<Absent> absent{};       // in their order
    std::vector<View> views{};          // in the order of their pointers
    std::vector<TensorMapInfo> maps{};  // in the order of their parameters
    ir::LaunchBounds bounds{};
    BlockShape block{};
    std::vector<MinSize> sizes{};
    std::vector<Halo> halos{};
    std::vector<Expectation> expectations{};
    bool takes_dynamic_shared = false;  // a launch says how many bytes
    Location where{};                   // of the kernel in its source

    // By compile():
    std::string target{};                        // "sm_90a"
    std::uint32_t static_shared_bytes = 0;       // per block
    std::uint32_t own_dynamic_shared_bytes = 0;  // per block; a launch adds them to those that it gives
    bool waits_for_grids = false;                // a launch may begin before the grid in front of it has ended
    std::vector<Location> source_lines{};        // by PTX line (index 0 unused): the source line, and an array's

    /// The map that this parameter is, or null.
    const TensorMapInfo* map_at(std::uint32_t parameter) const;
    /// Whether memory is written through this parameter, or the tensor that it is the map of is.
    bool writes(std::uint32_t parameter) const;
    /// The view that has this parameter as its pointer, or null.
    const View* view_at(std::uint32_t parameter) const;
    bool operator==(const KernelInfo&) const = default;
};

/// Where the parameters of an entry lie: one after the other, each at its alignment.
class ParameterLayout {
public:
    /// The place of the next one.
    std::size_t add(std::size_t bytes, std::size_t alignment) {
        const std::size_t at = (bytes_ + alignment - 1) / alignment * alignment;
        bytes_ = at + bytes;
        return at;
    }
    std::size_t add(const ir::Parameter& parameter);
    /// Of all of them.
    std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_ = 0;
};
std::size_t parameter_bytes(const KernelInfo& kernel);

/// "rows * columns / 32 * 18"
std::string product(const KernelInfo& kernel, const KernelInfo::MinSize& size);

/// Empty, or what cannot be: a view of a parameter that there is not.
std::string problem(const KernelInfo& kernel);

}  // namespace ikat
