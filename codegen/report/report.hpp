// SPDX-License-Identifier: Apache-2.0
// A kernel's use of resources: registers, memory, instructions, and how many of its blocks fit on a multiprocessor.
// `ikat emit --report` and `ikat run --report` print it.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel/pressure.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/ptxas.hpp"
#include "codegen/report/occupancy.hpp"

namespace ikat {

/// What a report assumes, and where what it shows comes from.
struct ReportOptions {
    std::uint32_t threads_per_block = 0;  // 0: the kernel's launch bounds, else 256
    std::uint32_t dynamic_shared_bytes = 0;
    std::optional<std::string> ptxas{};  // its path, to show its figures next to ours
};

/// The resources of a kernel. Sizes in bytes, registers as a device has them.
struct KernelReport {
    std::string name, target;
    ptx::Version version;

    /// By pool: pred, b16, b32, b64. The registers that the PTX declares, and the maximum number live at once, which is
    /// known for kernels that ikat compiled.
    std::array<std::uint32_t, 4> registers{};
    std::optional<std::array<std::uint32_t, 4>> live{};
    std::optional<std::uint32_t> words{};  // ... in registers of 32 bits
    std::vector<LinePressure> lines{};

    std::uint64_t shared_bytes = 0, local_bytes = 0, constant_bytes = 0, parameter_bytes = 0;  // static ones
    std::uint32_t max_threads = 0, min_blocks = 0, max_registers = 0;  // promised; 0: no promise

    struct Count {
        std::string_view kind;  // "global loads"
        std::uint32_t instructions = 0;
    };
    std::uint32_t instructions = 0;
    std::vector<Count> mix{};  // kinds that occur

    /// One row for each target that can run it.
    struct Row {
        const ptx::Target* target = nullptr;
        std::optional<Occupancy> predicted{};  // with `words` registers
        std::optional<ptxas::Figures> figures{};
        std::optional<Occupancy> assembled{};  // with the registers that ptxas uses
    };
    std::uint32_t threads_per_block = 0, dynamic_shared_bytes = 0;
    std::vector<Row> occupancy{};
};

class Json;

/// The report of a kernel that was compiled with CompileOptions::pressure.
KernelReport report(const Compiled& compiled, const ReportOptions& options = {});

/// The report of an entry of any PTX. Throws Error if there is no entry of that name.
KernelReport report(const ptx::Module& module, std::string_view entry, const ReportOptions& options = {});

/// Lines and tables, for people.
std::string to_text(const KernelReport& report);
/// One JSON object with the member names of the structure above. `more` may append members (json.hpp).
std::string to_json(const KernelReport& report, const std::function<void(Json&)>& more = {});

}  // namespace ikat
