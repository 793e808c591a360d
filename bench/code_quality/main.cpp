// SPDX-License-Identifier: Apache-2.0
// The cost of our PTX compared with nvcc's: the kernels of *_kernels.cpp and of kernels.cu, for one target, by one
// ptxas.
//
//     build/release/bench/bench_code_quality [TARGET] [-s NAME]
// Both are first run on the emulator with the same arguments and must give the same results. Then it prints, for the
// machine code, the instructions per element of its loops (for * of the whole kernel), those of the kernel, registers
// and spilled bytes. It needs nvcc and ptxas; without nvdisasm ($IKAT_NVDISASM; `pip download nvidia-cuda-nvdisasm` has
// one) it counts bytes of code instead of instructions. -s prints the machine code of both versions of a kernel.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/code_quality/kernels.hpp"
#include "codegen/nvdisasm.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptxas.hpp"
#include "runtime/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::bench;

std::string nvcc(const std::string& target) {
    namespace fs = std::filesystem;
    const fs::path source = fs::path(IKAT_SOURCE_DIR) / "bench/code_quality/kernels.cu";
    const fs::path out = fs::temp_directory_path() / "ikat-code-quality.ptx";
    const char* chosen = std::getenv("IKAT_NVCC");
    const std::string program = chosen ? chosen : "PATH=$PATH:/usr/local/cuda/bin nvcc";
    const std::string command =
        program + " -ptx -O3 -fmad=false -std=c++17 -arch=" + target + " -o " + out.string() + " " + source.string();
    if (std::system(command.c_str()) != 0) throw Error("nvcc failed: " + command, "IKAT_NVCC selects another one");
    std::ifstream file(out);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// One entry of a file, with everything before the first entry.
std::string entry_alone(const std::string& ptx, const std::string& name) {
    const std::size_t head = ptx.find(".visible .entry"), begin = ptx.find(".visible .entry " + name + "(");
    if (begin == ptx.npos) throw Error("nvcc made no kernel " + name, "it should be in kernels.cu");
    // nvcc declares the shared variables of kernels before the first entry, or inside their kernel.
    return ptx.substr(0, head) + ptx.substr(begin, ptx.find("\n}", begin) + 2 - begin) + "\n";
}

/// The contents of the buffers after a launch, and the number of executed instructions.
std::vector<Bytes> run(const Row& row, const std::string& ptx, const runtime::Device& device) {
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    std::vector<std::byte> parameters;
    const auto append = [&](auto number) {
        while (parameters.size() % sizeof number) parameters.push_back({});
        const auto* bytes = reinterpret_cast<const std::byte*>(&number);
        parameters.insert(parameters.end(), bytes, bytes + sizeof number);
    };
    for (const auto& argument : row.arguments)
        std::visit(
            [&]<class T>(const T& value) {
                if constexpr (std::is_same_v<T, Bytes>)
                    append(buffers.emplace_back(device.upload(value)).address());
                else
                    append(value);
            },
            argument);
    const runtime::Module module = device.load(ptx, row.name);
    device.launch(module, row.name, runtime::Grid{{row.grid[0], row.grid[1]}, {row.block[0], row.block[1]}},
                  parameters);
    std::vector<Bytes> out;
    for (const auto& buffer : buffers) out.push_back(buffer.download());
    return out;
}

bool same(const Bytes& a, const Bytes& b, double tolerance) {
    if (tolerance == 0 || a == b) return a == b;
    for (std::size_t i = 0; i + 4 <= a.size(); i += 4) {
        float x, y;
        std::memcpy(&x, &a[i], 4), std::memcpy(&y, &b[i], 4);
        if (!(std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y)))) return false;
    }
    return true;
}

struct Measured {
    double cost = 0, code = 0;  // instructions
    std::uint32_t registers = 0, spilled = 0;
};

Measured measure(const Row& row, const std::string& ptx, const std::string& target, bool shows) {
    const auto program = ptxas::find();
    if (!program) throw Error("there is no ptxas", "IKAT_PTXAS selects one");
    const ptxas::Output made = ptxas::assemble(*program, ptx, target);
    if (made.exit_status != 0) throw Error("ptxas rejects " + std::string(row.name) + ":\n" + made.log, "");
    Measured out;
    for (const ptxas::Figures& figures : ptxas::read_log(made.log))
        out.registers = figures.registers, out.spilled = figures.spill_store_bytes + figures.spill_load_bytes;
    if (const auto program = nvdisasm::find()) {
        const std::string sass = nvdisasm::disassemble(*program, made.cubin);
        if (shows) fmt::print("{}\n{}\n", ptx, sass);
        out.code = double(nvdisasm::count_instructions(sass));
        for (const nvdisasm::Loop& loop : row.loops) out.cost += nvdisasm::instructions_per_element(sass, loop);
        if (row.loops.empty()) out.cost = out.code;
    } else {
        out.cost = out.code = double(nvdisasm::text_size(made.cubin));
    }
    return out;
}

void compare(const std::string& target, const std::string& shown) {
    const std::string theirs = nvcc(target);
    const runtime::Device device = runtime::Device::open({.device = "emulator"});
    if (!nvdisasm::find()) fmt::print("no nvdisasm: bytes of code instead of instructions\n");
    fmt::print("{:<20}{:>8}{:>8}{:>8}{:>12}{:>12}{:>9}\n", "kernel", "ours", "nvcc", "ratio", "code", "registers",
               "spills");
    double cost = 0, code = 0, registers = 0;  // sums of logarithms
    int count = 0;
    for (const Row& row : rows()) {
        const bool shows = shown == row.name;
        if (!shown.empty() && !shows) continue;
        const std::string our_ptx = compile(row.ours.ast(), {.target = target}).ptx,
                          nvcc_ptx = entry_alone(theirs, row.name);
        const auto our_results = run(row, our_ptx, device), nvcc_results = run(row, nvcc_ptx, device);
        for (std::size_t i = 0; i < our_results.size(); ++i)
            if (!same(our_results[i], nvcc_results[i], row.tolerance))
                throw Error(std::string(row.name) + ": the two versions differ in buffer " + std::to_string(i),
                            "they are not the same kernel");
        const Measured ours = measure(row, our_ptx, target, shows), other = measure(row, nvcc_ptx, target, shows);
        const double ratio = ours.cost / other.cost;
        cost += std::log(ratio), code += std::log(ours.code / other.code), ++count;
        registers += std::log(double(ours.registers) / other.registers);
        fmt::print("{:<20}{:>8.2f}{:>8.2f}{:>8.2f}{:>12}{:>12}{:>9}\n", row.title, ours.cost, other.cost, ratio,
                   fmt::format("{}/{}", ours.code, other.code), fmt::format("{}/{}", ours.registers, other.registers),
                   fmt::format("{}/{}", ours.spilled, other.spilled));
    }
    fmt::print("geometric means of {}: instructions {:.2f}, code {:.2f}, registers {:.2f}\n", count,
               std::exp(cost / count), std::exp(code / count), std::exp(registers / count));
}

}  // namespace

int main(int argc, char** argv) {
    std::string target = "sm_90", shown;
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            shown = argv[++i];
        else
            target = argv[i];
    try {
        compare(target, shown);
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
