// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and reductions of many bytes (PTX ISA, cp.async.bulk).
//
//     load      global or shared memory -> shared memory of the cluster; then a barrier there counts the bytes
//     store     shared -> global memory; the thread's bulk groups tell when it has been read, and written
//     values    registers -> shared memory of the cluster, as a load (PTX ISA, st.async and red.async)
// The other side may be a box of a tensor that a map describes (tensor_boxes.hpp).
// What a copy moves is read at its start. It arrives at once, at a later operation of this kind, or as late as it may:
// a load when everybody waits, a store when it is waited for or the block ends, as the seed of the launch has it; with
// seed 0, as late as it may. The bytes that a load writes count as unwritten until a thread knows that the phase of the
// barrier is over (in_flight.hpp). What else is wrong in the meantime is found then: that something has written these
// bytes, or changed those that are read; of stores, at the wait.
#pragma once
#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/emulator/agents/bulk/tensor_boxes.hpp"
#include "runtime/emulator/agents/in_flight.hpp"
#include "runtime/emulator/agents/random.hpp"
#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

/// The sources of the op, in this order, each in its slot: the address in shared memory (for two, of the destination)
/// and the other one, with 8 bytes, the number of bytes, the address of the barrier (8 bytes), the blocks of a
/// multicast as a set; then the coordinates of a box, or the values. Those that a form has not are constants. x is
/// bits().
struct BulkForm {
    enum class Kind : std::uint8_t {
        Load,
        Exchange,  // from shared to shared memory
        Store,
        Prefetch,
        PrefetchMap,  // of a tensor; nothing is copied
        Values,       // from registers: st.async and red.async
    };
    Kind kind = Kind::Load;
    Space space = Space::Shared;  // of the destination in shared memory and of the barrier; else of the source there
    bool is_multicast = false;
    bool reduces = false;
    Atomic atomic = Atomic::Add;
    Type type = Type::U32;        // without a map
    std::uint8_t dimensions = 0;  // of a tensor; 0: none

    constexpr std::uint32_t bits() const {
        return std::uint32_t(kind) | std::uint32_t(space) << 3 | std::uint32_t(is_multicast) << 7 |
               std::uint32_t(reduces) << 8 | std::uint32_t(atomic) << 9 | std::uint32_t(type) << 17 |
               std::uint32_t(dimensions) << 25;
    }
    static constexpr BulkForm of(std::uint32_t x) {
        return {.kind = Kind(x & 7),
                .space = Space(x >> 3 & 15),
                .is_multicast = (x >> 7 & 1) != 0,
                .reduces = (x >> 8 & 1) != 0,
                .atomic = Atomic(x >> 9 & 255),
                .type = Type(x >> 17 & 255),
                .dimensions = std::uint8_t(x >> 25)};
    }
};
const MicroOp* start_bulk(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
const MicroOp* commit_bulk(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Waits until only the last x groups of a thread are in flight; with y, until only those still read.
const MicroOp* await_bulk(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// A piece of memory that a copy reads or writes.
struct MemoryRange {
    std::uint64_t address = 0;  // as an instruction sees it
    std::byte* host = nullptr;
    std::uint8_t* bits = nullptr;  // of its buffer or variable: which bytes have been written; nullptr: all
    std::uint64_t offset = 0;      // ... in it
    std::uint64_t bytes = 0;

    Image image() const;
};

/// Those to a block's shared memory, and those that its threads have started from there.
class BulkCopies final : public Agent {
public:
    static constexpr AgentSlot slot = AgentSlot::Bulk;
    enum class Arrival : std::uint8_t { Over, Later, AtLast };
    struct Copy : Flight {
        BulkForm form{};
        Arrival arrival = Arrival::AtLast;
        MemoryRange shared{};  // a load writes it, a store reads it; the address is that of its block
        MemoryRange other{};   // without a box
        std::shared_ptr<const TensorBox> box{};
        Image image{};                // what is copied
        std::uint64_t operation = 0;  // ThreadBlock::next_operation, of the block whose shared memory it is about
        bool has_arrived = false;
        std::uint64_t barrier = 0, phase = 0;  // of a load: the barrier's address, and its phase when it arrived
        std::uint32_t group = 0;               // of a store
        bool was_read = false;                 // ... which is known
        bool was_awaited = false;              // ... as it is known that it has arrived
    };

    explicit BulkCopies(ThreadBlock& block) : block_(block) {}
    void start() override;
    bool start(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
    void commit(const Warp* w, std::uint32_t mask);
    bool await(const MicroOp* op, Warp* w, std::uint32_t mask);
    /// Phases of a barrier before this one are known to be over. False on a finding.
    bool end_phase(const MicroOp* op, Warp* w, unsigned lane, std::uint64_t barrier, std::uint64_t phase);
    /// Of loads and stores; of loads; at the end of the block of all that must.
    void some_arrive() override;
    bool last_arrives() override;
    void finish() override;
    std::optional<FaultCode> claim(std::uint64_t address, std::uint64_t bytes, bool writes) const override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    /// A load in flight to any of these bytes, or nullptr.
    const Copy* over(std::uint64_t address, std::uint64_t bytes) const;

private:
    struct Start;
    bool start_lane(const MicroOp* op, Warp* w, const std::byte* frame, unsigned lane);
    bool start_loads(const Start& start, Copy& copy);
    bool start_load(const Start& start, Copy copy, std::uint64_t place, std::uint64_t barrier);
    bool start_store(const Start& start, Copy& copy);
    std::optional<TensorMap> find_map(const Start& start);
    bool find_box(const Start& start, Copy& copy);
    bool tell(const Start& start, const Copy& copy, ThreadBlock* judge, std::uint64_t barrier);
    void land(Copy& load);
    void write(Copy& store);
    void write_piece(const Copy& store, const Image& image, const TensorBox::Piece& piece);
    void reduce(const Copy& copy, std::byte* to, const std::byte* from, std::size_t bytes) const;
    bool end(const MicroOp* op, Warp* w, unsigned lane, const Copy& load);
    bool is_unchanged(const MicroOp* op, Warp* w, unsigned lane, const Copy& copy, const MemoryRange& from);
    std::array<std::uint32_t, warp_size>& groups_of(const Warp* w);

    ThreadBlock& block_;
    std::list<Copy> loads_, stores_;
    std::vector<std::array<std::uint32_t, warp_size>> groups_;  // by warp and lane
    Chances chances_;
};

}  // namespace ikat::emulator
