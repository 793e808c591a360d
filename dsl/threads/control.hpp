// SPDX-License-Identifier: Apache-2.0
// Control flow on the device. The lambdas run once, at capture, and record what all threads and iterations do.
//
//     if_(i < n, [&] { y[i] = 0; }).else_([&] { ... });
//     for (auto k : range(0, n, 4).unroll(2)) sum += x[k];
//     while_([&] { return i < n; }, [&] { i = i * 2; });
//
// C++'s own if and for over host values choose what is recorded: a host loop is an unrolled one.
#pragma once
#include "dsl/lanes/registers.hpp"
#include "dsl/memory/memory.hpp"
#include "dsl/values/math.hpp"

namespace ikat {
namespace detail {

/// The body of a region as the recorder calls it: a lambda that returns nothing and is not mutable.
template <class F>
trace::Body body_of(F& f) {
    constexpr bool callable = requires { f(); }
    , is_const = requires { std::as_const(f)(); };
    static_assert(callable, "the body of a region is a lambda without parameters: if_(condition, [&] { ... })");
    static_assert(!callable || is_const,
                  "the body of a region must not be a mutable lambda, which assigns to copies: write [&] { ... }");
    if constexpr (is_const) {
        static_assert(
            std::is_void_v<decltype(std::as_const(f)())>,
            "the body of if_, else_if, else_ and while_ returns nothing, and a value would be lost: assign it "
            "to a variable that is declared before, or end the thread with return_()");
        return {[](void* object) { (*static_cast<const F*>(object))(); },
                const_cast<void*>(static_cast<const void*>(&f))};
    }
    return {};
}
template <class F>
trace::Condition condition_of(F& f) {
    constexpr bool returns = !std::is_void_v<decltype(f())>;
    static_assert(returns, "the condition of while_ and else_if returns a pred: [&] { return i < n; }");
    if constexpr (returns)
        return {[](void* object) -> trace::Recorded { return Incoming<bool>((*static_cast<F*>(object))()).value(); },
                const_cast<void*>(static_cast<const void*>(&f))};
    return {};
}

}  // namespace detail

/// An if_ that may be continued in the same expression.
class If {
public:
    explicit If(const trace::If& open) : open_(open) {}
    /// Threads for which the condition is false do what f records.
    template <class F>
    void else_(F&& f, const trace::Where& where = trace::Where::current()) && {
        trace::else_(open_, detail::body_of(f), where);
    }
    /// The condition is a lambda: it is computed only if the earlier ones are false.
    template <class C, class F>
    If else_if(C&& condition, F&& f, const trace::Where& where = trace::Where::current()) && {
        static_assert(
            requires { condition(); },
            "the condition of else_if is a lambda, so that it is computed only if it is needed: else_if([&] { "
            "return "
            "a < b; }, [&] { ... })");
        if constexpr (requires { condition(); })
            return If(trace::else_if(open_, detail::condition_of(condition), detail::body_of(f), where));
        else
            return If(open_);
    }

private:
    trace::If open_;
};

/// Threads for which the condition, a pred, is true do what f records. `.else_(f)` may follow.
template <class C, class F>
If if_(C&& condition, F&& f, const trace::Where& where = trace::Where::current()) {
    if constexpr (std::is_same_v<std::remove_cvref_t<C>, bool>) {
        static_assert(always_false<C>, "this condition is known on the host: write if, which chooses what is recorded");
        return If({});
    } else {
        return If(trace::if_(Incoming<bool>(std::forward<C>(condition)).value(), detail::body_of(f), where));
    }
}

/// While condition(), a function of a pred, is true, a thread repeats what f records.
template <class C, class F>
void while_(C&& condition, F&& f, const trace::Where& where = trace::Where::current()) {
    static_assert(
        requires { condition(); },
        "the condition of while_ is a lambda, because it is computed in each iteration: "
        "while_([&] { return i < n; }, [&] { ... })");
    if constexpr (requires { condition(); }) trace::while_(detail::condition_of(condition), detail::body_of(f), where);
}

/// Leaves the innermost loop, continues with its next iteration, ends the thread.
inline void break_(const trace::Where& where = trace::Where::current()) { trace::break_(where); }
inline void continue_(const trace::Where& where = trace::Where::current()) { trace::continue_(where); }
inline void return_(const trace::Where& where = trace::Where::current()) { trace::return_(where); }
/// Ends the threads for which the condition holds, even inside a function.
template <class C>
void return_if(C&& condition, const trace::Where& where = trace::Where::current()) {
    auto leave = [&] { trace::return_(where); };
    if_(std::forward<C>(condition), leave, where);
}

/// Returns a value from a device_fn() or an inline_fn(), from inside any regions and loops.
template <Operand V>
void return_value(V&& v, const trace::Where& where = trace::Where::current()) {
    const ir::Type type = trace::returned_type(where);
    if (type == ir::Type::Void) return trace::return_value(ir::type_of<DeviceTypeOf<V>>, {}, where);
    if constexpr (DeviceValue<V> || std::is_same_v<std::remove_cvref_t<V>, bool>) {
        using T = DeviceTypeOf<V>;
        trace::return_value(ir::type_of<T>, Incoming<T>(std::forward<V>(v), where).value(), where);
    } else {
        trace::return_value(type, detail::literal_of(type, v), where);
    }
}
/// ... from a function that returns nothing.
inline void return_value(const trace::Where& where = trace::Where::current()) {
    trace::returned_type(where);
    trace::return_value(ir::Type::Void, {}, where);
}

namespace detail {

template <class F>
class InlineFunction {
public:
    InlineFunction(F body, const trace::Where& where) : body_(std::move(body)), where_(where) {}

