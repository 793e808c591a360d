// SPDX-License-Identifier: Apache-2.0
// Calls of the library as members, which are recorded and run together:
//
//     Batch b(device);
//     auto y = b.scale(b.relu(x), 2.0f);
//     b.execute();
//     std::vector<float> host = y.download();
//
// The catalogue knows the shapes of what a function makes, so a call makes its outputs itself. What relu made here
// gives its memory back behind the call of scale, since the program does not hold it.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/exec/deferred.hpp"
#include "stdlib/batch/catalogue_call.hpp"
#include "stdlib/batch/members.hpp"

namespace ikat::stdlib {

/// What a value of a batch is a handle of.
class BatchArray : public Counted {
public:
    BatchArray(std::vector<std::uint64_t> shape, const runtime::Deferred& of, std::string name,
               const std::source_location& where)
        : shape(std::move(shape)), name(std::move(name)), where(where), run(of.run()), sink(of.sink()) {}

    /// Throws Error if it has not been computed.
    void check_computed(const std::source_location& asked) const;
    /// Throws Error if it is of another batch, or will never be computed.
    void check_used_by(const runtime::Deferred& batch, const std::source_location& asked) const;

    const std::vector<std::uint64_t> shape;
    const std::string name;
    const std::source_location where;  // of the call that made it
    const Reference<runtime::Deferred::Run> run;
    const Reference<runtime::Sink> sink;
};

/// An array that a call of a batch makes. Copies are the same array, whose memory exists until the last of them has
/// ended and the calls that use it are done.
template <class T>
class BatchValue {
public:
    using element_type_of_value = T;
    struct Object final : BatchArray {
        template <class... Of>
        explicit Object(runtime::Buffer<T> memory, Of&&... of)
            : BatchArray(std::forward<Of>(of)...), buffer(std::move(memory)) {}
        runtime::Buffer<T> buffer;
    };
    explicit BatchValue(Reference<Object> object) : object_(std::move(object)) {}

    /// Its extents, the outermost first. A number is an array of one element.
    const std::vector<std::uint64_t>& shape() const { return object().shape; }
    std::size_t size() const { return object().buffer.size(); }

    /// The elements, row after row. Throws Error before the batch has been executed; waits for the device.
    std::vector<T> download(const std::source_location& where = std::source_location::current()) const {
        object().check_computed(where);
        return object().buffer.download();
    }
    /// The memory, for other work. Throws Error before the batch has been executed.
    runtime::BufferSlice<T> slice(const std::source_location& where = std::source_location::current()) const {
        object().check_computed(where);
        return object().buffer;
    }

    /// Throws Error if it was moved from.
    Object& object() const {
        if (!object_) throw Error(runtime::moved_from, runtime::moved_from_hint);
        return *object_;
    }

private:
    Reference<Object> object_;
};

namespace detail {
/// Throws Error for an array that is larger than any memory.
[[noreturn]] void refuse_size(std::string_view name, const std::source_location& where);
}  // namespace detail

/// Calls of functions, which are recorded, and run by execute(). A member for each function of the catalogue takes the
/// arrays that the function reads and its settings, and gives a value for each array that it makes. Arrays are buffers,
/// slices, views and values of this batch; those of the program must live until the batch has been executed. What a
/// function changes in place, such as y of residual_add, it changes where it is.
///
/// A batch is of a device, for whose end execute() waits, or of a stream or another queue, where that enqueues the
/// work. What does not fit is an Error with the line of the call, before anything has run. Other functions record their
/// work if they are called with a batch as their queue. It is for one thread.
class Batch : public CatalogueMembers<Batch> {
public:
    template <class T>
    using Value = BatchValue<T>;

    explicit Batch(const runtime::Queue& queue) : work_(queue) {}

    /// Runs what has been recorded; recording begins anew then, and values keep what they have. Throws the errors of
    /// kernels as a launch does.
    void execute(const std::source_location& where = std::source_location::current()) const { work_.execute(where); }

