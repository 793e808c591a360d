// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer.hpp"

#include <fmt/format.h>

#include <utility>

namespace ikat::runtime {
namespace {

void check_size(const Allocation& memory, std::size_t bytes, std::string_view what, std::size_t offset = 0) {
    if (offset > memory.bytes() || bytes > memory.bytes() - offset)
        throw Error(
            fmt::format("{} of {} bytes for buffer '{}', which has {}", what, bytes, memory.name(), memory.bytes()),
            "make the buffer large enough");
}

}  // namespace

Allocation::Allocation(Reference<Backend> device, std::size_t bytes, std::string_view name)
    : device_(std::move(device)), address_(device_->allocate(bytes, name)), bytes_(bytes), name_(name) {}

Allocation::~Allocation() {
    life_->is_over = true;
    if (device_) device_->release(address_);
}

Allocation::Allocation(Allocation&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      name_(std::move(other.name_)) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(name_, other.name_);
    return *this;
}

Backend& Allocation::home() const {
    if (!device_) throw Error(moved_from, moved_from_hint);
    return *device_;
}

void Allocation::rename(std::string_view name) {
    home().rename(address_, name);
    name_ = name;
}

void Allocation::write(std::span<const std::byte> from, std::size_t offset) {
    check_size(*this, from.size(), "an upload", offset);
    home().write(address_ + offset, from, default_stream);
    home().synchronize(default_stream);
}

void Allocation::read(std::span<std::byte> to, std::size_t offset) const {
    check_size(*this, to.size(), "a download", offset);
    home().read(address_ + offset, to, default_stream);
}

void Allocation::copy(const Allocation& from) {
    check_size(*this, from.bytes(), "a copy");
    if (from.device() != device())
        throw Error(fmt::format("buffers '{}' and '{}' are on different devices", name_, from.name()),
                    "copy through the host: download, then upload");
    home().copy(address_, from.address(), from.bytes(), default_stream);
    home().synchronize(default_stream);
}

void Allocation::fill(std::span<const std::byte> element) {
    home().fill(address_, element, bytes_ / element.size(), default_stream);
    home().synchronize(default_stream);
}

}  // namespace ikat::runtime
