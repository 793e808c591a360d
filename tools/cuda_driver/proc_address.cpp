// SPDX-License-Identifier: Apache-2.0
// Functions by name. What the stand-in does not have is named once on standard error when it is called: programs look
// for many functions that they never call.
#include <cstring>
#include <set>
#include <string_view>

#include "tools/cuda_driver/state.hpp"
#include "tools/cuda_driver/table.hpp"

namespace ikat::cuda_driver {
namespace {

void say_once(const char* name, const char* what) {
    static auto& mutex = *new std::mutex;
    static auto& said = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (said.insert(name).second) complain(name, what, {});
}

CUresult look_up(const char* name, void** code, int version, std::uint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
    if (!name || !code) return CUDA_ERROR_INVALID_VALUE;
    if (flags > (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *code = nullptr;
    const Entry* best = nullptr;
    bool is_known = false;
    for (const Entry& entry : entries()) {
        if (std::strcmp(entry.name, name) != 0) continue;
        is_known = true;
        if (entry.since > version || (entry.is_per_thread && !per_thread)) continue;
        const auto rank = [](const Entry& each) { return std::pair(each.is_per_thread, each.since); };
        if (!best || rank(*best) < rank(entry)) best = &entry;
    }
    if (best) *code = reinterpret_cast<void*>(best->code);
    if (status)
        *status = best       ? CU_GET_PROC_ADDRESS_SUCCESS
                  : is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return best || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult not_done(const char* name) {
    say_once(name, "this function is not emulated; it returns CUDA_ERROR_NOT_SUPPORTED");
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

#define NOT_DONE(name, since, symbol) \
    API(symbol, void) { return not_done(#name); }
#include "tools/cuda_driver/not_done.def"
#undef NOT_DONE

API(cuGetProcAddress, const char* name, void** code, int version, std::uint64_t flags) {
    return look_up(name, code, version, flags, nullptr);
}
API(cuGetProcAddress_v2, const char* name, void** code, int version, std::uint64_t flags,
    CUdriverProcAddressQueryResult* status) {
    return look_up(name, code, version, flags, status);
}
API(cuGetExportTable, const void** table, const void*) {
    if (!table) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    say_once("cuGetExportTable",
             "the program uses NVIDIA's runtime library, which asks the driver for tables that are not documented, "
             "linked into it or shared; only programs of the driver API run here");
    return CUDA_ERROR_NOT_FOUND;
}

}  // namespace ikat::cuda_driver
