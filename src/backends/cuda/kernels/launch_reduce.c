/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that make one number of all elements: a block for each chunk, then one for what they found. */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"

#include "kernel/chunks.h"

enum { CHUNKS, FINISH };

static int is_aligned(const gantry_arg *a)
{
    return (uintptr_t)a->data % 16 == 0;
}

/* NAME(x, [y,] partial, n, chunk, aligned), then NAME_finish(partial, chunks, out), of out's type. Partial results lie
 * in the scratch. */
static gantry_status launch_reduce(const gantry_launch *l)
{
    const gantry_arg *out = &l->arg[l->args - 1];
    void *x = l->arg[0].data, *y = l->arg[1].data, *partial = l->scratch, *to = out->data;
    int64_t n = gy_arg_size(&l->arg[0]), chunk = gy_chunk_size(n, (int64_t)gantry_dtype_size(l->arg[0].dtype));
    int64_t chunks = (n + chunk - 1) / chunk;
    int aligned = is_aligned(&l->arg[0]) && (l->args == 2 || is_aligned(&l->arg[1]));
    gy_grid grid = { (unsigned)chunks, 1, 1, GY_IMAGE_THREADS, 1, 1 }, one = { 1, 1, 1, GY_IMAGE_THREADS, 1, 1 };
    void *of_one[] = { &x, &partial, &n, &chunk, &aligned }, *of_two[] = { &x, &y, &partial, &n, &chunk, &aligned };
    if (l->scratch_bytes < (uint64_t)chunks * sizeof(uint64_t))
        return GANTRY_E_CAPACITY; /* the node asked for less */
    GY_TRY(gy_cuda_image_launch(l, CHUNKS, l->arg[0].dtype, grid, l->args == 2 ? of_one : of_two));
    return gy_cuda_image_launch(l, FINISH, out->dtype, one, (void *[]){ &partial, &chunks, &to });
}

#define KERNEL(name)
#define DEVICE(name)
#define REDUCTION(name, dtypes) GY_CUDA_KERNEL(name, launch_reduce, dtypes, [CHUNKS] = "", [FINISH] = "_finish")
#include "kernels/kernels.def"
