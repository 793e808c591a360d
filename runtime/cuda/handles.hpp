// SPDX-License-Identifier: Apache-2.0
// What the handles of a CUDA device are to the driver.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/layouts.hpp"

namespace ikat::runtime::cuda {

template <class Handle, class Pointer>
Handle to_handle(Pointer pointer) {
    return Handle(reinterpret_cast<std::uintptr_t>(pointer));
}

/// A module.
struct Loaded {
    Module module = nullptr;
    Layouts layouts{};  // empty, unless a parameter of the module is wide
    /// An entry that has been launched.
    struct Entry {
        Function function = nullptr;
        int fixed_shared = 0;             // static shared memory, bytes
        bool has_dynamic_shared = false;  // all that the device gives has been asked for
        const Layout* layout = nullptr;
    };
    std::map<std::string, Entry, std::less<>> entries{};
    std::mutex mutex{};  // locked for these
};
inline Loaded& to_loaded(ModuleHandle module) { return *reinterpret_cast<Loaded*>(std::uintptr_t(module)); }
inline Stream to_stream(StreamHandle stream) { return reinterpret_cast<Stream>(std::uintptr_t(stream)); }
inline Event to_event(EventHandle event) { return reinterpret_cast<Event>(std::uintptr_t(event)); }

}  // namespace ikat::runtime::cuda
