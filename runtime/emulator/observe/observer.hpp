// SPDX-License-Identifier: Apache-2.0
// Who watches a kernel run. It is settled when the kernel is decoded: an observer puts ops of its own into the code,
// before those that it watches, and handlers of its own in the place of others. Code that nobody watches has none of
// them, and no handler asks who is there. A kernel is decoded once for each set of observers.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace ikat::emulator {

class Lowering;
struct Micro;
struct MemoryAccess;

/// A set of observers.
using Observers = std::uint8_t;
inline constexpr Observers observes_traffic = 1,  // traffic_counter.hpp
    observes_definedness = 2;                     // undefined.hpp

/// One of them, while a kernel is decoded. Both are called in the order of the code, and may call Lowering::put.
struct Observer {
    /// An instruction is about to access global memory, or any, by one op or several.
    std::function<void(Lowering&, const MemoryAccess&)> access{};
    /// An op is about to be put; its handler may still become another one.
    std::function<void(Lowering&, Micro&)> op{};
};

Observer observe_traffic();
Observer observe_definedness();

inline std::vector<Observer> attach(Observers set) {
    std::vector<Observer> all;
    if (set & observes_traffic) all.push_back(observe_traffic());
    if (set & observes_definedness) all.push_back(observe_definedness());
    return all;
}

}  // namespace ikat::emulator
