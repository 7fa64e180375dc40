/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/nvrtc_api.h"

#include "base/error.h"

gantry_status gy_nvrtc_open(gy_nvrtc *nvrtc, gantry_error *err)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL };
    gy_nvrtc n = { 0 };
    gantry_status status = gy_library_open(&n.lib, names, err);
#define GY_X(result, name, parameters) status = status ? status : gy_library_find(&n.lib, #name, &n.name, err);
    GY_NVRTC_FUNCTIONS(GY_X)
#undef GY_X
    if (status)
        return status;
    if (n.nvrtcVersion(&n.major, &n.minor) != 0)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s does not tell its version", n.lib.name);
    *nvrtc = n;
    return GANTRY_OK;
}
