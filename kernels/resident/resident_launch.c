/* SPDX-License-Identifier: Apache-2.0 */
/* The code of resident kernels. They are launched by src/backends/cuda/resident, each GPU's as a whole. */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernels/resident/resident.h"

static gantry_status launch_resident(const gantry_launch *l)
{
    (void)l;
    return GANTRY_E_UNSUPPORTED;
}

static CUresult find_code(gy_cuda_resident *r, const gy_resident_image *image)
{
    const gy_driver *d = r->driver;
    CUdevice device;
    CUresult code = d->cuModuleLoadData(&r->module, image->code);
    r->shared = image->shared;
    r->module = code == CUDA_SUCCESS ? r->module : NULL;
    code = code ? code : d->cuModuleGetFunction(&r->function, r->module, "gy_resident");
    if (code == CUDA_SUCCESS && r->shared) /* with what code of users has, it may be more than kernels have unasked */
        d->cuFuncSetAttribute(r->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)r->shared);
    code = code ? code : d->cuCtxGetDevice(&device);
    code = code ? code : d->cuDeviceGetAttribute(&r->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    return code ? code
                : d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&r->places, r->function, GY_RESIDENT_THREADS,
                                                                 r->shared);
}

static void close_resident(void *handle)
{
    gy_cuda_resident *r = handle;
    if (r->module)
        r->driver->cuModuleUnload(r->module);
    gy_free(r);
}

static gantry_status open_resident(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                   gantry_error *err)
{
    gy_cuda_resident *r = gy_calloc(1, sizeof *r);
    if (!r)
        return gy_fail_nomem(err);
    r->driver = driver;
    CUresult code = find_code(r, kernel->data);
    if (code != CUDA_SUCCESS) {
        close_resident(r);
        return gy_driver_fail(driver, code, "loading the code of resident kernels", err);
    }
    *handle = r;
    return GANTRY_OK;
}

extern const unsigned char gy_fatbin_resident_open[];
static const gy_resident_image image = { gy_fatbin_resident, gy_fatbin_resident_open, 0 };

const gy_cuda_kernel gy_cuda_kernel_resident = {
    .name = GY_CUDA_RESIDENT, .launch = launch_resident, .open = open_resident, .close = close_resident, .data = &image
};
