/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that combines and stores for collectives (kernels.h). */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "kernels/combine/meeting.h"
#include <stdbool.h>

/* MOST_BLOCKS: links need no more to be busy, and other kernels have room beside it. */
enum { PACK = 16, BLOCK_BYTES = GY_IMAGE_THREADS * PACK, MOST_BLOCKS = 512, NEVER = 0xFFFF };

/* As in kernels/combine/combine.cu. */
typedef struct part {
    int64_t n;
    uint16_t first, sources, targets, head;
} part;
typedef struct batch {
    void *end[GY_CUDA_ENDS];
    part at[GY_CUDA_PARTS];
} batch;

static bool begins(const gantry_launch *l, int32_t i)
{
    return i == 0 || (l->arg[i].access == GANTRY_READ && l->arg[i - 1].access != GANTRY_READ);
}

/* The parts and their ends, in elements of `size` bytes; 0: too many. */
static uint32_t collect(batch *b, const gantry_launch *l, int64_t size)
{
    uint32_t parts = 0;
    for (int32_t i = 0; i < l->args; i++) {
        const gantry_arg *a = &l->arg[i];
        uintptr_t at = (uintptr_t)a->data;
        if (i == GY_CUDA_ENDS || (begins(l, i) && parts == GY_CUDA_PARTS))
            return 0;
        b->end[i] = a->data;
        if (begins(l, i)) {
            int64_t head = (int64_t)((PACK - at % PACK) % PACK) / size;
            b->at[parts++] = (part){ a->rows * a->row_bytes / size, (uint16_t)i, 0, 0, (uint16_t)head };
        }
        part *p = &b->at[parts - 1];
        p->head = at % PACK == (uintptr_t)b->end[p->first] % PACK ? p->head : NEVER;
        if (a->access == GANTRY_READ)
            p->sources++;
        else
            p->targets++;
    }
    return parts;
}

/* Bytes that are only moved are so in the largest elements that all addresses and sizes allow (16 bits: there is no
 * integer). */
static gantry_dtype widest(const gantry_launch *l)
{
    uintptr_t bits = 8;
    for (int32_t i = 0; i < l->args; i++)
        bits |= (uintptr_t)l->arg[i].data | (uintptr_t)(l->arg[i].rows * l->arg[i].row_bytes);
    return bits & 3 ? GANTRY_U8 : bits & 4 ? GANTRY_U32 : GANTRY_U64;
}

static gantry_status launch_nothing(const gantry_launch *l)
{
    gy_combine_meeting alone = { .peers = 0 };
    batch b;
    b.at[0] = (part){ 0 };
    return gy_cuda_image_launch(l, 0, GANTRY_U8, (gy_grid){ 1, 1, 1, 1, 1, 1 }, (void *[]){ &b, &alone });
}

/* All GPUs that meet have as many blocks, whatever the parts of this one are, and room for all of them at once: see
 * collective/counted.c. */
static gantry_status launch_meeting(const gantry_launch *l, int variant, gantry_dtype dtype, batch *b, uint32_t parts)
{
    gy_cuda_meeting *m = l->user;
    gy_grid grid = { m->columns, m->parts, 1, GY_IMAGE_THREADS, 1, 1 };
    for (; parts < m->parts; parts++)
        b->at[parts] = (part){ 0 };
    return gy_cuda_image_launch(l, variant, dtype, grid, (void *[]){ b, &m->with });
}

/* combine_OP_DTYPE(batch), a row of blocks for each part. */
static gantry_status launch_combine(const gantry_launch *l)
{
    if (l->args == 0)
        return launch_nothing(l);
    const gantry_arg *last = &l->arg[l->args - 1];
    gy_combine_meeting alone = { .peers = 0 };
    bool moves = last->access == GANTRY_WRITE;
    gantry_dtype dtype = moves ? widest(l) : last->dtype;
    int variant = moves ? 0 : (int)last->access - GANTRY_SUM;
    int64_t size = (int64_t)gantry_dtype_size(dtype), most = 0;
    batch b;
    uint32_t parts = collect(&b, l, size);
    if (parts == 0)
        return GANTRY_E_UNSUPPORTED;
    for (uint32_t i = 0; i < parts; i++)
        most = b.at[i].n > most ? b.at[i].n : most;
    if (l->user)
        return launch_meeting(l, variant, dtype, &b, parts);
    int64_t blocks = (most * size + BLOCK_BYTES - 1) / BLOCK_BYTES, each = MOST_BLOCKS / parts;
    gy_grid grid = gy_cuda_image_grid(l, variant, dtype, blocks < each ? blocks : each);
    grid.y = parts;
    return gy_cuda_image_launch(l, variant, dtype, grid, (void *[]){ &b, &alone });
}

/* Of what only moves: addresses decide which of them it is. */
static const gantry_dtype widths[] = { GANTRY_U8, GANTRY_U32, GANTRY_U64 };

/* Of what only moves, by the function that has room for least. */
static uint32_t room(const gantry_launch *l)
{
    const gantry_arg *last = &l->arg[l->args - 1];
    uint32_t least = GY_MEETING_BLOCKS;
    bool moves = last->access == GANTRY_WRITE;
    for (size_t i = 0; i < (moves ? sizeof widths / sizeof *widths : 1); i++) {
        uint32_t places =
            gy_cuda_image_places(l, moves ? 0 : (int)last->access - GANTRY_SUM, moves ? widths[i] : last->dtype);
        least = places < least ? places : least;
    }
    return least;
}

/* Its functions have another name than it has in the table. Those that only move are found at once; all others take
 * the driver longer than they take a graph of copies to be made. */
static gantry_status open_combine(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                  gantry_error *err)
{
    const gy_cuda_kernel code = { .name = "combine", .data = kernel->data };
    GY_TRY(gy_cuda_image_open(handle, &code, driver, err));
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < sizeof widths / sizeof *widths && status == GANTRY_OK; i++)
        status = gy_cuda_image_find(*handle, 0, widths[i], err);
    if (status)
        gy_cuda_image_close(*handle);
    return status;
}

/* Of a launch that combines: all others are found, as nobody says beforehand which these will be. */
static gantry_status prepare_combine(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    (void)scratch;
    return gy_cuda_image_find_all(l->handle, err);
}

/* In the order of gantry_access. */
static const gy_cuda_image image = { .code = gy_fatbin_combine,
                                     .dtypes = GY_ALL_DTYPES,
                                     .variant = { "_sum", "_min", "_max", "_prod" } };
const gy_cuda_kernel gy_cuda_kernel_combine = { .name = GY_CUDA_COMBINE,
                                                .launch = launch_combine,
                                                .open = open_combine,
                                                .close = gy_cuda_image_close,
                                                .prepare = prepare_combine,
                                                .data = &image,
                                                .room = room,
                                                .why = gy_cuda_image_why };
