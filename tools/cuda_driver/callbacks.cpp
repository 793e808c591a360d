// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a stream calls between its work. They run on a thread of the device, as the API
// promises: the program's own thread may wait for what they do. Later work on the stream waits for them.
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

CUresult call(const char* name, CUstream stream, bool is_valid, std::function<void()> function) {
    return on_stream(name, stream, [&](Driver& its, Context&) {
        require(is_valid);
        its.device.enqueue(id_of(stream), emulator::work::HostCall{std::move(function)});
    });
}

}  // namespace

API(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
    return call("cuStreamAddCallback", stream, callback && flags == 0, [=] { callback(stream, CUDA_SUCCESS, data); });
}
ALIAS(cuStreamAddCallback_ptsz, cuStreamAddCallback);
API(cuLaunchHostFunc, CUstream stream, CUhostFn callback, void* data) {
    return call("cuLaunchHostFunc", stream, callback != nullptr, [=] { callback(data); });
}
ALIAS(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

}  // namespace ikat::cuda_driver
