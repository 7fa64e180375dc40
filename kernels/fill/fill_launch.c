/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of fills (kernels.h). */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "graph/graph.h"

enum { UNIFORM, IOTA, SPD }; /* variants */

/* Arguments that all functions begin with, then those of one of them. */
static gantry_status queue(const gantry_launch *l, int variant, int64_t threads, void *const *own, int count)
{
    const gy_cuda_fill *fill = l->user;
    const gantry_arg *to = &l->arg[0];
    gy_fill_lines at = fill->at;
    int64_t n = gy_arg_size(to);
    void *params[13] = { (void *)(uintptr_t)&to->data,
                         &n,
                         &at.first,
                         &at.extent[2],
                         &at.extent[1],
                         &at.extent[0],
                         &at.step[2],
                         &at.step[1],
                         &at.step[0] };
    for (int i = 0; i < count; i++)
        params[9 + i] = own[i];
    gy_grid grid = gy_cuda_image_grid(l, variant, to->dtype, gy_tiles(threads, GY_IMAGE_THREADS));
    return n ? gy_cuda_image_launch(l, variant, to->dtype, grid, params) : GANTRY_OK;
}

static gantry_status launch_fill(const gantry_launch *l)
{
    const gy_cuda_fill *fill = l->user;
    gy_init what = *fill->what;
    int64_t n = gy_arg_size(&l->arg[0]);
    uint64_t whole_a = gy_constant_bits(what.a), whole_b = gy_constant_bits(what.b), order = fill->order;
    switch (what.kind) {
    case GY_INIT_UNIFORM: /* a thread has the elements of a block of four words, the first one perhaps not all */
        return queue(l, UNIFORM, n / (gantry_dtype_size(l->arg[0].dtype) < 8 ? 4 : 2) + 2,
                     (void *[]){ &what.seed, &what.a.real, &what.b.real }, 3);
    case GY_INIT_IOTA:
        return queue(l, IOTA, n, (void *[]){ &what.a.real, &what.b.real, &whole_a, &whole_b }, 4);
    case GY_INIT_VALUE: { /* numbers that count by nothing: -0, as what is added to it stays what it is */
        double nothing = -0.0;
        uint64_t none = 0;
        return queue(l, IOTA, n, (void *[]){ &what.a.real, &nothing, &whole_a, &none }, 4);
    }
    case GY_INIT_SPD:
        return queue(l, SPD, n, (void *[]){ &what.seed, &order }, 2);
    default:
        return GANTRY_E_UNSUPPORTED;
    }
}

/* Its functions have another name than it has in the table. Those that fills of a type need are looked for when they
 * are first launched. */
static gantry_status open_fill(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "fill", .data = kernel->data };
    return gy_cuda_image_open(handle, &code, driver, err);
}

static const gy_cuda_image image = { .code = gy_fatbin_fill,
                                     .dtypes = GY_ALL_DTYPES | GY_F8_DTYPES,
                                     .variant = { "_uniform", "_iota", "_spd" } };
const gy_cuda_kernel gy_cuda_kernel_fill = { .name = GY_CUDA_FILL,
                                             .launch = launch_fill,
                                             .open = open_fill,
                                             .close = gy_cuda_image_close,
                                             .data = &image,
                                             .record = gy_cuda_image_record,
                                             .prepare = gy_cuda_image_prepare,
                                             .why = gy_cuda_image_why };
