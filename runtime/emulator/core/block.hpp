// SPDX-License-Identifier: Apache-2.0
// What handlers ask of the block whose warp they run: machine/block.hpp.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ikat::emulator {

struct Fault;
struct MicroOp;
struct Warp;

class Block {
public:
    virtual std::array<std::uint32_t, 3> coordinates() const = 0;
    virtual std::array<std::uint32_t, 3> thread(const Warp& warp, unsigned lane) const = 0;
    /// The kernel prints this.
    virtual void print(std::string_view text) = 0;
    /// The one of these lanes that is elected: always the same in a launch.
    virtual unsigned elected(std::uint32_t lanes) const = 0;
    /// A finding that may be passed over. True: it is no error (checks.hpp), has been noted, and the warp continues;
    /// else the warp stops.
    virtual bool passes(Warp& warp, const MicroOp* op, const Fault& fault) = 0;
    /// These bytes of the cluster's shared memory are read or written. Whether that is a finding which stops the warp,
    /// because an agent has one of them: a copy is in flight to it, or it belongs to a barrier.
    virtual bool is_stopped_by_agent(Warp& warp, const MicroOp* op, const Fault& access) = 0;
    /// An undefined value is stored at this address of the cluster's shared memory: a completely written variable must
    /// be tracked again.
    virtual void reopen(std::uint64_t address) = 0;

    std::string finding;  // text of a finding under construction

protected:
    ~Block() = default;
};

}  // namespace ikat::emulator
