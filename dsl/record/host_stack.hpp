// SPDX-License-Identifier: Apache-2.0
// Finds host variables that a region assigns. The frames of the calling functions do not change while a region is
// recorded, unless the region itself changes them.
//
//     int k = 0;                          in the frame of the kernel's lambda
//     if_(c, [&] { k = 5; y[0] = 1; });   k has changed when the lambda returns
// It sees locals of the kernel's body and of the functions that it calls, and what is stored in them (a vector's size,
// not its elements); no statics, no heap, no locals of the code that creates the kernel. The body of a range loop runs
// in the frame of its function, which changes all the time, so its assignments are not seen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ikat::trace {

class HostStack {
public:
    /// Frames above this one are not watched; null disables watching.
    void begin(const void* frame) { begin_ = static_cast<const std::uintptr_t*>(frame); }

    /// The range that was watched before, and where its words are saved.
    struct Mark {
        const std::uintptr_t* outer = nullptr;
        std::size_t first = 0;
    };
    /// Saves the contents of the frames from `frame` (__builtin_dwarf_cfa()) up to those that are already watched.
    Mark watch(const void* frame);
    /// Whether their contents have changed. Calls of both are nested like brackets.
    bool changed(const Mark& mark);

private:
    const std::uintptr_t* begin_ = nullptr;
    std::vector<std::uintptr_t> words_;
};

}  // namespace ikat::trace
