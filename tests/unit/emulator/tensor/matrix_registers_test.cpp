// SPDX-License-Identifier: Apache-2.0
// mma.sync with registers that it reads and writes.
#include <bit>

#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/targets.hpp"

namespace ikat::tests::matrix_registers {

TEST_CASE("registers of c may be those of d in another order, or one register") {
    // All factors are 1 (bits: 0 and 1): each sum is k more than c.
    const auto check = [](const std::string& form, const std::string& a, int k, const std::string& factor) {
        INFO(form);
        const bool floats = factor == "0x3c003c00";
        const auto number = [&](int i) {
            return floats ? std::to_string(std::bit_cast<std::uint32_t>(float(i))) : std::to_string(i);
        };
        const std::string product = "mma.sync.aligned." + form;
        const std::string body = "mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 5; ld.param.u64 %d1, [p0];\n" +
                                 ("cvt.u64.u32 %d2, %r1; add.u64 %d1, %d1, %d2; mov.b32 %r2, " + factor) +
                                 "; mov.b32 %r3, " + (form.find("xor") == std::string::npos ? factor : "0") +
                                 "; mov.b32 %r10, " + number(1000) + "; mov.b32 %r11, " + number(2000) +
                                 "; mov.b32 %r12, " + number(3000) + "; mov.b32 %r13, " + number(4000) + ";\n" +
                                 product + " {%r20, %r21, %r22, %r23}, " + a + ", {%r3}, {%r10, %r10, %r10, %r10};\n" +
                                 product + " {%r13, %r12, %r11, %r10}, " + a + ", {%r3}, {%r10, %r11, %r12, %r13};\n" +
                                 "st.global.v4.b32 [%d1], {%r20, %r21, %r22, %r23};"
                                 "st.global.v4.b32 [%d1+16], {%r13, %r12, %r11, %r10}; ret;";
        for (const std::int64_t target : targets()) {
            const OnTarget chosen(target);
            Machine machine;
            const auto y = machine.buffer("y", std::vector<std::uint32_t>(256));
            machine.run(kernel(body), {.block = {32, 1, 1}}, y, std::uint64_t{}, std::uint64_t{}, 0);
            const auto found = machine.get<std::uint32_t>(y, 256);
            for (int i = 0; i < 256; ++i) {
                const int c = i % 8 < 4 ? 1000 : 1000 * (i % 4 + 1);
                CHECK(found[std::size_t(i)] == std::uint32_t(std::stoul(number(c + k))));
            }
        }
    };
    check("m16n8k16.row.col.s32.s8.s8.s32", "{%r2, %r2}", 16, "0x01010101");
    check("m16n8k128.row.col.s32.b1.b1.s32.xor.popc", "{%r2, %r2}", 128, "0xffffffff");
    check("m16n8k8.row.col.f32.f16.f16.f32", "{%r2, %r2}", 8, "0x3c003c00");
}

}  // namespace ikat::tests::matrix_registers
