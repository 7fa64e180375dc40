/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/network.h"

#include "backends/cuda/kernels/linalg.h"

#include "base/error.h"
#include <stdio.h>

gantry_status gy_network_check(gy_network *n, int status, const char *call)
{
    if (status == GY_CUDNN_SUCCESS)
        return GANTRY_OK;
    snprintf(n->why, sizeof n->why, "%s of %s returned %s (%d)", call, n->api.lib.name,
             n->api.cudnnGetErrorString(status), status);
    return GANTRY_E_DEVICE;
}

gantry_status gy_network_usable(const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    gy_cudnn api;
    (void)kernel;
    return gy_cudnn_open(&api, gy_linalg_driver_version(driver), err) ? GANTRY_E_UNSUPPORTED : GANTRY_OK;
}

gantry_status gy_network_open(gy_network *n, const gy_cuda_kernel *own, const gy_driver *driver, gantry_error *err)
{
    n->driver_version = gy_linalg_driver_version(driver);
    GY_TRY(gy_cudnn_open(&n->api, n->driver_version, err));
    if (GY_NETWORK_CALL(n, cudnnCreate, &n->cudnn))
        return gy_linalg_fail(n->why, n->driver_version, err);
    n->own = own;
    gantry_status status = own->open(&n->plain, own, driver, err);
    if (status)
        n->api.cudnnDestroy(n->cudnn);
    return status;
}

void gy_network_close(gy_network *n)
{
    n->api.cudnnDestroy(n->cudnn);
    n->own->close(n->plain);
}

const char *gy_network_why(const gy_network *n)
{
    return n->why[0] ? n->why : n->own->why(n->plain);
}

gantry_launch gy_network_plain(const gy_network *n, const gantry_launch *l)
{
    gantry_launch plain = *l;
    plain.handle = n->plain;
    return plain;
}

int gy_network_type(gantry_dtype dtype)
{
    return dtype == GANTRY_F32 ? GY_CUDNN_FLOAT : dtype == GANTRY_F16 ? GY_CUDNN_HALF : GY_CUDNN_BFLOAT16;
}
