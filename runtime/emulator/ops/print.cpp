// SPDX-License-Identifier: Apache-2.0
// The kernel's printf. CUDA's vprintf takes the addresses of a format and of a buffer with the arguments one after the
// other, each at its natural alignment: 4 bytes for int and smaller, 8 for long, double and pointers.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

constexpr std::size_t longest_text = 4096;

/// One lane's printf. Reading stops at the first byte outside memory, which is a finding.
class Printer {
public:
    Printer(const MicroOp* op, Warp* w, unsigned lane, std::uint64_t arguments)
        : op_(op), w_(w), lane_(lane), arguments_(arguments), room_(room_at(*w, arguments)) {}

    bool text_at(std::uint64_t address, std::string& text) {
        for (; text.size() < longest_text; ++address) {
            const std::byte* const from = lane_bytes_written(w_, op_, Space::Generic, lane_, address, 1, false);
            if (!from) return false;
            if (*from == std::byte{0}) return true;
            text.push_back(char(*from));
        }
        return true;
    }

    bool print(const std::string& format) {
        for (std::size_t i = 0; i < format.size(); ++i) {
            if (format[i] != '%') {
                text.push_back(format[i]);
                continue;
            }
            std::size_t end = format.find_first_not_of("-+ #0123456789.hlzjt", i + 1);
            if (end == std::string::npos) end = format.size() - 1;
            if (!conversion(format.substr(i, end - i), format[end])) return false;
            i = end;
        }
        return true;
    }

    std::string text;

private:
    /// Bytes up to the end of the variable that holds the arguments; unlimited if it is not known.
    static std::uint64_t room_at(const Warp& w, std::uint64_t address) {
        const View view = view_of(w, Space::Generic, address);
        return address - view.base < view.bytes ? view.bytes - (address - view.base) : ~std::uint64_t{0};
    }

    bool missing(std::string_view how) {
        w_->block->finding =
            "`vprintf` asks for argument " + std::to_string(asked_) + " (" + conversion_ + ")" + std::string(how);
        return passes(w_, op_, {.code = FaultCode::PrintArguments, .lane = lane_});
    }

    template <class T>
    bool next(T& value) {
        value = {};
        position_ = (position_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        ++asked_;
        if (arguments_ == 0) return missing(" and is given none");
        if (position_ + sizeof(T) > room_) return missing(", which is beyond its arguments");
        const std::byte* const from =
            lane_bytes_written(w_, op_, Space::Generic, lane_, arguments_ + position_, sizeof(T), false);
        if (!from) return false;
        std::memcpy(&value, from, sizeof value);
        position_ += sizeof value;
        return true;
    }

    template <class T>
    bool append(const std::string& spec, T value) {
        char buffer[512];
        const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
        if (n > 0) text.append(buffer, std::min<std::size_t>(std::size_t(n), sizeof buffer - 1));
        return true;
    }

    /// `spec` is "%" with flags, width, precision and length; the length is replaced by that of the argument.
    bool conversion(std::string spec, char kind) {
        conversion_ = spec + kind;
        const auto count = [&](char c) { return std::count(spec.begin(), spec.end(), c); };
        const bool wide = count('l') || count('j') || count('z') || count('t');
        const auto shorts = count('h');
        std::erase_if(spec, [](char c) { return std::strchr("hlzjt", c) != nullptr; });
        if (spec.size() > 32) spec.resize(32);
        switch (kind) {
            case '%': text.push_back('%'); return true;
            case 'd':
            case 'i':
            case 'u':
            case 'x':
            case 'X':
            case 'o': return wide ? long_integer(spec + "ll" + kind) : integer(spec, shorts, kind);
            case 'c': {
                int value = 0;
                return next(value) && append(spec + kind, value);
            }
            case 'f':
            case 'F':
            case 'e':
            case 'E':
            case 'g':
            case 'G':
            case 'a':
            case 'A': {
                double value = 0;
                return next(value) && append(spec + kind, value);
            }
            case 'p': {
                std::uint64_t value = 0;
                return next(value) && append(spec + "#llx", static_cast<unsigned long long>(value));
            }
            case 's': {
                std::uint64_t address = 0;
                std::string value;
                return next(address) && text_at(address, value) && append(spec + 's', value.c_str());
            }
            default: text += spec + kind; return true;
        }
    }

    bool integer(const std::string& spec, std::ptrdiff_t shorts, char kind) {
        std::uint32_t value = 0;
        if (!next(value)) return false;
        const std::string length = shorts == 1 ? "h" : shorts ? "hh" : "";
        return append(spec + length + kind, value);
    }
    bool long_integer(const std::string& spec) {
        std::uint64_t value = 0;
        return next(value) && append(spec, static_cast<unsigned long long>(value));
    }

    const MicroOp* op_;
    Warp* w_;
    unsigned lane_;
    std::uint64_t arguments_, room_, position_ = 0;
    unsigned asked_ = 0;      // arguments
    std::string conversion_;  // the current one
};

/// Separate from the handler, as in print_text below: a handler could not end in a jump if the address of a local
/// escaped.
[[gnu::noinline]] bool print_lanes(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    const auto* const formats = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    const auto* const arguments = reinterpret_cast<const std::uint64_t*>(frame + op->b);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        Printer printer(op, w, lane, arguments[lane]);
        std::string format;
        if (!printer.text_at(formats[lane], format) || !printer.print(format)) return false;
        w->block->print(printer.text);
        reinterpret_cast<std::uint32_t*>(frame + op->d)[lane] = 0;
    }
    return true;
}

[[gnu::noinline]] bool print_text(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const unsigned lane = unsigned(std::countr_zero(mask));
    const auto address = [&](std::uint32_t offset) {
        return reinterpret_cast<const std::uint64_t*>(frame + offset)[lane];
    };
    std::string text, file, function;
    Printer printer(op, w, lane, 0);
    if (!printer.text_at(address(op->a), text) || !printer.text_at(address(op->b), file) ||
        !printer.text_at(address(op->c), function))
        return false;
    const auto tuple = [](const std::array<std::uint32_t, 3>& at) {
        return '[' + std::to_string(at[0]) + ',' + std::to_string(at[1]) + ',' + std::to_string(at[2]) + ']';
    };
    w->block->print(file + ':' + std::to_string(reinterpret_cast<const std::uint32_t*>(frame + op->x)[lane]) + ": " +
                    function + ": block: " + tuple(w->block->coordinates()) +
                    ", thread: " + tuple(w->block->thread(*w, lane)) + " Assertion `" + text + "` failed.\n");
    return true;
}

}  // namespace

const MicroOp* print_formatted(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!print_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* print_assertion(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!print_text(op, w, frame, mask)) return nullptr;
    return fail(w, op, {.code = FaultCode::AssertionFailed, .lane = unsigned(std::countr_zero(mask))});
}

}  // namespace ikat::emulator
