// SPDX-License-Identifier: Apache-2.0
// What a graph is recorded with and can be given anew: numbers, buffers, and numbers that kernels read from memory.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/buffer.hpp"
#include "runtime/launch/typed_launch.hpp"

namespace ikat::runtime {

class PoolObject;

/// A parameter of a graph with its value.
struct GraphParameter {
    enum class Kind : std::uint8_t { Number, Buffer, DeviceNumber } kind{};
    std::string name;
    ir::Type type = ir::Type::Void;  // of the number, or of a buffer's elements; Void: structs
    std::uint32_t bytes = 0;         // of the number, or of an element
    std::uint64_t bits = 0;          // of the number, as it lies in memory
    BufferPart part{};               // the buffer, or where kernels read the number
};

/// The parameters of one recording, which the function that is recorded asks for:
///
///     Graph g = Graph::record(device, [&](const Queue& q, GraphParameters& its) {
///         q.launch(scale, grid(n, 256), its.number("by", 2.0f), its.buffer("x", x), n);
///     });
class GraphParameters {
public:
    explicit GraphParameters(Reference<PoolObject> memory) : memory_(std::move(memory)) {}

    /// A number that the host knows: its value, at first `value`. Another one takes a new recording, in which it may
    /// not lead to other kernels or grids.
    template <class T>
    requires detail::is_number<T> T number(std::string_view name, T value) {
        return number_of<T>(ask(GraphParameter::Kind::Number, name, ir::type_of<T>, as_bits(value), sizeof(T)));
    }
    /// Elements of a buffer, at first these.
    template <class T>
    BufferSlice<T> buffer(std::string_view name, const BufferSlice<T>& value) {
        return BufferSlice<T>(
            ask(name, ir::type_of<std::remove_const_t<T>>, std::uint32_t(sizeof(T)), value.part()).part);
    }
    template <Element T>
    BufferSlice<T> buffer(std::string_view name, Buffer<T>& value) {
        return buffer(name, BufferSlice<T>(value));
    }
    template <Element T>
    BufferSlice<const T> buffer(std::string_view name, const Buffer<T>& value) {
        return buffer(name, BufferSlice<const T>(value));
    }
    /// A number in memory of the graph, for kernels to read; at first `value`. Another one is written before the next
    /// launch of the graph, and takes no new recording: for what changes with each, as the position of a decoded token.
    template <class T>
    requires detail::is_number<T> BufferSlice<const T> device_number(std::string_view name, T value) {
        return BufferSlice<const T>(
            ask(GraphParameter::Kind::DeviceNumber, name, ir::type_of<T>, as_bits(value), sizeof(T)).part);
    }

    const std::vector<GraphParameter>& list() const { return list_; }
    /// Throws Error if there is none of that name.
    GraphParameter& find(std::string_view name, const Location& where);
    /// Gives it another value. Throws Error for one of another kind, and for a number that its type does not hold.
    void set(GraphParameter& parameter, const HostScalar& number, const Location& where);
    void set(GraphParameter& parameter, ir::Type type, std::uint32_t bytes, const BufferPart& part,
             const Location& where);

    /// A number as it lies in memory.
    template <class T>
    static std::uint64_t as_bits(T value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof(T));
        return bits;
    }

private:
    template <class T>
    static T number_of(const GraphParameter& parameter) {
        T value{};
        std::memcpy(&value, &parameter.bits, sizeof(T));
        return value;
    }
    /// The parameter; a new one has this value.
    const GraphParameter& ask(GraphParameter::Kind kind, std::string_view name, ir::Type type, std::uint64_t bits,
                              std::uint32_t bytes);
    const GraphParameter& ask(std::string_view name, ir::Type type, std::uint32_t bytes, const BufferPart& part);
    GraphParameter* known(GraphParameter::Kind kind, std::string_view name, ir::Type type, std::uint32_t bytes);

    Reference<PoolObject> memory_;  // of the device
    std::vector<GraphParameter> list_;
};

}  // namespace ikat::runtime
