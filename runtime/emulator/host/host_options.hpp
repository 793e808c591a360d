// SPDX-License-Identifier: Apache-2.0
// How the launches of a device run: checks and schedules by whose kernel it is, and what is said once.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "runtime/emulator/host/program.hpp"

namespace ikat::emulator {

/// Whose a kernel is: it decides about checks and schedules.
enum class Origin : std::uint8_t {
    Own,      // captured or embedded by this program: all that is found is said, in orders that are as bad as allowed
    Foreign,  // PTX text: what hardware lets pass is only warned of, in orders that hardware shows
};

/// Which lines of which kernels have been warned of.
class Warned;
std::shared_ptr<Warned> nothing_warned();

class Trace;

/// The options of a device.
struct HostOptions : Options {
    CheckSets sets{};               // instead of `checks`
    std::string name = "emulator";  // of the device, in messages about several
    // No schedule was asked for: each launch takes its own seed, by its number in the process. Otherwise moved_shared
    // and any_leader are what was asked for; kernels of our own have them anyway.
    bool by_number = true;
    // How long the program does nothing with a device before a thread goes on with its work.
    std::chrono::milliseconds idle{20};
    std::uint64_t graph_rounds = 100000;  // of the loops of a launch of a graph; more count as endless
    // Each launch runs in this many orders; what it does in the first one counts.
    unsigned schedules = 1;
    std::function<void(const Coverage&)> covered{};     // called for each launch
    std::shared_ptr<Warned> warned = nothing_warned();  // each line is warned of once
    std::shared_ptr<Trace> trace{};                     // of all work; nullptr: nobody asks
};

/// What a kernel did wrong while it ran.
class KernelFailure : public Error {
public:
    using Error::Error;
};

/// The orders of a launch that runs in several, by number: 0 is the first, others follow it. docs/emulator.md lists
/// them.
Schedule order_after(const Schedule& first, unsigned number);

/// Runs a launch that has been checked. Throws KernelFailure on a finding, with a note on how to repeat the order of
/// warps; if it is not found in the first of several orders, the memory is what that has made of it, and so is what is
/// returned.
Statistics run(Program& program, const Launch& launch, const HostOptions& asked, Origin origin);

/// Whether a warning about an entry, a buffer or something else is the first of its line.
bool is_new(const HostOptions& options, std::string_view about, const Diagnostic& warning);

/// What is done about a class of findings.
Action action_about(FaultCode code, const HostOptions& options, Origin origin);

/// Finds bytes that nothing has written in what is copied to the host. Throws KernelFailure, or says it once for each
/// buffer.
void check_download(const HostOptions& options, Origin origin, const Memory::State& memory, std::uint64_t from,
                    std::size_t bytes);

}  // namespace ikat::emulator
