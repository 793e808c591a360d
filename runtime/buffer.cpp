// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "runtime/exec/node.hpp"
#include "runtime/exec/sink.hpp"
#include "runtime/graph/recording.hpp"
#include "runtime/pool/pool_object.hpp"

namespace ikat::runtime {
namespace {

void check_size(const Allocation& memory, std::size_t bytes, std::string_view what, std::size_t offset = 0) {
    if (offset > memory.bytes() || bytes > memory.bytes() - offset)
        throw Error(
            fmt::format("{} of {} bytes for buffer '{}', which has {}", what, bytes, memory.name(), memory.bytes()),
            "make the buffer large enough");
}

}  // namespace

MemoryBlock::MemoryBlock(Reference<PoolObject> pool, std::size_t bytes, std::string_view name)
    : pool_(std::move(pool)),
      device_(pool_->device()),
      address_(device_->allocate(bytes, name)),
      bytes_(bytes),
      name_(name),
      exists_(true) {}

MemoryBlock::MemoryBlock(Reference<PoolObject> pool, std::size_t bytes, std::string_view name, Reference<Sink> queue)
    : pool_(std::move(pool)),
      device_(pool_->device()),
      bytes_(bytes),
      name_(name),
      is_of_pool_(true),
      queue_(std::move(queue)) {}

MemoryBlock::~MemoryBlock() { release(); }

void MemoryBlock::begin(StreamHandle stream) {
    if (exists_) return;
    const PoolObject::Grant grant = pool_->allocate(bytes_, name_, stream);
    address_ = grant.address, pool_block_ = std::uint32_t(grant.block);
    exists_ = true;
}

void MemoryBlock::share(Reference<MemoryBlock> other) {
    address_ = other->address();
    shared_ = std::move(other);
    is_kept_ = true;
}

void MemoryBlock::finish(StreamHandle stream) noexcept {
    if (is_kept_) return;
    is_over_ = true;
    if (std::exchange(exists_, false)) pool_->release({address_, bytes_, pool::BlockId(pool_block_)}, stream);
}

void MemoryBlock::release() noexcept {
    if (!std::exchange(exists_, false)) return;
    is_of_pool_ ? pool_->release({address_, bytes_, pool::BlockId(pool_block_)}) : device_->release(address_);
}

void MemoryBlock::synchronize() const { pool_->synchronize(default_stream); }

void MemoryBlock::end() noexcept {
    if (queue_) {
        const Reference<Sink> queue = std::exchange(queue_, {});
        try {
            queue->take({node::Free{Reference<MemoryBlock>(this)}});
            return;
        } catch (...) {}  // it is freed here, then
    }
    if (is_kept_) return;
    is_over_ = true;
    release();
}

void MemoryBlock::rename(std::string_view name) {
    device_->rename(address_, name);
    name_ = name;
}

bool overlap(const BufferPart& a, const BufferPart& b) {
    if (!a.memory || !b.memory || a.bytes == 0 || b.bytes == 0 || a.memory->device() != b.memory->device())
        return false;
    // What has no address yet has memory of its own.
    const bool is_one = a.memory.get() == b.memory.get();
    if (!is_one && !(a.memory->has_address() && b.memory->has_address())) return false;
    return a.address() < b.address() + b.bytes && b.address() < a.address() + a.bytes;
}

std::size_t checked_bytes(std::size_t count, std::size_t element_bytes, std::string_view name) {
    if (count > std::numeric_limits<std::size_t>::max() / element_bytes)
        throw Error(fmt::format("a buffer '{}' of {} elements", name, count), "that is more than an address can reach");
    return count * element_bytes;
}

Allocation::Allocation(Reference<PoolObject> pool, std::size_t bytes, std::string_view name)
    : block_(make_reference<MemoryBlock>(std::move(pool), bytes, name)) {}

Allocation::~Allocation() {
    if (block_) block_->end();
}

MemoryBlock& Allocation::home() const {
    if (!block_) throw Error(moved_from, moved_from_hint);
    return *block_;
}

void Allocation::write(std::span<const std::byte> from, std::size_t offset) {
    Recording::refuse_wait("an upload", {});
    Backend& device = *home().device();
    check_size(*this, from.size(), "an upload", offset);
    device.write(address() + offset, from, default_stream);
    home().synchronize();
}

void Allocation::read(std::span<std::byte> to, std::size_t offset) const {
    Recording::refuse_wait("a download", {});
    Backend& device = *home().device();
    check_size(*this, to.size(), "a download", offset);
    device.read(address() + offset, to, default_stream);
    home().synchronize();
}

void Allocation::copy(const Allocation& from) {
    Recording::refuse_wait("a copy that is waited for", {});
    Backend& device = *home().device();
    check_size(*this, from.home().bytes(), "a copy");
    if (from.device() != &device)
        throw Error(fmt::format("buffers '{}' and '{}' are on different devices", name(), from.name()),
                    "copy through the host: download, then upload");
    device.copy(address(), from.address(), from.bytes(), default_stream);
    home().synchronize();
}

void Allocation::fill(std::span<const std::byte> element) {
    Recording::refuse_wait("a fill that is waited for", {});
    Backend& device = *home().device();
    device.fill(address(), element, bytes() / element.size(), default_stream);
    home().synchronize();
}

}  // namespace ikat::runtime
