// SPDX-License-Identifier: Apache-2.0
// Writes JSON for reports: members in the order in which they are given, one per line.
//
//     Json json;
//     json.open('{');
//     json.number("warps", 8);
//     json.key("lines"), json.open('['), json.close(']');
//     json.close('}');
//     json.take()                         the text
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ikat {

/// Writes one value, indented or on one line; commas are added automatically.
class Json {
public:
    enum class Layout : std::uint8_t { Indented, OneLine };
    explicit Json(Layout layout = Layout::Indented) : layout_(layout) {}
    void open(char bracket) {
        begin();
        out_ += bracket;
        first_ = true;
        ++depth_;
    }
    void close(char bracket) {
        --depth_;
        if (!first_) new_line();
        out_ += bracket;
        first_ = false;
    }
    void key(std::string_view name) {
        begin();
        out_ += fmt::format("\"{}\": ", name);
        after_key_ = true;
    }
    void number(std::uint64_t value) { begin(), out_ += std::to_string(value); }
    void real(double value) { begin(), out_ += fmt::format("{:.4f}", value); }
    void text(std::string_view value) {
        begin();
        out_ += '"';
        for (char c : value) {
            if (c == '"' || c == '\\') out_ += '\\';
            if (static_cast<unsigned char>(c) < ' ')
                out_ += fmt::format("\\u{:04x}", unsigned(c));
            else
                out_ += c;
        }
        out_ += '"';
    }
    void number(std::string_view name, std::uint64_t value) { key(name), number(value); }
    void text(std::string_view name, std::string_view value) { key(name), text(value); }
    std::string take() { return std::move(out_) + "\n"; }

private:
    void begin() {
        if (after_key_) {
            after_key_ = false;
            return;
        }
        if (depth_ == 0) return;
        if (!first_) out_ += ',';
        first_ = false;
        new_line();
    }
    void new_line() {
        if (layout_ == Layout::Indented) (out_ += '\n').append(2 * depth_, ' ');
    }

    Layout layout_;
    std::string out_;
    std::size_t depth_ = 0;
    bool first_ = true, after_key_ = false;
};

}  // namespace ikat
