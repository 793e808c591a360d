// SPDX-License-Identifier: Apache-2.0
// Types that device memory cannot hold.
// expect: device memory holds floats, from ikat::e4m3 to double, integers of fixed size, and structs of these
// errors: 1
#include <ikat/ikat.hpp>
#include <vector>

using namespace ikat;
void upload(const Device& device, const std::vector<const char*>& texts) { device.upload(texts); }
