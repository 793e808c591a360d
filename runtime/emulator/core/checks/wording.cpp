// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/checks/wording.hpp"

#include <algorithm>
#include <bit>

namespace ikat::emulator {

std::string in_words(Vocabulary vocabulary, std::string_view text) {
    std::string out;
    for (;;) {
        const std::size_t open = text.find('`'), close = open == text.npos ? open : text.find('`', open + 1);
        if (close == text.npos) return out.append(text);
        const auto found = std::ranges::find(words, text.substr(open + 1, close - open - 1), &Words::ptx);
        if (found == std::end(words)) {
            out += text.substr(0, close);
            text.remove_prefix(close);  // which may open another one
            continue;
        }
        out += text.substr(0, open);
        out += vocabulary == Vocabulary::Ptx ? found->ptx : found->language;
        text.remove_prefix(close + 1);
    }
}

std::string number_list(std::string_view noun, std::uint32_t set) {
    std::string text = fmt::format("{}{} ", noun, std::popcount(set) == 1 ? "" : "s");
    bool first = true;
    for (unsigned number = 0; number < 32;) {
        if (!(set >> number & 1)) {
            ++number;
            continue;
        }
        unsigned end = number;
        while (end + 1 < 32 && set >> (end + 1) & 1) ++end;
        if (!first) text += ", ";
        text += end == number ? fmt::format("{}", number) : fmt::format("{}-{}", number, end);
        first = false;
        number = end + 1;
    }
    return text;
}

}  // namespace ikat::emulator
