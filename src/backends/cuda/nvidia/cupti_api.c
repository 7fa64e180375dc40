/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/cupti_api.h"

#include "base/error.h"

/* A toolkit has the library in a folder that the loader may not know. */
#define PLACES(name) name, "/usr/local/cuda/extras/CUPTI/lib64/" name, "/usr/local/cuda/lib64/" name
enum { EACH = 3 };

static const char *const names[] = { PLACES("libcupti.so.13"), PLACES("libcupti.so.12"), PLACES("libcupti.so.11.8"),
                                     NULL };

static gantry_status check_version(gy_cupti_api *api, gantry_error *err)
{
    int code = api->cuptiGetVersion(&api->version);
    if (code != GY_CUPTI_OK)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s does not tell its version (%d)", api->lib.name, code);
    if (api->version < GY_CUPTI_LEAST) {
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s is version %u of its API, and %d, of CUDA 11.8, is needed",
                       api->lib.name, (unsigned)api->version, GY_CUPTI_LEAST);
    }
    return GANTRY_OK;
}

gantry_status gy_cupti_load(gy_cupti_api *api, int driver_version, const char **why, gantry_error *err)
{
    int major = driver_version / 1000, newer = driver_version == 0 || major >= 13 ? 0 : major == 12 ? 1 : 2;
    gy_cupti_api found = { 0 };
    *why = "CUPTI was not found";
    gantry_status status = gy_library_open(&found.lib, names + (size_t)newer * EACH, err);
    if (status)
        return status;
    *why = "CUPTI is too old";
#define GY_X(name, parameters) status = status ? status : gy_library_find(&found.lib, #name, &found.name, err);
    GY_CUPTI_FUNCTIONS(GY_X)
#undef GY_X
    status = status ? status : check_version(&found, err);
    if (status == GANTRY_OK) {
        *why = NULL;
        *api = found;
    }
    return status;
}
