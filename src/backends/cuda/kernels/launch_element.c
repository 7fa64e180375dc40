/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that do the same to each element. */
#include "backends/cuda/kernels/image.h"

enum { MOST_ARGS = 6, PACK = 16, BLOCK_BYTES = 4096 };

/* Bytes by which the address is beyond a multiple of a pack. */
static int64_t beyond(const gantry_arg *a)
{
    return (int64_t)((uintptr_t)a->data % PACK);
}

/* Elements before the first at which all regions are aligned to packs; all of them if there is none. */
static int64_t head_of(const gantry_launch *l, const gantry_arg *like)
{
    int64_t n = gy_arg_size(like), size = (int64_t)gantry_dtype_size(like->dtype);
    int64_t head = (PACK - beyond(like)) % PACK / size;
    for (int32_t i = 0; i < l->args; i++)
        if (l->arg[i].access && beyond(&l->arg[i]) != beyond(like))
            return n;
    return head < n ? head : n;
}

/* NAME(numbers and addresses in the order of the manifest, n, head) */
static gantry_status launch_each(const gantry_launch *l)
{
    void *data[MOST_ARGS], *params[MOST_ARGS + 2];
    gy_multiplier number[MOST_ARGS];
    const gantry_arg *first = l->arg[0].access ? &l->arg[0] : &l->arg[1];
    int64_t n = gy_arg_size(first), head = head_of(l, first);
    int64_t work = (n * (int64_t)gantry_dtype_size(first->dtype) + BLOCK_BYTES - 1) / BLOCK_BYTES;
    for (int32_t i = 0; i < l->args; i++) {
        data[i] = l->arg[i].data;
        number[i] = gy_multiplier_of(&l->arg[i], first->dtype);
        params[i] = l->arg[i].access ? (void *)&data[i] : &number[i];
    }
    params[l->args] = &n;
    params[l->args + 1] = &head;
    return gy_cuda_image_launch(l, 0, first->dtype, gy_cuda_image_grid(l, 0, first->dtype, work), params);
}

#define KERNEL(name)
#define DEVICE(name)
#define ELEMENT(name, dtypes) GY_CUDA_KERNEL(name, launch_each, dtypes, "")
#include "kernels/kernels.def"
