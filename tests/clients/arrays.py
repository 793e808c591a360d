# SPDX-License-Identifier: Apache-2.0
"""Arrays that Triton's kernels take, in page-locked memory of the driver: no PyTorch is needed."""
import ctypes

import numpy as np
import triton
import triton.language as tl

cuda = ctypes.CDLL("libcuda.so.1")
TYPES = {"float32": tl.float32, "float16": tl.float16, "int32": tl.int32}


class Array:
    def __init__(self, values):
        triton.runtime.driver.active.set_current_device(0)
        pointer = ctypes.c_void_p()
        if cuda.cuMemHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(values.nbytes), 0) != 0:
            raise MemoryError(f"no page-locked memory of {values.nbytes} bytes")
        memory = (ctypes.c_char * values.nbytes).from_address(pointer.value)
        self.numpy = np.frombuffer(memory, values.dtype).reshape(values.shape)
        self.numpy[...] = values
        self.dtype = TYPES[values.dtype.name]

    def data_ptr(self):
        return self.numpy.ctypes.data


def finish():
    """Waits for the kernels; what they did wrong is known then."""
    result = cuda.cuCtxSynchronize()
    if result != 0:
        raise SystemExit(f"a kernel failed: {result}")
