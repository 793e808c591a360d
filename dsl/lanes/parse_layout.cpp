// SPDX-License-Identifier: Apache-2.0
// Layouts from text.
#include <charconv>

#include "codegen/support/diagnostic.hpp"
#include "dsl/lanes/layout.hpp"

namespace ikat {
namespace {

/// The largest size and offset of a layout that is read.
constexpr std::uint64_t max_number = std::uint64_t{1} << 48;

/// A number, or a tuple of others.
struct Tuple {
    std::size_t at = 0;  // in the text
    std::uint64_t number = 0;
    std::vector<Tuple> parts{};  // of a number: none
};

class LayoutReader {
public:
    explicit LayoutReader(std::string_view text) : text_(text) {}

    bool has_swizzle() { return next_is('S'); }
    Swizzle swizzle() {
        const std::size_t start = at_;
        for (const char c : {'S', 'w', '<'}) expect(c);
        const std::uint64_t bits = number(63);
        expect(',');
        const std::uint64_t base = number(63);
        expect(',');
        const bool is_negative = next_is('-');
        if (is_negative) expect('-');
        const int shift = int(number(63));
        for (const char c : {'>', 'o'}) expect(c);
        try {
            return Swizzle(unsigned(bits), unsigned(base), is_negative ? -shift : shift);
        } catch (const Error& error) {
            fail(start, error.diagnostics().front().message, error.diagnostics().front().hint);
        }
    }

    Layout layout() {
        const Tuple extents = tuple();
        expect(':');
        const Tuple strides = tuple();
        if (skip_spaces(); at_ < text_.size()) fail(at_, "the layout ends before this");
        std::vector<Layout::Mode> modes;
        if (extents.parts.empty() || strides.parts.size() != extents.parts.size())
            join(extents, strides, modes.emplace_back());
        else
            for (std::size_t i = 0; i < extents.parts.size(); ++i)
                join(extents.parts[i], strides.parts[i], modes.emplace_back());
        return Layout(std::move(modes));
    }

private:
    [[noreturn]] void fail(std::size_t at, const std::string& what, const std::string& hint) const {
        const auto column = std::uint32_t(at + 1);
        throw Error({.message = "this is no layout: column " + std::to_string(column) + ": " + what,
                     .hint = hint,
                     .excerpt = excerpt(text_, {.line = 1, .column = column})});
    }
    [[noreturn]] void fail(std::size_t at, const std::string& what) const {
        fail(at, what, "layouts are (4,8):(8,1), ((2,2),3):((24,2),8) or Sw<3,4,3> o (8,64):(64,1)");
    }

    void skip_spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool next_is(char c) {
        skip_spaces();
        return at_ < text_.size() && text_[at_] == c;
    }
    void expect(char c) {
        if (!next_is(c)) fail(at_, std::string("expected '") + c + "'");
        ++at_;
    }
    std::uint64_t number(std::uint64_t largest) {
        skip_spaces();
        const char *const begin = text_.data() + at_, *const end = text_.data() + text_.size();
        std::uint64_t out = 0;
        const auto [stop, error] = std::from_chars(begin, end, out);
        if (stop == begin) fail(at_, "expected a number");
        if (error != std::errc{} || out > largest) fail(at_, "the number is too large");
        at_ += std::size_t(stop - begin);
        return out;
    }
    Tuple tuple() {
        skip_spaces();
        Tuple out{.at = at_};
        if (!next_is('(')) {
            out.number = number(max_number);
            return out;
        }
        if (++depth_ > 16) fail(at_, "this is nested too deeply");
        do {
            ++at_;
            out.parts.push_back(tuple());
        } while (next_is(','));
        if (!next_is(')')) fail(at_, "expected ',' or ')'");
        ++at_;
        --depth_;
        return out;
    }

    /// The steps of a mode; what is nested more deeply has the same meaning in one row.
    void join(const Tuple& extent, const Tuple& stride, Layout::Mode& mode) {
        if (extent.parts.size() != stride.parts.size())
            fail(stride.at, "the strides are not nested as the extents are",
                 "there is a stride for each extent: (4,8):(8,1), ((2,2),3):((24,2),8)");
        for (std::size_t i = 0; i < extent.parts.size(); ++i) join(extent.parts[i], stride.parts[i], mode);
        if (!extent.parts.empty()) return;
        const auto [e, s] = mode.emplace_back(extent.number, stride.number);
        if (e == 0) fail(extent.at, "an extent is at least 1");
        if (size_ > max_number / e || (e > 1 && s > (max_number - last_) / (e - 1)))
            fail(extent.at, "the layout has more than 2^48 elements or places from here on",
                 "give a part of it, or smaller strides");
        size_ *= e;
        last_ += (e - 1) * s;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    unsigned depth_ = 0;
    std::uint64_t size_ = 1, last_ = 0;  // of the steps so far
};

}  // namespace

SwizzledLayout parse_layout(std::string_view text) {
    LayoutReader reader(text);
    const Swizzle swizzle = reader.has_swizzle() ? reader.swizzle() : Swizzle(0, 4, 3);
    return {swizzle, reader.layout()};
}

}  // namespace ikat
