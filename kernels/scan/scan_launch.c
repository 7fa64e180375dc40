/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "base/error.h"
#include "kernels/scan.h"

enum { SUMS, STARTS, ELEMENTS }; /* variants */

static gantry_status launch_scan(const gantry_launch *l)
{
    enum { THREADS = 256, WARPS = THREADS / GY_SCAN_LANES }; /* of scan.cu */
    const gantry_arg *from = &l->arg[2], *to = &l->arg[3];
    int exclusive = l->arg[0].number != 0, step = l->arg[1].number != 0 ? -1 : 1;
    int64_t n = gy_arg_size(from), last = step < 0 && n > 0 ? (n - 1) * (int64_t)gantry_dtype_size(from->dtype) : 0;
    const void *x = (const char *)from->data + last;
    void *y = (char *)to->data + last, *partial = l->scratch;
    int64_t chunk = gy_scan_chunk(n), chunks = gy_tiles(n, chunk);
    uintptr_t bytes = GY_SCAN_PACK * gantry_dtype_size(from->dtype);
    int aligned = step > 0 && (uintptr_t)x % bytes == 0 && (uintptr_t)y % bytes == 0;
    gy_grid grid = { (unsigned)gy_tiles(chunks, WARPS), 1, 1, THREADS, 1, 1 }, one = { 1, 1, 1, GY_SCAN_LANES, 1, 1 };
    if (l->scratch_bytes < (uint64_t)chunks * sizeof(uint64_t))
        return GANTRY_E_CAPACITY; /* the node asked for less */
    if (chunks > 1) {
        GY_TRY(
            gy_cuda_image_launch(l, SUMS, from->dtype, grid, (void *[]){ &x, &partial, &n, &chunk, &aligned, &step }));
        GY_TRY(gy_cuda_image_launch(l, STARTS, from->dtype, one, (void *[]){ &partial, &chunks }));
    } else {
        partial = NULL;
    }
    return gy_cuda_image_launch(l, ELEMENTS, from->dtype, grid,
                                (void *[]){ &x, &y, &partial, &n, &chunk, &exclusive, &aligned, &step });
}

GY_CUDA_KERNEL(scan, launch_scan, GY_ALL_DTYPES, [SUMS] = "_sums", [STARTS] = "_starts", [ELEMENTS] = "")