    /// An array without contents, for what functions of the program write.
    template <class T>
    Value<T> array(std::initializer_list<std::uint64_t> shape, std::string_view name = "array",
                   const std::source_location& where = std::source_location::current()) const {
        std::uint64_t size = 1;
        for (const std::uint64_t extent : shape)
            if (__builtin_mul_overflow(size, extent, &size) || size >> 40) detail::refuse_size(name, where);
        return value<T>(size, shape, std::string(name), where);
    }

    using CatalogueMembers<Batch>::call;
    /// A function of the program, f(queue, x...), is called now, and the work that it gives the queue is recorded.
    /// Values of the batch are slices of all their elements there.
    template <class F, class... A>
    requires(!std::is_convertible_v<F, CalledFunction>) void call(F&& f, A&&... arguments) const {
        const std::size_t before = work_.size();
        try {
            std::forward<F>(f)(runtime::Queue(work_), unwrapped(std::forward<A>(arguments))...);
        } catch (...) {
            work_.shrink(before);
            throw;
        }
    }

    /// What the members are made of: a call whose arrays and settings are lists. `Outputs` are ArrayOf<T> and
    /// NumberOf<T>.
    template <class... Outputs>
    auto make(const CalledFunction& function, std::vector<CallOperand> operands, const CallSettings& settings) const {
        constexpr std::array<ir::Type, sizeof...(Outputs)> types{ir::type_of<typename Outputs::Element>...};
        const CatalogueCall called(function, std::move(operands), settings, types);
        const std::size_t before = work_.size();
        try {
            const auto values = [&]<std::size_t... i>(std::index_sequence<i...>) {
                return std::tuple{value<typename Outputs::Element>(called.size(i), called.shape(i), called.name(i),
                                                                   function.where)...};
            };
            auto made = values(std::index_sequence_for<Outputs...>());
            const auto parts = std::apply(
                [](const auto&... each) {
                    return std::array<runtime::BufferPart, sizeof...(each)>{each.object().buffer.memory().whole()...};
                },
                made);
            called.run(runtime::Queue(work_, function.where), parts);
            if constexpr (sizeof...(Outputs) == 1)
                return std::get<0>(std::move(made));
            else if constexpr (sizeof...(Outputs) > 1)
                return made;
        } catch (...) {
            work_.shrink(before);
            throw;
        }
    }

    const runtime::Device& device() const { return work_.device(); }
    const Reference<runtime::Sink>& sink() const { return work_.sink(); }

private:
    friend class CatalogueMembers<Batch>;

    template <class X>
    CallOperand operand(X&& x, const std::source_location& where) const {
        if constexpr (requires { x.object().check_used_by(work_, where); }) {
            auto& object = x.object();
            object.check_used_by(work_, where);
            runtime::BufferSlice<ElementOf<X>> all = object.buffer;
            return {runtime::TensorView(ir::type_of<ElementOf<X>>, all.part(), object.shape), true};
        } else {
            return operand_of(std::forward<X>(x));
        }
    }
    template <class X>
    decltype(auto) unwrapped(X&& x) const {
        if constexpr (requires { x.object().check_used_by(work_, {}); }) {
            x.object().check_used_by(work_, x.object().where);
            return runtime::BufferSlice<ElementOf<X>>(x.object().buffer);
        } else {
            return std::forward<X>(x);
        }
    }

    template <class T>
    Value<T> value(std::uint64_t size, std::vector<std::uint64_t> shape, std::string name,
                   const std::source_location& where) const {
        auto buffer = runtime::Queue(work_, where).template buffer<T>(size, name);
        return Value<T>(make_reference<typename Value<T>::Object>(std::move(buffer), std::move(shape), work_,
                                                                  std::move(name), where));
    }
    runtime::Deferred work_;
};

}  // namespace ikat::stdlib
