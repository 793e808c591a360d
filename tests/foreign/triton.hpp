// SPDX-License-Identifier: Apache-2.0
// Kernels that Triton compiles while the test runs, with what a launch of one needs to know.
#pragma once
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests {

/// A kernel of triton_programs.py for one target.
struct TritonKernel {
    std::string name, target, ptx;
    std::map<std::string, std::uint32_t> facts;  // threads, shared, scratch, profile; the kernel's constants

    std::uint32_t operator[](const std::string& fact) const { return facts.at(fact); }
};

/// All of them. Ends the program as skipped if `python3` has no Triton.
const std::vector<TritonKernel>& triton_kernels();

/// A matrix by rows, and what Triton's descriptor of it has beside the map.
struct Descriptor {
    std::array<std::byte, emulator::tensor_map_bytes> map;
    std::int32_t rows, columns;
};

/// A memory and the arguments of a launch, each aligned as in a list of parameters.
class TritonRun {
public:
    TritonRun(const TritonKernel& kernel, std::uint32_t seed);

    Machine machine;

    template <class... Arguments>
    void operator()(std::array<std::uint32_t, 3> grid, const Arguments&... arguments) {
        bytes_.clear();
        (add(arguments), ...);
        launch(grid);
    }

    /// Of the kernel's descriptor of this number.
    Descriptor descriptor(int number, emulator::MapType type, std::uint64_t address, int rows, int columns) const;

private:
    template <class T>
    void add(const T& value) {
        static_assert(std::is_arithmetic_v<T>);
        add(&value, sizeof value, sizeof value);
    }
    void add(const Descriptor& value);
    void add(const void* from, std::size_t size, std::size_t alignment);
    void launch(std::array<std::uint32_t, 3> grid);

    const TritonKernel& kernel_;
    std::vector<std::byte> bytes_;
};

}  // namespace ikat::tests
