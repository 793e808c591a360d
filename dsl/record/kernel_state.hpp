// SPDX-License-Identifier: Apache-2.0
// What a kernel's handle keeps: what the user has said of it and, from its first use on, what was captured.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "codegen/support/digest.hpp"
#include "dsl/record/capture.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {

struct KernelHandle::State : Counted {
    std::string name;
    std::vector<std::string> names;    // of the entry's parameters
    std::vector<ParameterType> types;  // ... their types
    struct Declared {
        std::string name;
        std::uint32_t first = 0, count = 0;  // its parameters of the entry
        bool is_there = true;
    };
    std::vector<Declared> declared;  // the lambda's parameters
    std::vector<Diagnostic> misdeclared;
    std::vector<Contract> contracts;
    ir::LaunchBounds bounds;
    bool is_function = false;
    bool contracted = false;  // products and sums into fma
    Code code;
    Location where;

    std::atomic<bool> captured = false;
    std::atomic<std::thread::id> capturing;  // the thread that captures it
    std::optional<ast::KernelTree> kernel;
    std::once_flag has_digest;
    Digest digest;
    std::vector<Diagnostic> diagnostics;
    std::exception_ptr thrown;  // an exception of the user's

    bool is_captured_here() const { return capturing == std::this_thread::get_id(); }
    void capture_once();
    [[noreturn]] void refuse_circle() const;
    void capture(bool compares);
    void check_names(Recorder& recorder) const;
    std::vector<Argument> add_parameters(Recorder& recorder) const;
    Argument add_parameter(Recorder& recorder, std::uint32_t i) const;
    void apply_contracts(Recorder& recorder) const;
    void declare(const std::string& given, const ParameterTypes& as, bool is_there = true);
    bool is_absent(const ParameterName& named) const;
    ir::Parameter* promised(Recorder& recorder, const ParameterName& named) const;
    void apply_size(Recorder& recorder, const Contract& contract) const;
    void apply_halo(Recorder& recorder, const Contract& contract) const;
};

}  // namespace ikat::trace
