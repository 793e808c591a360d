// SPDX-License-Identifier: Apache-2.0
// Observers of a running kernel. They are chosen when the kernel is decoded: an observer inserts its own ops before
// those that it watches, and may replace handlers. Code without observers has none of these, and no handler checks for
// observers. A kernel is decoded once for each set of observers.
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

/// An observer while a kernel is decoded. Both functions are called in code order, and may call Lowering::put.
struct Observer {
    /// An instruction is about to access global, shared or generic memory with one or several ops.
    std::function<void(Lowering&, const MemoryAccess&)> access{};
    /// An op is about to be emitted; its handler may still be replaced.
    std::function<void(Lowering&, Micro&)> op{};
};

Observer observe_traffic();
Observer observe_definedness();
/// In modules with asynchronous products of matrices only, before the others (agents/async_products.hpp).
Observer observe_products();
/// In those, and in modules with bulk copies (agents/generic_writes.hpp).
Observer observe_generic_writes();

inline std::vector<Observer> attach(Observers set) {
    std::vector<Observer> all;
    if (set & observes_traffic) all.push_back(observe_traffic());
    if (set & observes_definedness) all.push_back(observe_definedness());
    return all;
}

}  // namespace ikat::emulator
