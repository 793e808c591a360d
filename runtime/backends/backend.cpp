// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend.hpp"

#include <fmt/format.h>

#include <vector>

namespace ikat::runtime {

void Backend::write(std::uint64_t to, std::span<const std::byte> from, StreamHandle stream) {
    auto* const host = const_cast<std::byte*>(from.data());
    copy({.to = {.address = to}, .from = {.host = host}, .bytes = from.size()}, stream);
}

void Backend::read(std::uint64_t from, std::span<std::byte> to, StreamHandle stream) {
    copy({.to = {.host = to.data()}, .from = {.address = from}, .bytes = to.size()}, stream);
}

void Backend::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, StreamHandle stream) {
    copy({.to = {.address = to}, .from = {.address = from}, .bytes = bytes}, stream);
}

void Backend::wait_for_peer(Backend& of, EventHandle event, StreamHandle) { of.synchronize(event); }

void Backend::set_peer_access(Backend& other, bool is_enabled) {
    if (is_enabled)
        throw Error(
            fmt::format("kernels of {} cannot reach memory of {}", properties().selector, other.properties().selector),
            "can_access_peer() tells: copy what they need");
}

void Backend::copy_through_host(const RawCopy& asked, StreamHandle stream) {
    std::vector<std::byte> between(asked.bytes * asked.rows * asked.planes);
    RawCopy half = asked;
    half.source = nullptr;
    half.to = {.host = between.data(), .row_pitch = asked.bytes, .plane_pitch = asked.bytes * asked.rows};
    asked.source->copy(half, default_stream);
    asked.source->synchronize(default_stream);
    half.from = half.to, half.to = asked.to;
    copy(half, stream);
    synchronize(stream);
}

}  // namespace ikat::runtime
