// SPDX-License-Identifier: Apache-2.0
// The emulator's options from those of a device and from the environment, and launches with them.
#pragma once
#include <memory>

#include "runtime/emulator/emulator.hpp"

namespace ikat::runtime {

struct OpenOptions;

/// Whose a kernel is: it decides about checks and schedules.
enum class Origin : std::uint8_t {
    Own,      // captured or embedded by this program: all that is found is said, in orders that are as bad as allowed
    Foreign,  // PTX text: what hardware lets pass is only warned of, in orders that hardware shows
};

class Warned;

struct EmulatorOptions : emulator::Options {
    emulator::CheckSets sets{};  // instead of `checks`
    bool by_number = true;       // no schedule was asked for: each launch takes its own, by its number in the process
    // Adversaries that a schedule was asked to have; otherwise those of our own kernels have them.
    bool asks_moved_shared = false, asks_any_leader = false;
    std::shared_ptr<Warned> warned;  // of a device: each line is warned of once
};

/// What `asked` says, else IKAT_THREADS, IKAT_CHECK and IKAT_SCHEDULE. Throws Error for values that these cannot have.
EmulatorOptions emulator_options(const OpenOptions& asked);

/// Runs a launch that has been checked. Throws KernelError on a finding, with a note on how to repeat the order of
/// warps.
void run(emulator::Program& program, const emulator::Launch& launch, const EmulatorOptions& asked, Origin origin);

/// Finds bytes that nothing has written in what is copied to the host. Throws KernelError, or says it once for each
/// buffer.
void check_download(const EmulatorOptions& options, Origin origin, const emulator::Memory& memory, std::uint64_t from,
                    std::size_t bytes);

}  // namespace ikat::runtime
