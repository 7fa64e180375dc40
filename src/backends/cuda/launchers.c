/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA versions that come with the module: code for several architectures in one image a kernel, embedded, loaded
 * into each context that uses it. */
#include "backends/cuda/kernels.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>

#define X(name) extern const unsigned char gy_fatbin_##name[];
#include "backends/cuda/fatbins.def"
#undef X

typedef struct handle {
    const gy_driver *driver;
    CUmodule module;
    CUfunction function[GANTRY_DTYPE_COUNT];
} handle;

static gantry_status fail(const gy_driver *d, CUresult code, const char *what, const char *name, gantry_error *err)
{
    char text[120];
    snprintf(text, sizeof text, "%s \"%s\"", what, name);
    return gy_driver_fail(d, code, text, err);
}

static void close_image(void *opened)
{
    handle *h = opened;
    h->driver->cuModuleUnload(h->module);
    gy_free(h);
}

static gantry_status open_image(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    handle *h = gy_calloc(1, sizeof *h);
    if (!h) {
        return gy_fail_nomem(err);
    }
    h->driver = driver;
    CUresult code = driver->cuModuleLoadData(&h->module, kernel->data);
    if (code != CUDA_SUCCESS) {
        gy_free(h);
        return fail(driver, code, "loading the code of", kernel->name, err);
    }
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", kernel->name, gantry_dtype_name((gantry_dtype)i));
        code = driver->cuModuleGetFunction(&h->function[i], h->module, name);
        if (code != CUDA_SUCCESS) {
            close_image(h);
            return fail(driver, code, "finding the function", name, err);
        }
    }
    *opened = h;
    return GANTRY_OK;
}

enum { THREADS = 256, MOST_BLOCKS = 1 << 16 };

static gantry_status launch(const gantry_launch *l, gantry_dtype dtype, int64_t count, void **params)
{
    const handle *h = l->handle;
    int64_t blocks = (count + THREADS - 1) / THREADS;
    if (blocks == 0) {
        return GANTRY_OK;
    }
    unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    CUresult code =
        h->driver->cuLaunchKernel(h->function[dtype], grid, 1, 1, THREADS, 1, 1, 0, l->stream, params, NULL);
    return code == CUDA_SUCCESS ? GANTRY_OK : GANTRY_E_DEVICE;
}

static int64_t size_of(const gantry_arg *a)
{
    return a->rows * (a->row_bytes / (int64_t)gantry_dtype_size(a->dtype));
}

/* NAME(number, x, y, n) */
static gantry_status launch_axy(const gantry_launch *l)
{
    double number = l->arg[0].number;
    void *x = l->arg[1].data, *y = l->arg[2].data;
    int64_t n = size_of(&l->arg[1]);
    return launch(l, l->arg[1].dtype, n, (void *[]){ &number, &x, &y, &n });
}

/* NAME(x, y, n) */
static gantry_status launch_xy(const gantry_launch *l)
{
    void *x = l->arg[0].data, *y = l->arg[1].data;
    int64_t n = size_of(&l->arg[0]);
    return launch(l, l->arg[0].dtype, n, (void *[]){ &x, &y, &n });
}

static const gy_cuda_kernel table[] = {
    { "copy", launch_xy, open_image, close_image, gy_fatbin_copy },
    { "saxpy", launch_axy, open_image, close_image, gy_fatbin_saxpy },
    { "scale", launch_axy, open_image, close_image, gy_fatbin_scale },
};

const gy_cuda_kernel *gy_cuda_kernels(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}
