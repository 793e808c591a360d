// SPDX-License-Identifier: Apache-2.0
// Memory of a device as everything knows it that uses it: the buffer that owns it, parts of that, and work on it. It
// ends when its owner does; whoever else has a Reference can ask whether it has.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/support/reference.hpp"
#include "runtime/backend.hpp"

namespace ikat::runtime {

class PoolObject;
class Sink;

/// Memory of a device, which is released with the last reference to it.
class MemoryBlock final : public Counted {
public:
    /// `bytes` bytes of the pool's device that are allocated at once. Throws Error if there are not that many. The name
    /// is for messages.
    MemoryBlock(Reference<PoolObject> pool, std::size_t bytes, std::string_view name);
    /// ... or of the pool, when begin() is called; end() is work for the queue then.
    MemoryBlock(Reference<PoolObject> pool, std::size_t bytes, std::string_view name, Reference<Sink> queue);
    ~MemoryBlock() override;

    /// 0 before begin(), if that was left for later.
    std::uint64_t address() const { return address_; }
    bool has_address() const { return address_ != 0; }
    std::size_t bytes() const { return bytes_; }
    const std::string& name() const { return name_; }
    /// The name in messages from now on.
    void rename(std::string_view name);
    Backend* device() const { return device_.get(); }
    /// Waits for all work of the device; throws its errors.
    void synchronize() const;

    /// Called by the owner: frees the memory, or asks the queue to. The object stays for those that still refer to it.
    void end() noexcept;
    bool is_over() const { return is_over_; }

    /// At a point of a stream: allocates the memory if that was left for later, and frees it.
    void begin(StreamHandle stream);
    void finish(StreamHandle stream) noexcept;
    /// From now on it exists as long as somebody refers to it, whatever ends: work on it may be done more than once.
    void keep() { is_kept_ = true; }
    /// Instead of begin(): it is the memory of another block of as many bytes, which exists as long as this one.
    void share(Reference<MemoryBlock> other);

private:
    /// Frees it when all work that the device has been given is done.
    void release() noexcept;

    Reference<PoolObject> pool_;
    Reference<Backend> device_;
    std::uint64_t address_ = 0;
    std::size_t bytes_ = 0;
    std::string name_;
    std::uint32_t pool_block_ = 0;
    bool is_of_pool_ = false;
    bool exists_ = false, is_over_ = false;
    std::atomic<bool> is_kept_ = false;  // a stream may free it meanwhile
    Reference<Sink> queue_{};
    Reference<MemoryBlock> shared_{};  // whose memory it is
};

/// Bytes of a buffer.
struct BufferPart {
    Reference<MemoryBlock> memory{};
    std::uint64_t offset = 0, bytes = 0;

    bool is_there() const { return memory && !memory->is_over(); }
    std::uint64_t address() const { return memory->address() + offset; }
    /// What is left of it after its first bytes.
    BufferPart from(std::uint64_t first) const {
        const std::uint64_t skipped = first < bytes ? first : bytes;
        return {memory, offset + skipped, bytes - skipped};
    }
};

/// Whether two parts share a byte. The gaps between the rows of views count.
bool overlap(const BufferPart& a, const BufferPart& b);

}  // namespace ikat::runtime