    template <class... A>
    auto operator()(A&&... arguments) const {
        using Given = decltype(body_(std::forward<A>(arguments)...));
        if constexpr (std::is_void_v<Given>) {
            trace::Inlined scope(ir::Type::Void, where_);
            body_(std::forward<A>(arguments)...);
            scope.end();
        } else {
            static_assert(Operand<Given>, "a function with return_value() returns a number, a pred or nothing");
            using R = DeviceTypeOf<Given>;
            trace::Inlined scope(ir::type_of<R>, where_);
            return Leaf<R>(scope.end(Incoming<R>(body_(std::forward<A>(arguments)...), where_).value(), where_));
        }
    }

private:
    F body_;
    trace::Where where_;
};

}  // namespace detail

/// A function that is inlined where it is called and may use return_value(). Without return_value() any C++ function
/// will do.
///
///     const auto root = inline_fn([](f32 x) {
///         if_(x < 0, [&] { return_value(0); });
///         return sqrt(x);
///     });
template <class F>
auto inline_fn(F body, const trace::Where& where = trace::Where::current()) {
    return detail::InlineFunction<F>(std::move(body), where);
}

/// A product of floats and the sum that uses it may become one fma, if both are written in the lambda: one rounding
/// instead of two. Returns what the lambda returns.
template <class F>
auto contract(F&& f) {
    const trace::Contraction inside(true);
    return f();
}
/// Nothing in the lambda is contracted, whatever surrounds it.
template <class F>
auto exact(F&& f) {
    const trace::Contraction inside(false);
    return f();
}

namespace detail {
/// The counter type of a range of T: 32 bits for integers of 8 and 16 bits.
template <class T>
using CountedIn =
    std::conditional_t<(sizeof(T) >= 4), T, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;
/// The counter type of a range that counts down: unsigned, so that the distance may span all of T.
template <class T>
using DistanceOf = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;
}  // namespace detail

/// begin, begin + step, ... below end. The bounds are read once; the loop never wraps.
template <class T>
class [[nodiscard]] Range {
public:
    Range(const trace::Recorded& begin, const trace::Recorded& end, const trace::Recorded& step,
          const trace::Where& where)
        : begin_(begin), end_(end), step_(step), where_(where) {}
    /// A range from `first` downwards: the loop counts the distance.
    static Range down(const trace::Recorded& first, const trace::Recorded& distance, const trace::Recorded& step,
                      const trace::Where& where) {
        Range out(trace::literal(counter_type<true>, std::uint64_t{0}), distance, step, where);
        out.first_ = first;
        out.down_ = true;
        return out;
    }

    /// The unrolling factor; the result is the same.
    Range unroll(std::uint32_t factor) const {
        Range out = *this;
        out.unroll_ = factor;
        return out;
    }

