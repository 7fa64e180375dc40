/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/cudnn_api.h"

#include "base/error.h"

enum { OLDEST = 90000 };

/* All that is made for one generation of CUDA has the same name, so it has to be asked which. */
static gantry_status check_version(const gy_cudnn *c, int driver_version, gantry_error *err)
{
    size_t version = c->cudnnGetVersion(), cuda = c->cudnnGetCudartVersion();
    if (version < OLDEST)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "%s says that it is version %zu; it must be %d or later",
                       c->lib.name, version, (int)OLDEST);
    if (driver_version && cuda / 1000 > (size_t)driver_version / 1000)
        return gy_fail(err, GANTRY_E_DEVICE, NULL,
                       "%s is made for CUDA %zu and the driver is for CUDA %d; install the cuDNN 9 for CUDA %d",
                       c->lib.name, cuda / 1000, driver_version / 1000, driver_version / 1000);
    return GANTRY_OK;
}

gantry_status gy_cudnn_open(gy_cudnn *cudnn, int driver_version, gantry_error *err)
{
    static const char *const names[] = { "libcudnn.so.9", NULL };
    gy_cudnn c;
    gantry_status status = gy_library_open(&c.lib, names, err);
#define GY_X(type, name, arguments) status = status ? status : gy_library_find(&c.lib, #name, &c.name, err);
    GY_CUDNN_FUNCTIONS(GY_X)
#undef GY_X
#define GY_X(i, get_, size_, convolve_)                                                                                \
    c.way[i].get_name = #get_;                                                                                         \
    c.way[i].size_name = #size_;                                                                                       \
    c.way[i].convolve_name = #convolve_;                                                                               \
    status = status ? status : gy_library_find(&c.lib, #get_, &c.way[i].get, err);                                     \
    status = status ? status : gy_library_find(&c.lib, #size_, &c.way[i].size, err);                                   \
    status = status ? status : gy_library_find(&c.lib, #convolve_, &c.way[i].convolve, err);
    GY_CUDNN_WAYS(GY_X)
#undef GY_X
    status = status ? status : check_version(&c, driver_version, err);
    if (status == GANTRY_OK)
        *cudnn = c;
    return status;
}
