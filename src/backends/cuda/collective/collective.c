/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives. Each GPU carries out its shares (share.h) in a lane of the op, all at the same time; shares that no
 * kernel reaches are copied. Shares that no GPU can combine go to the host, which combines them in stream order, with
 * the arithmetic and the order of the host back end. */
#include "backends/cuda/collective/counted.h"
#include "backends/cuda/collective/nccl.h"
#include "backends/cuda/collective/share.h"

#include "base/error.h"

/* The bytes that are combined at once: a multiple of every element size. */
static uint64_t chunk_of(uint64_t bytes)
{
    return bytes < GY_CUDA_CHUNK ? bytes : GY_CUDA_CHUNK;
}

gy_location gy_collective_end(const gy_cuda *h, uint32_t op, uint32_t turn, uint32_t end, uint64_t offset)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_exchange_end *e = &gy_collective_exchange(h, op)->end[end];
    return gy_location_at(gy_cuda_location(h, &s->use.at[s->ops.at[op].use + e->use], turn), e->offset + offset);
}

static gy_location end_at(const gy_submit *x, uint32_t end, uint64_t offset)
{
    return gy_collective_end(x->h, x->op, x->turn, end, offset);
}

/* ---- by the host ---- */

/* The bytes of the lane's stage for a chunk of each source; results follow. */
static uint64_t area_bytes(const gy_cuda *h, uint32_t op)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < h->op[op].shares; i++) {
        const gy_share *s = &h->op[op].share[i];
        uint64_t bytes = s->way == GY_SHARE_HOST ? s->sources * chunk_of(s->bytes) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* If the exchange is staged, all results are built before one is stored, as on the host; else one chunk after the
 * other. */
static uint64_t result_bytes(const gy_cuda *h, uint32_t op)
{
    uint64_t all = 0, most = 0;
    for (uint32_t i = 0; i < h->op[op].shares; i++) {
        const gy_share *s = &h->op[op].share[i];
        uint64_t bytes = s->way == GY_SHARE_HOST ? s->bytes : 0;
        all += bytes;
        most = chunk_of(bytes) > most ? chunk_of(bytes) : most;
    }
    return gy_collective_exchange(h, op)->staged ? all : most;
}

/* Copies that are staged use the stage while nothing is combined in it. */
uint64_t gy_collective_stage(const gy_cuda *h, uint32_t op)
{
    uint64_t most = area_bytes(h, op) + result_bytes(h, op);
    for (uint32_t i = 0; i < h->op[op].shares; i++) {
        const gy_share *s = &h->op[op].share[i];
        gy_location from = gy_collective_end(h, op, 0, s->source, 0), to = gy_collective_end(h, op, 0, s->target, 0);
        uint64_t bytes = s->way == GY_SHARE_COPY ? gy_copy_stage(h, to, from, s->bytes) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static char *stage_of(const gy_submit *x)
{
    return gy_cuda_lane_of(x->h, x->op, 0)->stage;
}

static gy_location host_location(char *at)
{
    return (gy_location){ .device = GY_NONE, .pinned = true, .host = at };
}

/* Combines one chunk of a share into `result`, in host memory. */
static gantry_status combine(gy_submit *x, const gy_share *s, char *result, uint64_t offset, uint64_t bytes)
{
    const gy_exchange *exchange = gy_collective_exchange(x->h, x->op);
    gantry_status status = GANTRY_OK;
    const void **sources = gy_callbacks_add(x->callbacks, s->sources * sizeof *sources);
    if (!sources)
        return gy_fail_nomem(x->err);
    for (uint32_t k = 0; k < s->sources && status == GANTRY_OK; k++) {
        gy_location from = end_at(x, s->source + k, offset);
        char *copy = stage_of(x) + k * chunk_of(s->bytes);
        sources[k] = from.device == GY_NONE ? from.host : copy;
        status = from.device == GY_NONE ? GANTRY_OK : gy_submit_copy(x, host_location(copy), from, bytes);
    }
    status = status ? status : gy_submit_join(x);
    gy_callback callback = { .kind = GY_CALLBACK_REDUCE,
                             .op = x->op,
                             .to = result,
                             .sources = sources,
                             .count = s->sources,
                             .dtype = exchange->dtype,
                             .reduce = exchange->reduce,
                             .bytes = bytes };
    if (s->sources == 1) {
        callback.kind = GY_CALLBACK_MOVE;
        callback.from = sources[0];
    }
    return status ? status : gy_submit_callback(x, x->first_lane, callback);
}

/* Copies from host memory to all targets, from `offset` on. Only the next result waits for these copies, in `combine`.
 */
static gantry_status deliver(gy_submit *x, const gy_share *s, char *from, uint64_t offset, uint64_t bytes)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < s->targets && status == GANTRY_OK; k++)
        status = gy_submit_copy(x, end_at(x, s->target + k, offset), host_location(from), bytes);
    return status;
}

static gantry_status exchange_on_host(gy_submit *x, const gy_share *s)
{
    char *result = stage_of(x) + area_bytes(x->h, x->op);
    gantry_status status = GANTRY_OK;
    for (uint64_t done = 0; done < s->bytes && status == GANTRY_OK; done += GY_CUDA_CHUNK) {
        uint64_t bytes = chunk_of(s->bytes - done);
        status = combine(x, s, result, done, bytes);
        status = status ? status : deliver(x, s, result, done, bytes);
    }
    return status;
}

/* Combines all results before it copies any to its targets. */
static gantry_status exchange_aside(gy_submit *x)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    char *results = stage_of(x) + area_bytes(x->h, x->op), *result = results;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < op->shares && status == GANTRY_OK; result += op->share[i++].bytes) {
        const gy_share *s = &op->share[i];
        for (uint64_t done = 0; done < s->bytes && status == GANTRY_OK; done += GY_CUDA_CHUNK)
            status = combine(x, s, result + done, done, chunk_of(s->bytes - done));
    }
    result = results;
    for (uint32_t i = 0; i < op->shares && status == GANTRY_OK; result += op->share[i++].bytes)
        status = deliver(x, &op->share[i], result, 0, op->share[i].bytes);
    return status;
}

