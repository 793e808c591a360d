// SPDX-License-Identifier: Apache-2.0
// What a kernel's contracts say of its parameters.
#include <algorithm>
#include <numeric>

#include "dsl/record/async/clusters.hpp"
#include "dsl/record/kernel_state.hpp"

namespace ikat::trace {

/// Whether it is an optional parameter that the kernel is made without.
bool KernelHandle::State::is_absent(const ParameterName& named) const {
    if (!named.name) return named.position < declared.size() && !declared[named.position].is_there;
    const auto found = std::ranges::find(declared, std::string_view(named.name), &Declared::name);
    return found != declared.end() && !found->is_there;
}

ir::Parameter* KernelHandle::State::promised(Recorder& recorder, const ParameterName& named) const {
    auto& parameters = recorder.kernel.parameters;
    if (!named.name && named.position < declared.size()) return &parameters[declared[named.position].first];
    if (named.name)
        for (ir::Parameter& parameter : parameters)
            if (parameter.name == named.name) return &parameter;
    const std::string which =
        named.name ? "`" + std::string(named.name) + "`" : "number " + std::to_string(named.position);
    recorder.complain("a contract names parameter " + which + ", which the kernel does not have",
                      "contracts name parameters as params(...) does, or by position, from 0", where);
    return nullptr;
}

namespace {

bool is_pointer(const ir::Parameter& parameter) { return parameter.access != ir::Access::Value; }
bool is_integer(const ir::Parameter& parameter) {
    return ir::contains(ir::Int, parameter.type) && !is_pointer(parameter) && !parameter.bytes;
}

}  // namespace

void KernelHandle::State::apply_size(Recorder& recorder, const Contract& contract) const {
    const auto position = [&](const ParameterName& named, bool wanted(const ir::Parameter&),
                              const char* use) -> std::optional<std::uint32_t> {
        if (is_absent(named)) {
            recorder.complain("at_least() multiplies `" + std::string(named.name ? named.name : "a parameter") +
                                  "`, which this kernel is made without",
                              "promise it only where the kernel is made with it", where);
            return {};
        }
        const ir::Parameter* const parameter = promised(recorder, named);
        if (!parameter) return {};
        if (wanted(*parameter)) return std::uint32_t(parameter - recorder.kernel.parameters.data());
        recorder.complain("at_least() " + std::string(use) + ", and `" + parameter->name + "` is not one",
                          "at_least(buffer, n, ...) takes an In, Out or InOut, and i32, u32, i64 or u64", where);
        return {};
    };
    const auto buffer = position(contract.parameter, is_pointer, "is for pointers");
    KernelInfo::MinSize size{.pointer = buffer.value_or(0), .count = contract.value, .per = contract.per};
    for (const ParameterName& factor : contract.factors)
        if (const auto found = position(factor, is_integer, "multiplies integers")) size.factors.push_back(*found);
    if (buffer) recorder.kernel.sizes.push_back(std::move(size));
}

void KernelHandle::State::apply_halo(Recorder& recorder, const Contract& contract) const {
    const ir::Parameter* const parameter = promised(recorder, contract.parameter);
    if (!parameter) return;
    const auto complain = [&](const std::string& what) {
        recorder.complain("halo<> " + what, "halo<1>(\"x\") is for an In or InOut; halo<1, 2>(\"x\") for one of rank 2",
                          where);
    };
    if (parameter->access != ir::Access::In && parameter->access != ir::Access::InOut)
        return complain("is for what is read, and `" + parameter->name + "` is not an In or InOut");
    const auto pointer = std::uint32_t(parameter - recorder.kernel.parameters.data());
    const KernelInfo::View* const view = recorder.kernel.view_at(pointer);
    const std::size_t rank = view ? view->rank : 1, widths = contract.widths.size();
    if (widths != 1 && widths != rank)
        return complain("has " + std::to_string(widths) + " widths, and `" + parameter->name + "` has rank " +
                        std::to_string(rank));
    KernelInfo::Halo halo{.pointer = pointer, .widths = contract.widths};
    halo.widths.resize(rank, contract.widths.front());
    recorder.kernel.halos.push_back(std::move(halo));
}

void KernelHandle::State::apply_contracts(Recorder& recorder) const {
    for (const Contract& contract : contracts) {
        if (is_absent(contract.parameter)) continue;
        if (contract.kind == Contract::Kind::AtLeast) {
            apply_size(recorder, contract);
            continue;
        }
        if (contract.kind == Contract::Kind::Halo) {
            apply_halo(recorder, contract);
            continue;
        }
        ir::Parameter* parameter = promised(recorder, contract.parameter);
        if (!parameter) continue;
        if (contract.kind == Contract::Kind::Aligned && is_pointer(*parameter))
            parameter->alignment = std::max(parameter->alignment, std::uint32_t(contract.value));
        else if (contract.kind == Contract::Kind::MultipleOf && is_integer(*parameter))
            parameter->multiple = std::lcm(parameter->multiple, contract.value);
        else
            recorder.complain(contract.kind == Contract::Kind::Aligned
                                  ? "aligned<> is for pointers, and `" + parameter->name + "` is not one"
                                  : "multiple_of<> is for integers, and `" + parameter->name + "` is not one",
                              "aligned<N> is for In, Out and InOut; multiple_of<N> for i32, u32, i64 and u64", where);
    }
    recorder.kernel.bounds = bounds;
    if (bounds.max_threads > 1024 || (bounds.max_threads == 0 && bounds.min_blocks > 0))
        recorder.complain("launch_bounds() of " + std::to_string(bounds.max_threads) + " threads",
                          "a block has 1 to 1024 threads", where);
    finish_clusters(recorder, where);
}

}  // namespace ikat::trace