    class Iterator {
    public:
        explicit Iterator(const Range& range)
            : loop_(range.down_ ? counter_type<true> : counter_type<false>, range.begin_, range.end_, range.step_,
                    range.unroll_, range.where_),
              first_(range.first_),
              down_(range.down_) {}
        Leaf<T> operator*() {
            if (down_) {
                const Leaf<Distance> back(loop_.open());
                return value(cast<T>(Leaf<Distance>(first_) - back));
            }
            if constexpr (std::is_same_v<T, detail::CountedIn<T>>)
                return Leaf<T>(loop_.open());
            else
                return value(cast<T>(Leaf<detail::CountedIn<T>>(loop_.open())));
        }
        void operator++() { done_ = loop_.close(); }
        bool operator!=(std::nullptr_t) const { return !done_; }

    private:
        trace::RangeLoop loop_;
        trace::Recorded first_;
        bool down_ = false, done_ = false;
    };
    Iterator begin() const { return Iterator(*this); }
    std::nullptr_t end() const { return nullptr; }

private:
    using Distance = detail::DistanceOf<T>;
    template <bool down>
    static constexpr ir::Type counter_type = ir::type_of<std::conditional_t<down, Distance, detail::CountedIn<T>>>;

    trace::Recorded begin_, end_, step_;
    trace::Recorded first_;  // of a range that counts down
    bool down_ = false;
    std::uint32_t unroll_ = 0;
    trace::Where where_;
};

namespace detail {

/// The loop variable's type: that of the bounds that are device values, else u32, the type of indices.
template <class... V>
using RangeType = std::conditional_t<(DeviceValue<V> || ...), CommonType<V...>, std::uint32_t>;

/// One of the numbers that define a range.
template <class T, class V>
trace::Recorded bound(V&& v, const trace::Where& where) {
    const trace::Recorded given = Incoming<T>(std::forward<V>(v), where).value();
    if constexpr (std::is_same_v<T, CountedIn<T>>)
        return given;
    else
        return cast<CountedIn<T>>(Leaf<T>(given)).recorded();
}

template <class A, class B, class S>
auto make_range(A&& begin, B&& end, S&& step, const trace::Where& where) {
    using T = RangeType<A, B, S>;
    static_assert(ir::contains(ir::AnyInt, ir::type_of<T>), "a range counts in integers");
    if constexpr (!DeviceValue<S>) {
        if (trace::counts_down(static_cast<double>(step), where)) {
            using Wide = CountedIn<T>;
            using Distance = DistanceOf<T>;
            const Leaf<Wide> first(trace::settled(trace::committed(bound<T>(std::forward<A>(begin), where))));
            const Leaf<Wide> last(trace::settled(trace::committed(bound<T>(std::forward<B>(end), where))));
            const auto from = bit_cast<Distance>(first), to = bit_cast<Distance>(last);
            const auto distance = select(first > last, from - to,
                                         Leaf<Distance>(trace::literal(ir::type_of<Distance>, std::uint64_t{0})));
            return Range<T>::down(from.recorded(), distance.recorded(),
                                  trace::literal(ir::type_of<Distance>, std::uint64_t(-std::int64_t(step))), where);
        }
    }
    const trace::Recorded values[] = {bound<T>(std::forward<A>(begin), where), bound<T>(std::forward<B>(end), where),
                                      bound<T>(std::forward<S>(step), where)};
    return Range<T>(values[0], values[1], values[2], where);
}

}  // namespace detail

/// A loop on the device, `for (auto i : range(begin, end, step))`. Begin is 0 and step 1 where they are not given; the
/// bounds are read once, and the end is left out. With a negative host number as the step it counts down.
template <Operand E>
auto range(E&& end, const trace::Where& where = trace::Where::current()) {
    return detail::make_range(0, std::forward<E>(end), 1, where);
}
template <Operand B, Operand E>
auto range(B&& begin, E&& end, const trace::Where& where = trace::Where::current()) {
    return detail::make_range(std::forward<B>(begin), std::forward<E>(end), 1, where);
}
template <Operand B, Operand E, Operand S>
auto range(B&& begin, E&& end, S&& step, const trace::Where& where = trace::Where::current()) {
    return detail::make_range(std::forward<B>(begin), std::forward<E>(end), std::forward<S>(step), where);
}

}  // namespace ikat
