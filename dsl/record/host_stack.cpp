// SPDX-License-Identifier: Apache-2.0
#include "dsl/record/host_stack.hpp"

namespace ikat::trace {
namespace {

/// More than kernels have between two regions; a larger distance probably means a frame on another stack.
constexpr std::size_t max_words = 1 << 15;

// A sanitizer would report reading another function's frame. The words are read one at a time, because a call of memcpy
// would be checked, too.

__attribute__((no_sanitize("address", "thread"))) void copy(const volatile std::uintptr_t* from, std::uintptr_t* to,
                                                            std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}

__attribute__((no_sanitize("address", "thread"))) bool differ(const volatile std::uintptr_t* a, const std::uintptr_t* b,
                                                              std::size_t count) {
    std::uintptr_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) bits |= a[i] ^ b[i];
    return bits != 0;
}

}  // namespace

HostStack::Mark HostStack::watch(const void* frame) {
    const auto* words = static_cast<const std::uintptr_t*>(frame);
    if (words >= begin_ || std::size_t(begin_ - words) > max_words) return {};
    const Mark mark{begin_, words_.size()};
    const auto count = std::size_t(begin_ - words);
    words_.resize(words_.size() + count);
    copy(words, words_.data() + mark.first, count);
    begin_ = words;
    return mark;
}

bool HostStack::changed(const Mark& mark) {
    if (!mark.outer) return false;
    const bool out = differ(begin_, words_.data() + mark.first, std::size_t(mark.outer - begin_));
    words_.resize(mark.first);
    begin_ = mark.outer;
    return out;
}

}  // namespace ikat::trace
