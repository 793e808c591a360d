// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a stream calls between its work. They run on a thread of the device, as the API
// promises: the program's own thread may wait for what they do. Later work on the stream waits for them.
#include "tools/cuda_driver/graphs/capture.hpp"

namespace ikat::cuda_driver {
API(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
    return on_stream("cuStreamAddCallback", stream, [&](Driver& its, Context&) {
        require(callback && flags == 0);
        its.device_of(id_of(stream)).enqueue(id_of(stream), emulator::work::HostCall{[=] {
                                                 callback(stream, CUDA_SUCCESS, data);
                                             }});
    });
}
API(cuLaunchHostFunc, CUstream stream, CUhostFn callback, void* data) {
    return on_stream(
        "cuLaunchHostFunc", stream,
        [&](Driver& its, Context& context) {
            const HostNode node = host_node({callback, data});
            if (Capture* const capture = capture_of(its, context, stream))
                capture->add(id_of(stream), node);
            else
                its.device_of(id_of(stream)).enqueue(id_of(stream), emulator::work::HostCall{[=] { callback(data); }});
        },
        InCapture::IsANode);
}

}  // namespace ikat::cuda_driver
