// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/stdlib/case.hpp"

#include <cmath>

#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"

namespace ikat::test {

void Case::compare(const Argument& argument, std::span<const std::byte> got) {
    const std::size_t size = argument.want.empty() ? 0 : got.size() / argument.want.size();
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < argument.want.size(); ++i) {
        const double x = argument.read(&got[i * size]), want = argument.want[i];
        const double bound = argument.bound.size() == 1 ? argument.bound[0] : argument.bound[i];
        const bool right = x == want || std::abs(x - want) <= bound || (std::isnan(want) && std::isnan(x));
        if (!right && wrong++ == 0) first = i;
    }
    if (wrong == 0) return;
    FAIL_CHECK(wrong << " of " << argument.want.size() << " elements are wrong, the first is " << first << ": "
                     << argument.read(&got[first * size]) << " instead of " << argument.want[first] << " +- "
                     << (argument.bound.size() == 1 ? argument.bound[0] : argument.bound[first]));
}

void Case::run(const runtime::Device& device, std::string_view kernel) const {
    const stdlib::Entry* entry = stdlib::find(kernel);
    INFO("kernel " << kernel);
    REQUIRE(entry != nullptr);
    std::vector<runtime::Buffer<std::uint8_t>> buffers;
    for (const Argument& argument : arguments_) {
        buffers.push_back(device.buffer<std::uint8_t>(argument.bytes.size()));
        const auto* first = reinterpret_cast<const std::uint8_t*>(argument.bytes.data());
        buffers.back().upload({first, argument.bytes.size()});
    }
    std::vector<runtime::Argument> list;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
        if (arguments_[i].is_scalar)
            list.push_back({.type = arguments_[i].type, .bits = arguments_[i].bits});
        else
            list.push_back({.type = arguments_[i].type, .part = buffers[i].memory().whole()});
    }
    device.launch(entry->handle(), entry->grid(list, 0), list);
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
        if (!arguments_[i].read) continue;
        const std::vector<std::uint8_t> got = buffers[i].download();
        INFO("parameter " << i);
        compare(arguments_[i], std::as_bytes(std::span(got)));
    }
}

}  // namespace ikat::test
