// SPDX-License-Identifier: Apache-2.0
#include "tests/foreign/triton.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/foreign/compilers.hpp"

namespace ikat::tests {
namespace {

/// Triton aligns dynamic shared memory by 16 bytes only, and relies on where drivers place it: at a multiple of 1024.
/// A seed places it where 16 is all that holds, which wgmma and bulk copies must not meet.
std::string as_placed(std::string ptx) {
    const std::string said = ".shared .align 16 .b8 global_smem[]";
    if (const std::size_t at = ptx.find(said); at != ptx.npos)
        ptx.replace(at, said.size(), ".shared .align 1024 .b8 global_smem[]");
    return ptx;
}

std::vector<TritonKernel> compile_all() {
    const auto files = triton_files("triton_programs.py");
    if (!files) {
        std::puts("skipped: no triton in python3");
        std::exit(77);
    }
    std::vector<TritonKernel> kernels;
    for (const auto& [file, text] : *files) {
        if (!file.ends_with(".ptx")) continue;
        const std::string stem = file.substr(0, file.size() - 4);
        const std::size_t dot = stem.find('.');
        TritonKernel kernel{stem.substr(0, dot), stem.substr(dot + 1), as_placed(text), {}};
        std::istringstream facts(files->at(stem + ".txt"));
        std::string name;
        for (std::uint32_t value; facts >> name >> value;) kernel.facts[name] = value;
        kernels.push_back(kernel);
    }
    return kernels;
}

}  // namespace

const std::vector<TritonKernel>& triton_kernels() {
    static const std::vector<TritonKernel> kernels = compile_all();
    return kernels;
}

TritonRun::TritonRun(const TritonKernel& kernel, std::uint32_t seed) : kernel_(kernel) {
    machine.options.seed = seed;
    machine.options.threads = 1 + seed % 2;
    machine.options.checks = emulator::Checks::foreign();
    machine.check_registers(seed % 2);
}

Descriptor TritonRun::descriptor(int number, emulator::MapType type, std::uint64_t address, int rows,
                                 int columns) const {
    const std::string of = std::to_string(number);
    const emulator::TensorMap map{
        .type = type,
        .rank = 2,
        .address = address,
        .extents = {std::uint64_t(columns), std::uint64_t(rows)},
        .strides = {element_bytes(type) * std::uint64_t(columns)},
        .box = {kernel_["box" + of + ".0"], kernel_["box" + of + ".1"]},
        .element_strides = {1, 1},
        .swizzle = emulator::MapSwizzle(kernel_["swizzle" + of]),
        .l2_promotion = 2,
    };
    REQUIRE(problem(map).empty());
    return {encode(map), rows, columns};
}

void TritonRun::add(const Descriptor& value) {
    add(value.map.data(), value.map.size(), emulator::tensor_map_alignment);
    add(value.rows);
    add(value.columns);
    add(std::int64_t(value.columns));  // strides, in elements
    add(std::int64_t{1});
}

void TritonRun::add(const void* from, std::size_t size, std::size_t alignment) {
    const std::size_t at = (bytes_.size() + alignment - 1) / alignment * alignment;
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, from, size);
}

void TritonRun::launch(std::array<std::uint32_t, 3> grid) {
    const std::size_t blocks = std::size_t{grid[0]} * grid[1] * grid[2];
    for (const char* scratch : {"scratch", "profile"})
        add(kernel_[scratch] == 0 ? std::uint64_t{0} : machine.memory.allocate(blocks * kernel_[scratch], scratch));
    emulator::Program program(ptx::parse(kernel_.ptx, kernel_.name + ".ptx"), machine.memory);
    program.run({.entry = program.entries().front(),
                 .grid = grid,
                 .block = {kernel_["threads"], 1, 1},
                 .dynamic_shared_bytes = kernel_["shared"],
                 .parameters = bytes_},
                machine.options);
}

}  // namespace ikat::tests
