// SPDX-License-Identifier: Apache-2.0
// Whose line a place outside of the kernel's own text belongs to. A mistake in a function that several kernels call, or
// in a header of the standard library, says little without it:
//
//     f32 helper(const f32& a) { f32 s; return s + a; }        s is read without a value
//     kernel("k", [](InOut<float> y) { y[0] = helper(y[1]); }) note: the kernel calls it here
//
// Nobody tells a function where it is called. But the kernel's next statement is most often the one that the call is a
// part of.
#pragma once
#include <vector>

#include "codegen/support/diagnostic.hpp"

namespace ikat::trace {

class Callers {
public:
    /// Of a kernel that is made at this place: its text is in that file, and not above it.
    explicit Callers(const Location& kernel = {}) : kernel_(kernel) {}

    /// A statement or a subscript is recorded.
    void at(const Location& where);
    /// Adds to diagnostics from elsewhere where the kernel calls what they are in. Those that say the same of the same
    /// place are one.
    void explain(std::vector<Diagnostic>& diagnostics) const;

private:
    struct Call {
        Location place, before, behind;  // outside of the kernel, and its statements around it
    };
    bool is_inside(const Location& where) const;
    void explain(Diagnostic& diagnostic) const;

    Location kernel_;
    Location last_{};          // inside
    std::vector<Call> calls_;  // those from `open_` on wait for the kernel's next statement
    std::size_t open_ = 0;
};

}  // namespace ikat::trace
