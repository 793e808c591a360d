// SPDX-License-Identifier: Apache-2.0
// Finds variables of the host that a region assigns. The frames of the functions that wait while a region is recorded
// stand still: nobody but the region itself can change what is in them.
//
//     int k = 0;                          in the frame of the kernel's lambda
//     if_(c, [&] { k = 5; y[0] = 1; });   k is another one when the lambda returns
//
// It sees locals of the kernel's body and of the functions that it calls, and what lies in them (a vector's size, not
// its elements); no statics, no heap, no locals of whoever made the kernel. The body of a range loop runs in the frame
// of its function, which changes all the time: what it assigns is not seen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ikat::trace {

class HostStack {
public:
    /// Frames above this one are not looked at; null: none are.
    void begin(const void* frame) { begin_ = static_cast<const std::uintptr_t*>(frame); }

    /// What was watched before, and where its words are kept.
    struct Mark {
        const std::uintptr_t* outer = nullptr;
        std::size_t first = 0;
    };
    /// Keeps what the frames from `frame` (__builtin_dwarf_cfa()) to those that are watched already hold.
    Mark watch(const void* frame);
    /// Whether they hold something else now. Calls of both pair up like brackets.
    bool changed(const Mark& mark);

private:
    const std::uintptr_t* begin_ = nullptr;
    std::vector<std::uintptr_t> words_;
};

}  // namespace ikat::trace
