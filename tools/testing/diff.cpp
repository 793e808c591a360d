// SPDX-License-Identifier: Apache-2.0
// A line diff in three steps: cut off the common head and tail, align the middle by its longest common subsequence (or
// not at all if that table would be too large), and print the changed groups with a little context.
#include "tools/testing/diff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ikat::golden {
namespace {

using Lines = std::vector<std::string_view>;

constexpr std::size_t context = 2;
constexpr std::size_t longest_report = 60;
constexpr std::size_t largest_table = 4'000'000;

/// Marks a text without a final newline, which would otherwise be invisible.
constexpr std::string_view no_newline = "\\ no newline at the end";

Lines split(std::string_view text) {
    Lines lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            lines.push_back(no_newline);
            break;
        }
        text.remove_prefix(end + 1);
    }
    return lines;
}

enum class Side : char { Both = ' ', Expected = '-', Actual = '+' };

struct Entry {
    Side side;
    std::string_view line;
    std::size_t number;  // line in `expected` of this entry, from 1
};

/// lengths[i][j] = length of the longest common subsequence of a[i..] and b[j..].
class CommonLengths {
public:
    CommonLengths(const Lines& a, const Lines& b) : width_(b.size() + 1), lengths_((a.size() + 1) * width_) {
        for (std::size_t i = a.size(); i-- > 0;)
            for (std::size_t j = b.size(); j-- > 0;)
                at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
    std::uint32_t& at(std::size_t i, std::size_t j) { return lengths_[i * width_ + j]; }

private:
    std::size_t width_;
    std::vector<std::uint32_t> lengths_;
};

/// Appends the aligned middle parts a and b; `first` is the number of a's first line.
void align(const Lines& a, const Lines& b, std::size_t first, std::vector<Entry>& out) {
    std::size_t i = 0, j = 0;
    if ((a.size() + 1) * (b.size() + 1) <= largest_table) {
        CommonLengths common(a, b);
        while (i < a.size() && j < b.size()) {
            if (a[i] == b[j]) {
                out.push_back({Side::Both, a[i], first + i});
                ++i, ++j;
            } else if (common.at(i + 1, j) >= common.at(i, j + 1)) {
                out.push_back({Side::Expected, a[i], first + i});
                ++i;
            } else {
                out.push_back({Side::Actual, b[j], first + i});
                ++j;
            }
        }
    }
    for (; i < a.size(); ++i) out.push_back({Side::Expected, a[i], first + i});
    for (; j < b.size(); ++j) out.push_back({Side::Actual, b[j], first + i});
}

std::vector<Entry> compare(const Lines& a, const Lines& b) {
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t head = 0, tail = 0;
    while (head < shorter && a[head] == b[head]) ++head;
    while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;

    std::vector<Entry> out;
    for (std::size_t i = 0; i < head; ++i) out.push_back({Side::Both, a[i], i + 1});
    align(Lines(a.begin() + head, a.end() - tail), Lines(b.begin() + head, b.end() - tail), head + 1, out);
    for (std::size_t i = a.size() - tail; i < a.size(); ++i) out.push_back({Side::Both, a[i], i + 1});
    return out;
}

/// Which entries are changed or at most `context` lines from a change.
std::vector<bool> near_changes(const std::vector<Entry>& entries) {
    std::vector<bool> shown(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].side == Side::Both) continue;
        const std::size_t last = std::min(i + context, entries.size() - 1);
        for (std::size_t k = i - std::min(i, context); k <= last; ++k) shown[k] = true;
    }
    return shown;
}

}  // namespace

std::string diff(std::string_view expected, std::string_view actual) {
    if (expected == actual) return {};
    const std::vector<Entry> entries = compare(split(expected), split(actual));
    const std::vector<bool> shown = near_changes(entries);

    std::string out;
    std::size_t lines = 0, more = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!shown[i]) continue;
        if (lines == longest_report) {
            ++more;
            continue;
        }
        if (i == 0 || !shown[i - 1]) out += "@@ line " + std::to_string(entries[i].number) + '\n';
        out += char(entries[i].side);
        out.append(entries[i].line).append("\n");
        ++lines;
    }
    if (more) out += "... and " + std::to_string(more) + " more lines\n";
    return out;
}

}  // namespace ikat::golden
