/* SPDX-License-Identifier: Apache-2.0 */
/* Fills and first contents that a kernel makes where they lie, with the host's bits (kernels/fill): random numbers,
 * numbers that count, matrices to factor. */
#include "backends/cuda/stream/own_kernel.h"
#include "backends/cuda/stream/stream.h"

#include "base/error.h"
#include "graph/contents.h"
#include "run/edge.h"

/* ---- opened with the run ---- */

static const gy_own_kernel own = { GY_CUDA_FILL, "what fills memory" };

/* Has the driver load its functions for elements of that type, too. Without a handle the host does it. */
static gantry_status open_on(gy_cuda *h, uint32_t device, gantry_dtype dtype, gantry_error *err)
{
    gantry_arg arg = { .dtype = dtype, .access = GANTRY_WRITE };
    gantry_error why = { 0 };
    uint64_t scratch = 0;
    GY_TRY(gy_own_kernel_open(h, &own, h->fill, device, err));
    if (!h->fill[device])
        return GANTRY_OK;
    GY_TRY(gy_cuda_use(h, device, err));
    gantry_launch l = { .handle = h->fill[device], .args = 1, .arg = &arg, .arg_size = sizeof arg };
    gantry_status status = gy_cuda_kernel_find(GY_CUDA_FILL)->prepare(&l, &scratch, &why);
    return status ? gy_own_kernel_fail(h, &own, device, status, &why, err) : GANTRY_OK;
}

enum { VALUE_BYTES = 64 << 10 };

/* One value again and again is a memset, unless it is small: in a graph on an H200 a kernel behind another takes 0.7
 * us, a memset 2.1 and two of them, of a value of 8 bytes whose halves differ, 3.6. */
static bool is_for_kernel(const gy_init *what, uint64_t bytes)
{
    return gy_init_is_for_gpus(what) && (what->kind != GY_INIT_VALUE || bytes <= VALUE_BYTES);
}

static const gy_buffer *buffer_of(const gy_cuda *h, uint32_t instance)
{
    const gantry_schedule *s = h->job->schedule;
    return &h->job->graph->buffers.at[s->values.at[s->instances.at[instance].value].buffer];
}

static gantry_status open_for_op(gy_cuda *h, uint32_t id, gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    gantry_status status = GANTRY_OK;
    if (op->kind != GY_OP_FILL || op->node == GY_NONE || !gy_cuda_here(h, id))
        return GANTRY_OK;
    for (uint32_t k = 0; k < op->uses - gy_op_has_flag(op) && status == GANTRY_OK; k++) {
        const gy_use *use = &h->job->schedule->use.at[op->use + k];
        uint32_t device = gy_cuda_location(h, use, 0).device;
        bool kernel =
            is_for_kernel(&gy_node_extra_of(h->job->graph, op->node)->fill, gy_use_bytes(h->job->schedule, use));
        status = device == GY_NONE || !kernel ? GANTRY_OK : open_on(h, device, buffer_of(h, use->instance)->dtype, err);
    }
    return status;
}

gantry_status gy_fill_open(gy_cuda *h, gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    gantry_status status = GANTRY_OK;
    h->fill = gy_arena_calloc(&h->arena, h->devices, sizeof *h->fill);
    if (!h->fill)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < s->ops.count && status == GANTRY_OK; i++)
        status = open_for_op(h, i, err);
    for (uint32_t i = 0; i < s->instances.count && status == GANTRY_OK; i++) {
        uint32_t device = h->memory[s->instances.at[i].memory].device;
        const gy_buffer *b = buffer_of(h, i);
        bool begins = s->instances.at[i].role == GY_ROLE_PERSIST && is_for_kernel(&b->init, UINT64_MAX);
        begins = begins && !h->job->network;
        status = begins && device != GY_NONE ? open_on(h, device, b->dtype, err) : GANTRY_OK;
    }
    return status;
}

