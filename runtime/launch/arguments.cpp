// SPDX-License-Identifier: Apache-2.0
// What a program gives to a launch, as the arguments of a kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/buffer.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/launch/launch.hpp"
#include "runtime/launch/typed_launch.hpp"

namespace ikat::runtime {

const BufferPart* Argument::memory() const {
    if (is_buffer()) return &part;
    return mapped ? &mapped->buffer.part : nullptr;
}

detail::ArgumentList::ArgumentList(const KernelInfo& kernel, const Location& where) : kernel_(&kernel), where_(&where) {
    list_.reserve(kernel.parameters.size());
}

bool detail::ArgumentList::is_complete() const {
    return list_.size() == kernel_->parameters.size() && absent_ == kernel_->absent.size();
}

bool detail::ArgumentList::is_absent_next() const {
    return absent_ < kernel_->absent.size() && kernel_->absent[absent_].before == list_.size();
}

bool detail::ArgumentList::passes_absent(bool is_given) {
    const bool is_absent = is_absent_next();
    if (is_absent && is_given) refuse_absent(kernel_->absent[absent_].name);
    if (!is_absent && !is_given)
        throw Error(
            Diagnostic{.where = *where_,
                       .message = fmt::format("launch of '{}': '{}' is not given, and the kernel is made with it",
                                              kernel_->name, kernel_->parameters[list_.size()].name),
                       .hint = "pass it, or make the kernel without it: only_if(false, ...)"});
    absent_ += is_absent;
    return is_absent;
}

void detail::ArgumentList::refuse_absent(std::string_view name) const {
    throw Error(Diagnostic{
        .where = *where_,
        .message = fmt::format("launch of '{}': the kernel is made without '{}', which is given", kernel_->name, name),
        .hint = "pass std::nullopt, or make the kernel with it: only_if(true, ...)"});
}

Grid grid(std::uint64_t elements, std::uint32_t threads_per_block) {
    if (threads_per_block == 0) throw Error("a grid of blocks without threads", "give at least 1 thread per block");
    const std::uint64_t blocks = elements / threads_per_block + (elements % threads_per_block != 0);
    if (blocks > std::numeric_limits<std::int32_t>::max())
        throw Error(fmt::format("{} elements need {} blocks of {} threads", elements, blocks, threads_per_block),
                    "a grid has at most 2147483647 blocks: let each thread do several elements (grid_stride)");
    return {.blocks = {std::uint32_t(blocks)}, .threads = {threads_per_block}};
}

namespace {

FloatFormat format_of(ir::Type type) {
    return with_type(type, []<class T>() {
        if constexpr (is_small_float<T>)
            return T::format;
        else
            return sizeof(T) == 4 ? binary32 : binary64;
    });
}

/// The bits of a floating-point number rounded to `type`; nothing if a finite number overflows.
std::optional<std::uint64_t> rounded(double number, ir::Type type) {
    FloatFormat format = format_of(type);
    const std::uint64_t bits = encode(number, format, Rounding::Nearest);
    const std::uint64_t magnitude = bits & format.nan();
    if (std::isfinite(number) && magnitude == format.infinity()) return {};
    if (format.clamps && std::abs(number) > decode(format.beyond() - 1, format)) return {};
    return bits;
}

/// The bits of an integer in `type`; nothing if the type cannot hold its value.
std::optional<std::uint64_t> exact(bool negative, std::uint64_t magnitude, ir::Type type) {
    if (ir::is_float(type)) {
        const FloatFormat format = format_of(type);
        const std::uint64_t down = encode(negative, {magnitude, 0}, format, Rounding::Down);
        const std::uint64_t up = encode(negative, {magnitude, 0}, format, Rounding::Up);
        return down == up ? std::optional(down) : std::nullopt;
    }
    const std::uint64_t sign = std::uint64_t{1} << (ir::bits(type) - 1), mask = sign | (sign - 1);
    const std::uint64_t max_magnitude = negative              ? (ir::is_signed(type) ? sign : 0)
                                        : ir::is_signed(type) ? sign - 1
                                                              : mask;
    if (magnitude > max_magnitude) return {};
    return (negative ? 0 - magnitude : magnitude) & mask;
}

}  // namespace

namespace {

struct Magnitude {
    bool is_negative;
    std::uint64_t value;
    explicit Magnitude(const HostScalar& number)
        : is_negative(number.kind == HostScalar::Kind::Signed && number.integer >> 63),
          value(is_negative ? 0 - number.integer : number.integer) {}
};

}  // namespace

std::optional<std::uint64_t> bits_of(const HostScalar& number, ir::Type type) {
    const Magnitude magnitude(number);
    const ir::Type each = lane(type);  // a number fills both lanes of a packed type
    const auto bits = number.kind == HostScalar::Kind::Floating ? rounded(number.floating, each)
                                                                : exact(magnitude.is_negative, magnitude.value, each);
    if (!bits) return {};
    return is_packed(type) ? *bits << ir::bits(each) | *bits : *bits;
}

std::string to_string(const HostScalar& number) {
    const Magnitude magnitude(number);
    if (number.kind == HostScalar::Kind::Floating) return fmt::format("{}", number.floating);
    return fmt::format("{}{}", magnitude.is_negative ? "-" : "", magnitude.value);
}

Argument adapt(const HostScalar& number, ir::Type type, const KernelInfo& kernel, std::size_t position,
               const Location& where) {
    if (const auto bits = bits_of(number, type)) return {.type = type, .bits = *bits};
    const std::string text = to_string(number);
    throw Error(
        Diagnostic{.where = where,
                   .message = fmt::format("launch of '{}': {} does not fit parameter '{}', which is {}", kernel.name,
                                          text, kernel.parameters[position].name, info(type).name),
                   .hint = "pass a number that the parameter's type can hold, or give the parameter a wider type"});
}

Argument buffer_argument(ir::Type element, const BufferPart& part, const KernelInfo& kernel, std::size_t position,
                         const Location& where) {
    if (part.is_there()) return {.type = element, .part = part};
    throw Error(Diagnostic{
        .where = where,
        .message =
            fmt::format("launch of '{}': the buffer of '{}' {}", kernel.name, kernel.parameters[position].name,
                        part.memory ? "has been freed" : "was moved from, or is an empty slice without a buffer"),
        .hint = part.memory ? freed_hint : "give it a buffer, or buffer.slice(first, count)"});
}

namespace {

emulator::MapType map_type(ir::Type type) {
    using ir::Type, emulator::MapType;
    switch (type) {
        case Type::U16:
        case Type::I16: return MapType::U16;
        case Type::U32: return MapType::U32;
        case Type::I32: return MapType::I32;
        case Type::U64: return MapType::U64;
        case Type::I64: return MapType::I64;
        case Type::F16: return MapType::F16;
        case Type::BF16: return MapType::Bf16;
        case Type::F32: return MapType::F32;
        case Type::F64: return MapType::F64;
        default: return MapType::U8;
    }
}

/// A map of memory without an address, which counts from where the memory begins.
struct MapWithoutAddress final : Counted {
    explicit MapWithoutAddress(const emulator::TensorMap& of) : map(of) {}
    emulator::TensorMap map;
};

/// The map's bytes for where the memory is now.
TensorMapBytes encode_now(const MappedTensor& tensor) {
    emulator::TensorMap map = static_cast<const MapWithoutAddress&>(*tensor.without_address).map;
    const MemoryBlock& memory = *tensor.buffer.part.memory;
    map.address += memory.address();
    return memory.device()->encode(map);
}

emulator::MapSwizzle map_swizzle(std::uint32_t bytes) {
    using enum emulator::MapSwizzle;
    return bytes == 128 ? B128 : bytes == 64 ? B64 : bytes == 32 ? B32 : None;
}

}  // namespace

Argument map_argument(ir::Type element, const BufferPart& part, std::span<const std::uint64_t> extents,
                      std::span<const std::uint64_t> pitches, const KernelInfo& kernel, std::size_t position,
                      const Location& where, std::uint64_t back) {
    const Argument buffer = buffer_argument(element, part, kernel, position, where);
    const auto refuse = [&](const std::string& message, std::string hint) {
        throw Error(Diagnostic{
            .where = where,
            .message = fmt::format("launch of '{}': '{}': {}", kernel.name, kernel.parameters[position].name, message),
            .hint = std::move(hint)});
    };
    const TensorMapInfo& box = *kernel.map_at(std::uint32_t(position));
    emulator::TensorMap map{.type = map_type(element), .rank = box.rank};
    map.address = part.address() - back * info(element).bytes;
    const std::size_t last = box.rank - 1;
    for (std::size_t d = 0; d <= last; ++d) {
        map.extents[d] = extents[last - d];
        map.box[d] = box.box[last - d];
        map.element_strides[d] = box.every[last - d];
        if (d < last) map.strides[d] = pitches[last - 1 - d] * info(element).bytes;
    }
    map.swizzle = map_swizzle(box.swizzle);
    map.fills_with_nan = box.fills_with_nan;
    const bool has_address = part.memory->has_address();
    emulator::TensorMap checked = map;
    if (!has_address) checked.address += 1 << 21;  // as aligned as memory of any device
    if (const std::string wrong = problem(checked); !wrong.empty())
        refuse("the tensor has no map: " + wrong,
               "a tensor begins at a multiple of 16 bytes, and so do its rows: pad the pitch");
    auto mapped =
        make_reference<MappedTensor>(buffer, has_address ? part.memory->device()->encode(map) : TensorMapBytes{});
    if (!has_address) mapped->without_address = make_reference<MapWithoutAddress>(map);
    return {.type = ir::Type::U8, .raw = mapped->bytes, .alignment = 64, .mapped = mapped};
}

std::vector<emulator::LaunchView> views_of(const KernelInfo& kernel, std::span<const Argument> arguments) {
    std::vector<emulator::LaunchView> views;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!arguments[i].is_buffer()) continue;
        emulator::LaunchView& given =
            views.emplace_back(emulator::LaunchView{.argument = kernel.parameters[i].name,
                                                    .address = arguments[i].part.address(),
                                                    .element_bytes = std::uint32_t(info(arguments[i].type).bytes),
                                                    .extents = {arguments[i].elements()},
                                                    .pitches = {}});
        if (const KernelInfo::View* const view = kernel.view_at(std::uint32_t(i))) {
            given.extents.clear();
            for (std::uint32_t d = 0; d < view->rank; ++d) given.extents.push_back(arguments[view->extent(d)].bits);
            for (std::uint32_t d = 0; d + 1 < view->rank; ++d) given.pitches.push_back(arguments[view->pitch(d)].bits);
        }
        for (const KernelInfo::Halo& halo : kernel.halos)
            if (halo.pointer == i) given.halo.assign(halo.widths.begin(), halo.widths.end());
    }
    return views;
}

void own_bytes(Argument& argument) {
    if (argument.raw.empty() || argument.mapped || argument.own) return;
    argument.own = make_reference<RawBytes>(argument.raw);
    argument.raw = argument.own->bytes;
}

std::vector<std::byte> pack(std::span<const Argument> arguments) {
    std::size_t most = 0;
    for (const Argument& argument : arguments) most += 16 + argument.alignment + argument.raw.size();
    std::vector<std::byte> out(most);
    ParameterLayout layout;
    for (const Argument& argument : arguments) {
        if (argument.raw.empty()) {
            const std::uint64_t bits = argument.is_buffer() ? argument.part.address() : argument.bits;
            const std::size_t bytes = argument.is_buffer() ? 8 : info(argument.type).bytes;
            std::memcpy(out.data() + layout.add(bytes, bytes), &bits, bytes);
        } else {
            std::byte* const to = out.data() + layout.add(argument.raw.size(), argument.alignment);
            if (argument.mapped && argument.mapped->without_address)
                std::ranges::copy(encode_now(*argument.mapped), to);
            else
                std::ranges::copy(argument.raw, to);
        }
    }
    out.resize(layout.bytes());
    return out;
}

}  // namespace ikat::runtime
