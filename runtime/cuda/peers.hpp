// SPDX-License-Identifier: Apache-2.0
// Which other devices' memory the kernels of a device reach.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>

#include "runtime/cuda/driver.hpp"

namespace ikat::runtime::cuda {

/// Of a device that has been opened; thread-safe. Devices that are opened on one GPU share its context, and all memory.
class Peers {
public:
    /// The context is set by the time that the others are called.
    Peers(const Driver& driver, DeviceId id, const Context& context) : driver_(driver), id_(id), context_(context) {}

    bool can_reach(const Peers& other) const;
    bool reaches(const Peers& other) const;
    /// With the context of this device current. Throws Error if the driver refuses it.
    void set(const Peers& other, bool is_enabled);

private:
    static std::uint64_t next_number();

    const Driver& driver_;
    const DeviceId id_;
    const Context& context_;
    const std::uint64_t number_ = next_number();  // of those that this process has opened
    mutable std::mutex mutex_;
    std::set<std::uint64_t> reached_;  // by number: a device that is opened again has to be enabled again
};

}  // namespace ikat::runtime::cuda
