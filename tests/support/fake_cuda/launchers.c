/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels of a gantry-cuda.so for the fake driver: every kernel of the library, as a "kernel" that runs
 * its host version on the memory of the device. */
#include "backends/cuda/kernels/kernels.h"

#include "base/error.h"
#include "parcel.h"
#include "run/number.h"
#include "run/reduce.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct handle {
    parcel_driver driver;
    const gantry_kernel *kernel;
    void *host; /* what the host version's open made */
} handle;

static gantry_status open_host(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    void *found = dlsym(driver->handle, "fakeCudaFunction");
    if (!found)
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "this module is for the fake driver");
    handle *h = calloc(1, sizeof *h);
    memcpy(&h->driver.make, &found, sizeof found);
    h->driver.launch = driver->cuLaunchKernel;
    h->kernel = gantry_kernel_find(kernel->name);
    if (h->kernel && h->kernel->open && h->kernel->open(&h->host, -1)) {
        free(h);
        return gy_fail(err, GANTRY_E_DEVICE, NULL, "the host version could not be opened");
    }
    *opened = h;
    return GANTRY_OK;
}

static void close_host(void *opened)
{
    handle *h = opened;
    if (h->kernel && h->kernel->close)
        h->kernel->close(h->host);
    free(h);
}

/* FAKE_CUDA_ONLY="saxpy,gemm": only these, so that calibrations are short. */
static gantry_status usable(const gy_cuda_kernel *k, const gy_driver *driver, gantry_error *err)
{
    const char *only = getenv("FAKE_CUDA_ONLY"), *at = only ? strstr(only, k->name) : NULL;
    size_t length = strlen(k->name);
    (void)driver;
    while (at && ((at > only && at[-1] != ',') || (at[length] && at[length] != ',')))
        at = strstr(at + 1, k->name);
    return !only || at ? GANTRY_OK : gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "FAKE_CUDA_ONLY has no %s", k->name);
}

static gantry_status launch(const gantry_launch *l)
{
    const handle *h = l->handle;
    return parcel_queue(h->driver, l, h->kernel->host, h->host);
}

/* ---- combining for collectives ---- */

static void combine_part(const gantry_arg *arg, int32_t sources, int32_t targets)
{
    const void *from[GY_CUDA_SOURCES];
    const gantry_arg *to = arg + sources;
    size_t bytes = (size_t)(arg->rows * arg->row_bytes);
    for (int32_t i = 0; i < sources; i++)
        from[i] = arg[i].data;
    if (to->access == GANTRY_WRITE)
        memmove(to->data, from[0], bytes);
    else
        gy_reduce(to->dtype, to->access, to->data, from, (size_t)sources, (uint64_t)to->rows);
    for (int32_t i = 1; i < targets; i++)
        memmove(to[i].data, to->data, bytes);
}

static gantry_status combine(const gantry_launch *l)
{
    for (int32_t first = 0, i = 0; i < l->args; first = i) {
        while (i < l->args && l->arg[i].access == GANTRY_READ)
            i++;
        int32_t sources = i - first;
        while (i < l->args && l->arg[i].access != GANTRY_READ)
            i++;
        combine_part(&l->arg[first], sources, i - first - sources);
    }
    return GANTRY_OK;
}

/* FAKE_CUDA_REFUSED: the driver refuses it. */
static gantry_status launch_combine(const gantry_launch *l)
{
    const handle *h = l->handle;
    return getenv("FAKE_CUDA_REFUSED") ? GANTRY_E_DEVICE : parcel_queue(h->driver, l, combine, NULL);
}

/* ---- conditions ---- */

static gantry_status set_condition(const gantry_launch *l)
{
    unsigned *condition = (unsigned *)(uintptr_t)l->arg[1].integer;
    *condition = gy_element_load(l->arg[0].data, l->arg[0].dtype, 0) != 0;
    return GANTRY_OK;
}

static gantry_status launch_when(const gantry_launch *l)
{
    const handle *h = l->handle;
    return parcel_queue(h->driver, l, set_condition, NULL);
}

enum { MOST_KERNELS = 128, OTHERS = 2 };

static gy_cuda_kernel kernel[MOST_KERNELS];
static const gy_cuda_kernel *table[MOST_KERNELS];
static size_t kernels;

static void fill_table(void)
{
    size_t library = gantry_kernel_count() < MOST_KERNELS - 1 ? gantry_kernel_count() : MOST_KERNELS - OTHERS;
    kernels = library + OTHERS;
    kernel[library] =
        (gy_cuda_kernel){ .name = GY_CUDA_COMBINE, .launch = launch_combine, .open = open_host, .close = close_host };
    kernel[library + 1] =
        (gy_cuda_kernel){ .name = GY_CUDA_WHEN, .launch = launch_when, .open = open_host, .close = close_host };
    table[library] = &kernel[library];
    table[library + 1] = &kernel[library + 1];
    for (size_t i = 0; i < library; i++) {
        kernel[i] = (gy_cuda_kernel){ .name = gantry_kernel_at(i)->name,
                                      .usable = usable,
                                      .launch = launch,
                                      .open = open_host,
                                      .close = close_host };
        table[i] = &kernel[i];
    }
}

/* Runs are opened by threads at the same time. */
const gy_cuda_kernel *const *gy_cuda_kernels(size_t *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    *count = kernels;
    return table;
}
