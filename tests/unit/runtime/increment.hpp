// SPDX-License-Identifier: Apache-2.0
// A kernel as PTX text, and its parameters.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/device.hpp"
#include "tests/environment.hpp"

namespace ikat::tests {

/// out[i] = in[i] + 1 for i < n.
inline constexpr const char* increment = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<7>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra done;
	mul.wide.u32 %rd3, %r5, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.b32 %r6, [%rd4];
	add.s32 %r6, %r6, 1;
	st.global.b32 [%rd5], %r6;
done:
	ret;
}
)";

inline std::vector<std::byte> parameters(const runtime::Buffer<std::uint32_t>& in,
                                         const runtime::Buffer<std::uint32_t>& out, std::uint32_t n) {
    const runtime::Argument list[] = {{.type = ir::Type::U32, .part = in.memory().whole()},
                                      {.type = ir::Type::U32, .part = out.memory().whole()},
                                      {.type = ir::Type::U32, .bits = n}};
    return runtime::pack(list);
}

}  // namespace ikat::tests
