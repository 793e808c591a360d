// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/recorder.hpp"

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/exec/queues.hpp"

namespace ikat::runtime {

const KernelInfo* node::Launch::info() const { return kernel ? &kernel->info() : module->info(entry); }

void node::exchange(Launch& launch, std::size_t position, const Argument& argument, const Backend& device) {
    const KernelInfo* const info = launch.info();
    if (!info || position >= launch.arguments.size())
        throw Error(Diagnostic{.where = launch.where,
                               .message = "a launch has no argument " + std::to_string(position) + " to exchange",
                               .hint = "one whose parameters are bytes has none"});
    std::vector<Argument> arguments = launch.arguments;
    arguments[position] = argument;
    check_launch(*info, {launch.grid, launch.where}, arguments, device);
    launch.arguments = std::move(arguments);
}

namespace {

struct RecorderState final : Sink {
    RecorderState(Reference<Sink> on, bool runs) : device(std::move(on)), runs(runs) {}

    void take(const Node& work) override {
        const bool ends = std::holds_alternative<node::Free>(work.work);
        if (const auto* const allocate = std::get_if<node::Allocate>(&work.work)) {
            allocate->memory->begin(default_stream);
            allocate->memory->keep();
        } else if (runs && !ends) {
            device->take(work);
        }
        nodes.push_back(work);
    }
    bool is_asynchronous() const override { return false; }

    const Reference<Sink> device;
    const bool runs;
    std::vector<Node> nodes;
};

}  // namespace

Recorder::Recorder(const Device& device, Runs runs)
    : device_(device), sink_(make_reference<RecorderState>(device.sink(), runs == Runs::Yes)) {}

const std::vector<Node>& Recorder::nodes() const { return static_cast<const RecorderState&>(*sink_).nodes; }

std::vector<node::Launch> Recorder::launches() const {
    std::vector<node::Launch> out;
    for (const Node& node : nodes())
        if (const auto* const launch = std::get_if<node::Launch>(&node.work)) out.push_back(*launch);
    return out;
}

}  // namespace ikat::runtime