/* ---- by copies ---- */

/* The GPU that has the source sends it, in its lane. Copies that are staged share the stage: the next one comes after
 * them. */
static gantry_status copy_share(gy_submit *x, const gy_share *s)
{
    gy_location from = end_at(x, s->source, s->offset), to = end_at(x, s->target, s->offset);
    bool staged = gy_copy_stage(x->h, to, from, s->bytes) > 0;
    gy_submit at = *x;
    gantry_status status = GANTRY_OK;
    if (!staged && from.device != GY_NONE)
        status = gy_submit_on(x, from.device, &at.first_lane);
    status = status || gy_location_same(to, from) ? status : gy_submit_copy(&at, to, from, s->bytes);
    return status || !staged ? status : gy_submit_join(x);
}

static gantry_status submit_shares(gy_submit *x)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0, done = 1; i < op->shares && status == GANTRY_OK; i += done, done = 1) {
        const gy_share *s = &op->share[i];
        status = i && s->round != s[-1].round ? gy_submit_join(x) : GANTRY_OK;
        if (status)
            return status;
        status = s->way == GY_SHARE_KERNEL ? gy_combine_submit(x, s, op->shares - i, &done)
                 : s->way == GY_SHARE_COPY ? copy_share(x, s)
                                           : exchange_on_host(x, s);
    }
    return status;
}

/* True if the op begins and ends with a launch that does nothing. In a graph, several GPUs would wait for as many, and
 * each wait costs the host more than a microsecond when the graph is launched: so all wait for one launch, which waits
 * for all. */
static bool meets(const gy_submit *x)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    bool several = false;
    for (uint32_t i = 1; i < op->shares; i++)
        several = several || op->share[i].device != op->share[0].device;
    return several && x->capture && x->h->job->schedule->ops.at[x->op].lanes > 2;
}

gantry_status gy_submit_collective(gy_submit *x)
{
    if (x->h->op[x->op].nccl)
        return gy_nccl_submit(x);
    if (x->h->op[x->op].counted)
        return gy_counted_submit(x);
    if (gy_collective_exchange(x->h, x->op)->staged)
        return exchange_aside(x);
    bool meet = meets(x);
    gantry_status status = meet ? gy_combine_meet(x) : GANTRY_OK;
    status = status ? status : submit_shares(x);
    status = status || !meet ? status : gy_submit_join(x);
    return status || !meet ? status : gy_combine_meet(x);
}