void gy_fill_close(gy_cuda *h)
{
    gy_own_kernel_close(h, &own, h->fill);
}

/* ---- launched ---- */

static gy_fill_lines lines_of_rows(const gy_buffer *b, int64_t row, int64_t elements)
{
    return (gy_fill_lines){ .first = row * (b->row_bytes / (int64_t)gantry_dtype_size(b->dtype)),
                            .extent = { 1, 1, elements } };
}

/* Axes are aligned to the right. */
static gy_fill_lines lines_of_tile(const gy_buffer *b, int64_t tile)
{
    const int64_t *shape = gy_tile_shape(b, tile);
    gy_fill_lines at = { .first = gy_tile_line_of(b, tile, 0).first, .extent = { 1, 1, shape[b->rank - 1] } };
    int64_t apart = 1;
    for (int k = 2; k >= 0 && b->rank + k - 3 > 0; k--) {
        apart *= b->shape[b->rank + k - 3];
        at.step[k] = apart;
        if (k > 0)
            at.extent[k - 1] = shape[b->rank + k - 4];
    }
    return at;
}

gy_fill_target gy_fill_target_of(const gy_cuda *h, const gy_use *use, const gy_init *what, uint32_t turn)
{
    return (gy_fill_target){ buffer_of(h, use->instance), what, use->first, use->last, gy_cuda_location(h, use, turn) };
}

bool gy_fill_by_kernel(const gy_cuda *h, const gy_fill_target *t)
{
    uint64_t bytes = (uint64_t)gy_buffer_span(t->buffer, t->first, t->last);
    return t->what && is_for_kernel(t->what, bytes) && t->to.device != GY_NONE && h->fill[t->to.device];
}

static gantry_status launch(const gy_cuda *h, const gy_fill_target *t, gy_fill_lines at, gy_location to,
                            int64_t elements, CUstream stream)
{
    int64_t size = (int64_t)gantry_dtype_size(t->buffer->dtype);
    gy_cuda_fill fill = { t->what, at, (uint64_t)t->buffer->shape[t->buffer->rank - 1] };
    gantry_arg arg = { .name = "",
                       .dtype = t->buffer->dtype,
                       .access = GANTRY_WRITE,
                       .rows = elements,
                       .row_bytes = size,
                       .data = gy_location_pointer(to) };
    gantry_launch l = { .struct_size = sizeof l,
                        .stream = stream,
                        .args = 1,
                        .arg = &arg,
                        .arg_size = sizeof arg,
                        .user = &fill,
                        .handle = h->fill[to.device] };
    return gy_cuda_kernel_find(GY_CUDA_FILL)->launch(&l);
}

gantry_status gy_fill_launch(gy_cuda *h, const gy_fill_target *t, CUstream stream)
{
    const gy_buffer *b = t->buffer;
    gantry_status status = GANTRY_OK;
    for (int64_t row = t->first, next; row < t->last && status == GANTRY_OK; row = next) {
        next = b->tile_offset ? row + 1 : t->last;
        int64_t elements = gy_buffer_span(b, row, next) / (int64_t)gantry_dtype_size(b->dtype);
        gy_location to = gy_location_at(t->to, (uint64_t)gy_buffer_span(b, t->first, row));
        if (elements)
            status = launch(h, t, b->tile_offset ? lines_of_tile(b, row) : lines_of_rows(b, row, elements), to,
                            elements, stream);
    }
    return status;
}

const char *gy_fill_why(const gy_cuda *h, const gy_fill_target *t)
{
    const char *why = gy_cuda_kernel_find(GY_CUDA_FILL)->why(h->fill[t->to.device]);
    return why ? why : "its kernel cannot be launched";
}

void gy_fill_record(gy_cuda *h, const gy_fill_target *t, gy_cuda_recorder *to)
{
    gy_cuda_kernel_find(GY_CUDA_FILL)->record(h->fill[t->to.device], to);
}
