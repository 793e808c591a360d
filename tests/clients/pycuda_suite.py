# SPDX-License-Identifier: Apache-2.0
"""A kernel by PyCUDA's driver interface, from PTX: with arrays on the device, page-locked and managed ones, and by the
launch of CUDA's first versions."""
import sys

try:
    import numpy as np
    import pycuda.autoinit  # noqa: F401: it makes the context
    import pycuda.driver as cuda
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = HEAD + """.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c) {
    .reg .b32 %r<6>; .reg .b64 %d<6>;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];
    mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2; mad.wide.u32 %d3, %r1, 4, %d3;
    ld.global.u32 %r2, [%d1]; ld.global.u32 %r3, [%d2]; add.u32 %r2, %r2, %r3;
    st.global.u32 [%d3], %r2; ret;
}
"""

module = cuda.module_from_buffer(KERNEL.encode())
add = module.get_function("add")
a, b = np.arange(256, dtype=np.int32), 3 * np.arange(256, dtype=np.int32)
c = np.zeros_like(a)
add(cuda.In(a), cuda.In(b), cuda.Out(c), block=(64, 1, 1), grid=(4, 1))
assert np.array_equal(c, a + b)
print("arrays of its own: passed")

mapped = cuda.pagelocked_empty(256, np.int32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
managed = cuda.managed_empty(256, np.int32, mem_flags=cuda.mem_attach_flags.GLOBAL)
mapped[:], managed[:] = a, 0
add(np.intp(mapped.base.get_device_pointer()), np.intp(mapped.base.get_device_pointer()), managed, block=(64, 1, 1),
    grid=(4, 1))
cuda.Context.synchronize()
assert np.array_equal(managed, 2 * a)
print("mapped and managed memory: passed")
