/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/linalg.h"

#include "base/error.h"
#include <inttypes.h>
#include <limits.h>

static int64_t columns_of(const gantry_arg *a)
{
    return a->row_bytes / (int64_t)gantry_dtype_size(a->dtype);
}

gantry_status gy_linalg_check_sizes(const gantry_launch *l, gantry_error *err)
{
    for (int32_t i = 0; i < l->args; i++) {
        const gantry_arg *a = &l->arg[i];
        if (a->rank && (a->rows > INT_MAX || columns_of(a) > INT_MAX)) {
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                           "\"%s\" is %" PRId64 " x %" PRId64 ", and cuBLAS and cuSOLVER go to %d; split it", a->name,
                           a->rows, columns_of(a), INT_MAX);
        }
    }
    return GANTRY_OK;
}

gy_gpu_matrix gy_gpu_matrix_of(const gantry_arg *arg)
{
    int columns = (int)columns_of(arg);
    return (gy_gpu_matrix){ arg->data, (int)arg->rows, columns, columns > 0 ? columns : 1 };
}

int gy_linalg_driver_version(const gy_driver *driver)
{
    int version = 0;
    return driver->cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

gantry_status gy_linalg_fail(const char *why, int driver_version, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_DEVICE, NULL,
                   "%s; the driver is for CUDA %d.%d, and the library may be for a newer one", why,
                   driver_version / 1000, driver_version % 1000 / 10);
}

bool gy_linalg_loads(const void *handle)
{
    (void)handle;
    return true;
}
