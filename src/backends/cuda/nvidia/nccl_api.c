/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/nccl_api.h"

#include "base/error.h"
#include <string.h>

enum { GY_NCCL_LAST = 256 };
static const char *const names[] = { "libnccl.so.2", NULL };

/* 2.9 and later: 20900; before: 2800. */
static void split_version(gy_nccl_api *api, int code)
{
    int unit = code >= 10000 ? 10000 : 1000;
    api->version[0] = code / unit;
    api->version[1] = code % unit / 100;
    api->version[2] = code % 100;
}

gantry_status gy_nccl_load(gy_nccl_api *api, gantry_error *err)
{
    gy_nccl_api found = { 0 };
    int code = 0;
    gantry_status status = gy_library_open(&found.lib, names, err);
#define GY_X(type, name, arguments) status = status ? status : gy_library_find(&found.lib, #name, &found.name, err);
    GY_NCCL_FUNCTIONS(GY_X)
#undef GY_X
    if (status)
        return status;
    if (found.ncclGetVersion(&code) != GY_NCCL_SUCCESS)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s does not tell its version", found.lib.name);
    split_version(&found, code);
    if (code < 21400) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s is version %d.%d.%d, and 2.14 or later is needed",
                       found.lib.name, found.version[0], found.version[1], found.version[2]);
    }
    *api = found;
    return GANTRY_OK;
}

gantry_status gy_nccl_api_fail(const gy_nccl_api *api, int result, const char *what, gantry_error *err)
{
    const char *text = api->ncclGetErrorString(result), *told = api->ncclGetLastError(NULL);
    char last[GY_NCCL_LAST] = "";
    for (size_t i = 0; told && told[i] && i + 1 < sizeof last; i++)
        last[i] = told[i] == '\n' ? ' ' : told[i];
    for (size_t length = strlen(last); length && last[length - 1] == ' '; length--)
        last[length - 1] = 0; /* ends with one */
    bool more = last[0];
    gantry_status status = gy_fail(err, GANTRY_E_DEVICE, NULL, "%s: NCCL: %s (%d)%s%s", what, text ? text : "no text",
                                   result, more ? ": " : "", more ? last : "");
    if (err)
        err->native = result;
    return status;
}
