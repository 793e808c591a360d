// SPDX-License-Identifier: Apache-2.0
// Calls of the library that return at once:
//
//     Future<float> total = device.async().sum(x);
//     ...
//     std::printf("%g\n", total.get());    // waits for the sum, and for nothing else
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device.hpp"
#include "stdlib/batch/catalogue_call.hpp"
#include "stdlib/batch/members.hpp"

namespace ikat::stdlib {

/// The stream of calls that return at once, and one that reads numbers beside it.
class AsyncQueue final : public Counted {
public:
    explicit AsyncQueue(runtime::Stream stream) : stream(std::move(stream)) {}
    /// Copies bytes of a part to the host when the event has passed.
    void read(const runtime::Device& device, const runtime::Event& after, const runtime::BufferPart& from, void* to,
              const std::source_location& where);

    const runtime::Stream stream;

private:
    std::once_flag has_reader_{};
    std::optional<runtime::Stream> reader_{};
};

namespace detail {

/// What get() gives for an output: a buffer, or the number that a function has as its only element.
template <class Output>
struct Got {};
template <class T>
struct Got<ArrayOf<T>> {
    using type = runtime::Buffer<T>;
};
template <class T>
struct Got<NumberOf<T>> {
    using type = T;
};
/// ... for all of them: nothing, one, or a tuple.
template <class... Outputs>
struct AllGot {
    using type = std::tuple<typename Got<Outputs>::type...>;
};
template <>
struct AllGot<> {
    using type = void;
};
template <class Output>
struct AllGot<Output> : Got<Output> {};

/// The buffers behind what get() gives.
template <class R>
struct Behind {
    using type = std::tuple<runtime::Buffer<R>>;
};
template <class T>
struct Behind<runtime::Buffer<T>> {
    using type = std::tuple<runtime::Buffer<T>>;
};
template <>
struct Behind<void> {
    using type = std::tuple<>;
};
template <class... R>
struct Behind<std::tuple<R...>> {
    using type = decltype(std::tuple_cat(std::declval<typename Behind<R>::type>()...));
};

/// Throws Error: get() has been called before.
[[noreturn]] void refuse_taken(const std::source_location& where);

}  // namespace detail

/// What a function computes, or will have computed. R is a number if the function gives a single one, as sum and max
/// do, a Buffer if it gives an array, a tuple if it gives several, and void if it changes its arrays in place. One that
/// ends unread waits for nothing; what the emulator has found then comes with the next wait that covers the work, as on
/// any stream. Movable, not copyable.
template <class R>
class Future {
public:
    using Buffers = typename detail::Behind<R>::type;
    using Shapes = std::vector<std::vector<std::uint64_t>>;

    Future(Reference<AsyncQueue> queue, runtime::Device device, runtime::Event done, Buffers buffers, Shapes shapes)
        : queue_(std::move(queue)),
          device_(std::move(device)),
          done_(std::move(done)),
          buffers_(std::move(buffers)),
          shapes_(std::move(shapes)) {}

    /// Waits for the work, and gives what it has computed, once. Throws the errors of its kernels.
    R get(const std::source_location& where = std::source_location::current()) {
        wait(where);
        if (!buffers_) detail::refuse_taken(where);
        Buffers taken = std::move(*buffers_);
        buffers_.reset();
        return given(static_cast<R*>(nullptr), std::move(taken), where);
    }
    /// Waits for the work. Throws the errors of its kernels.
    void wait(const std::source_location& where = std::source_location::current()) const { done_.synchronize(where); }
    /// Whether the work is done. Throws the errors of its kernels if it is.
    bool ready(const std::source_location& where = std::source_location::current()) const { return done_.query(where); }

    /// The point behind its work, for other streams: stream.wait(future.event()).
    const runtime::Event& event() const { return done_; }
    /// The extents of what it gives, the outermost first: of an array, by its number.
    const std::vector<std::uint64_t>& shape(std::size_t output = 0) const { return shapes_.at(output); }

private:
    void given(void*, Buffers&&, const std::source_location&) const {}
    template <class T>
    runtime::Buffer<T> given(runtime::Buffer<T>*, std::tuple<runtime::Buffer<T>>&& taken,
                             const std::source_location&) const {
        return std::get<0>(std::move(taken));
    }
    template <class T>
    T given(T*, std::tuple<runtime::Buffer<T>>&& taken, const std::source_location& where) const {
        T out;
        queue_->read(device_, done_, std::get<0>(taken).memory().whole(), &out, where);
        return out;
    }
    template <class... T>
    std::tuple<T...> given(std::tuple<T...>*, Buffers&& taken, const std::source_location& where) const {
        return std::apply(
            [&](auto&... each) {
                return std::tuple<T...>{given(static_cast<T*>(nullptr), std::tuple{std::move(each)}, where)...};
            },
            taken);
    }

    Reference<AsyncQueue> queue_;
    runtime::Device device_;
    runtime::Event done_;
    std::optional<Buffers> buffers_;
    Shapes shapes_;
};

/// The functions of the catalogue as members that return at once, with a Future of what the function computes. Each
/// object has a stream, on which its calls are done in order; arrays must live until the work is done, and what other
/// streams do with them must be ordered by events, as for any stream.
class Async : public CatalogueMembers<Async> {
public:
    explicit Async(const runtime::Device& device)
        : device_(device), queue_(make_reference<AsyncQueue>(device.stream())) {}

    /// What the members are made of: a call whose arrays and settings are lists. `Outputs` are ArrayOf<T> and
    /// NumberOf<T>.
    template <class... Outputs>
    auto make(const CalledFunction& function, std::vector<CallOperand> operands, const CallSettings& settings) const {
        using R = typename detail::AllGot<Outputs...>::type;
        constexpr std::array<ir::Type, sizeof...(Outputs)> types{ir::type_of<typename Outputs::Element>...};
        const CatalogueCall called(function, std::move(operands), settings, types);
        const runtime::Queue queue(stream(), function.where);
        std::vector<std::vector<std::uint64_t>> shapes;
        for (std::size_t i = 0; i < sizeof...(Outputs); ++i) shapes.push_back(called.shape(i));
        const auto buffers = [&]<std::size_t... i>(std::index_sequence<i...>) {
            return typename Future<R>::Buffers{
                queue.template buffer<typename Outputs::Element>(called.size(i), called.name(i))...};
        };
        auto made = buffers(std::index_sequence_for<Outputs...>());
        const auto parts = std::apply(
            [](const auto&... each) {
                return std::array<runtime::BufferPart, sizeof...(each)>{each.memory().whole()...};
            },
            made);
        called.run(queue, parts);
        return Future<R>(queue_, device_, stream().record(), std::move(made), std::move(shapes));
    }

    /// Where the work goes: for events, and for other work in order with it.
    const runtime::Stream& stream() const { return queue_->stream; }

private:
    friend class CatalogueMembers<Async>;

    template <class X>
    CallOperand operand(X&& x, const std::source_location&) const {
        return operand_of(std::forward<X>(x));
    }
    runtime::Device device_;
    Reference<AsyncQueue> queue_;
};

}  // namespace ikat::stdlib
