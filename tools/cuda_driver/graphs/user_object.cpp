// SPDX-License-Identifier: Apache-2.0
// Objects of the program that graphs keep: counted references, of which the last one calls a function. It runs on a
// thread of its own, as the API promises: it may wait for what the program's threads do.
#include <thread>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {
namespace {

UserObject& object_at(std::uintptr_t handle) {
    const auto found = graphs().user_objects.find(handle);
    if (found == graphs().user_objects.end()) refuse(CUDA_ERROR_INVALID_VALUE, "there is no such user object");
    return found->second;
}

std::uintptr_t number_of(CUuserObject object) { return reinterpret_cast<std::uintptr_t>(object); }

}  // namespace

void retain_user_object(std::uintptr_t object, std::uint64_t count) { object_at(object).references += count; }

void release_user_object(std::uintptr_t handle, std::uint64_t count) {
    UserObject& object = object_at(handle);
    if (count > object.references)
        refuse(CUDA_ERROR_INVALID_VALUE, "more references are released than the user object has");
    object.references -= count;
    if (object.references > 0) return;
    std::thread(object.destroy, object.data).detach();
    graphs().user_objects.erase(handle);
}

API(cuUserObjectCreate, CUuserObject* out, void* data, CUhostFn destroy, unsigned references, unsigned flags) {
    return initialised("cuUserObjectCreate", [&](Driver& its) {
        require(out && destroy && references > 0 && references <= 0x7fffffff);
        require(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
        const std::uintptr_t handle = its.new_handle();
        graphs().user_objects[handle] = {data, destroy, references};
        *out = reinterpret_cast<CUuserObject>(handle);
    });
}
API(cuUserObjectRetain, CUuserObject object, unsigned count) {
    return initialised("cuUserObjectRetain", [&](Driver&) {
        require(count > 0);
        retain_user_object(number_of(object), count);
    });
}
API(cuUserObjectRelease, CUuserObject object, unsigned count) {
    return initialised("cuUserObjectRelease", [&](Driver&) {
        require(count > 0);
        release_user_object(number_of(object), count);
    });
}
API(cuGraphRetainUserObject, CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    return initialised("cuGraphRetainUserObject", [&](Driver&) {
        require(count > 0 && flags <= CU_GRAPH_USER_OBJECT_MOVE);
        Graph& its = graph_at(graph);
        object_at(number_of(object));
        if (flags != CU_GRAPH_USER_OBJECT_MOVE) retain_user_object(number_of(object), count);
        its.user_objects[number_of(object)] += count;
    });
}
API(cuGraphReleaseUserObject, CUgraph graph, CUuserObject object, unsigned count) {
    return initialised("cuGraphReleaseUserObject", [&](Driver&) {
        Graph& its = graph_at(graph);
        const auto found = its.user_objects.find(number_of(object));
        require(count > 0);
        if (found == its.user_objects.end() || found->second < count)
            refuse(CUDA_ERROR_INVALID_VALUE, "the graph has fewer references to the user object");
        found->second -= count;
        if (found->second == 0) its.user_objects.erase(found);
        release_user_object(number_of(object), count);
    });
}

}  // namespace ikat::cuda_driver
