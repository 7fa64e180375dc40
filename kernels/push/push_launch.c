/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of collectives whose GPUs send what they give (kernels.h). */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "kernels/push/push.h"
#include <stdbool.h>

/* As in kernels/push/push.cu. */
typedef struct batch {
    gy_push_part at[GY_PUSH_PARTS];
} batch;
_Static_assert(sizeof(batch) + sizeof(gy_push) <= 4096, "parameters of a kernel");

/* Bytes that are only moved are so in the largest elements that all addresses and sizes here allow. Lines are the same
 * for all. */
static gantry_dtype widest(const gy_cuda_push *p)
{
    uint64_t bits = 8;
    for (uint32_t i = 0; i < p->parts; i++)
        bits |= p->part[i].source | p->part[i].target | p->part[i].n;
    return bits & 3 ? GANTRY_U8 : bits & 4 ? GANTRY_U32 : GANTRY_U64;
}

static gantry_status launch_push(const gantry_launch *l)
{
    const gy_cuda_push *p = l->user;
    const gantry_arg *arg = l->arg;
    bool moves = arg->access == GANTRY_WRITE;
    gantry_dtype dtype = moves ? widest(p) : arg->dtype;
    batch b;
    for (uint32_t i = 0; i < p->parts; i++) {
        b.at[i] = p->part[i];
        b.at[i].n = moves ? p->part[i].n / (uint32_t)gantry_dtype_size(dtype) : p->part[i].n;
    }
    gy_grid grid = { p->columns, p->parts, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, moves ? 0 : (int)arg->access - GANTRY_SUM, dtype, grid,
                                (void *[]){ &b, (void *)(uintptr_t)&p->with });
}

/* Of what only moves, by the function that has room for least. */
static uint32_t room(const gantry_launch *l)
{
    static const gantry_dtype widths[] = { GANTRY_U8, GANTRY_U32, GANTRY_U64 };
    const gantry_arg *arg = l->arg;
    uint32_t least = GY_MEETING_BLOCKS;
    bool moves = arg->access == GANTRY_WRITE;
    for (size_t i = 0; i < (moves ? sizeof widths / sizeof *widths : 1); i++) {
        uint32_t places =
            gy_cuda_image_places(l, moves ? 0 : (int)arg->access - GANTRY_SUM, moves ? widths[i] : arg->dtype);
        least = places < least ? places : least;
    }
    return least;
}

/* Its functions have another name than it has in the table. */
static gantry_status open_push(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver, gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "push", .data = kernel->data };
    GY_TRY(gy_cuda_image_open(handle, &code, driver, err));
    gantry_status status = gy_cuda_image_find_all(*handle, err);
    if (status)
        gy_cuda_image_close(*handle);
    return status;
}

/* In the order of gantry_access. */
static const gy_cuda_image image = { .code = gy_fatbin_push,
                                     .dtypes = GY_ALL_DTYPES,
                                     .variant = { "_sum", "_min", "_max", "_prod" } };
const gy_cuda_kernel gy_cuda_kernel_push = { .name = GY_CUDA_PUSH,
                                             .launch = launch_push,
                                             .open = open_push,
                                             .close = gy_cuda_image_close,
                                             .data = &image,
                                             .room = room,
                                             .why = gy_cuda_image_why };
