// SPDX-License-Identifier: Apache-2.0
// Finds the kernel's line for a location outside the kernel's own text. A mistake in a function that several kernels
// call, or in a header of the standard library, means little without it:
//
//     f32 helper(const f32& a) { f32 s; return s + a; }        s is read without a value
//     kernel("k", [](InOut<float> y) { y[0] = helper(y[1]); }) note: the kernel calls it here
// A function does not know where it is called. But the kernel's next statement is usually the one that contains the
// call.
#pragma once
#include <vector>

#include "codegen/support/diagnostic.hpp"

namespace ikat::trace {

class Callers {
public:
    /// For a kernel defined at this location: its text is in that file, at or below this line.
    explicit Callers(const Location& kernel = {}) : kernel_(kernel) {}

    /// Called for each statement and subscript that is recorded.
    void at(const Location& where);
    /// Adds to diagnostics from other code where the kernel calls that code. Identical diagnostics are merged.
    void explain(std::vector<Diagnostic>& diagnostics) const;

private:
    struct Call {
        Location place, before, after;  // outside the kernel, and the kernel's statements around it
    };
    bool is_inside(const Location& where) const;
    void explain(Diagnostic& diagnostic) const;

    Location kernel_;
    Location last_{};          // the last location inside the kernel
    std::vector<Call> calls_;  // those from `open_` on wait for the kernel's next statement
    std::size_t open_ = 0;
};

}  // namespace ikat::trace
