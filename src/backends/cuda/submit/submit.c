/* SPDX-License-Identifier: Apache-2.0 */
/* One start: every op in order of position, with the sync table as events. Under capture the same calls make a graph.
 */
#include "backends/cuda/submit/submit.h"

#include "backends/cuda/collective/ahead.h"
#include "base/error.h"

#include "backends/cuda/resident/resident.h"
#include "backends/cuda/stream/gates.h"
#include "backends/cuda/stream/ranges.h"
#include "backends/cuda/times/times.h"
#include "backends/cuda/usercode/usercode.h"
#include <string.h>

/* ---- launches that come early ---- */

/* The op that begins puts other nodes on its lanes. */
static void leave_ours(gy_submit *x)
{
    uint32_t lanes = x->h->job->schedule->ops.at[x->op].lanes;
    x->behind_ours = gy_cuda_lane_of(x->h, x->op, 0)->ours && lanes == 1;
    for (uint32_t i = 0; i < lanes; i++)
        gy_cuda_lane_of(x->h, x->op, i)->ours = false;
}

static bool waits_for_others(const gy_submit *x)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    bool waits = false;
    for (uint32_t i = op->wait; i < op->wait + op->waits; i++)
        waits = waits || x->h->wait[i].distance == 0;
    return waits;
}

/* A launch may come early if the node ahead of it in its lane is all that it depends on, and is a kernel of the
 * library or a formula: that has waited for what is ahead of itself by the time it ends. Where times are recorded none
 * does: they would have the waiting in them. */
static gy_early early_of(const gy_submit *x)
{
    if (x->h->no_early || x->h->job->record || x->h->job->apart)
        return GY_EARLY_NONE;
    return x->behind_ours && !waits_for_others(x) ? GY_EARLY_ALL : GY_EARLY_INSIDE;
}

static gantry_status call(gy_submit *x)
{
    const gy_cuda_call *c = &x->h->op[x->op].call[x->turn];
    return x->h->op[x->op].calls ? gy_cuda_batch_launch(x->h, x->op, x->turn)
                                 : gy_job_call(x->h->job, x->op, c->function, &c->launch);
}

typedef bool early_fn(void *handle, gy_early which);

/* NULL: nobody knows how the functions of that launch begin. */
static early_fn *early_fn_of(const gy_submit *x, uint32_t device)
{
    if (x->h->op[x->op].call[x->turn].function == gy_user_launch)
        return gy_user_early;
    const gy_cuda_kernel *kernel = gy_cuda_kernel_of(x->h, &x->h->job->schedule->ops.at[x->op], device);
    return kernel ? kernel->early : NULL;
}

static gantry_status call_early(gy_submit *x, uint32_t device)
{
    early_fn *early = early_fn_of(x, device);
    void *handle = x->h->op[x->op].call[x->turn].launch.handle;
    if (!x->capture || !early)
        return call(x);
    gy_early which = early_of(x);
    x->h->came_early = x->h->came_early || which;
    early(handle, which);
    gantry_status status = call(x);
    gy_cuda_lane_of(x->h, x->op, 0)->ours = early(handle, GY_EARLY_NONE);
    return status;
}

/* ---- one op ---- */

static gantry_status launch(gy_submit *x)
{
    gy_cuda *h = x->h;
    uint32_t device = gy_op_device(h->job->schedule, &h->job->schedule->ops.at[x->op], 0);
    if (h->op[x->op].called)
        return GANTRY_OK;
    if (!h->device[device].gpu)
        return gy_submit_callback(x, x->first_lane, (gy_callback){ .kind = GY_CALLBACK_CALL, .op = x->op });
    gantry_status status = gy_cuda_use(h, x->first_lane.device, x->err);
    if (status)
        return status;
    status = call_early(x, device);
    gy_cuda_forget(h); /* a function may have made another context current */
    if (status)
        return gy_cuda_op_fail(h, x->op, status, 0, x->err);
    return GANTRY_OK;
}

/* The uses of a copy are its reads, then as many writes. */
static gantry_status copy(gy_submit *x)
{
    const gantry_schedule *s = x->h->job->schedule;
    const gy_op *op = &s->ops.at[x->op];
    uint32_t pairs = op->uses / 2;
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < pairs && status == GANTRY_OK; k++) {
        const gy_use *from = &s->use.at[op->use + k], *to = &s->use.at[op->use + pairs + k];
        status = gy_submit_copy(x, gy_cuda_location(x->h, to, x->turn), gy_cuda_location(x->h, from, x->turn),
                                gy_use_bytes(s, to));
        status = status ? status : gy_submit_join(x); /* pairs share the stage */
    }
    return status;
}

/* Where no code was compiled for the GPU its copy engines do it, each copy by itself. */
static bool is_carried(const gy_submit *x)
{
    return x->h->op[x->op].carried && x->h->combine[x->first_lane.device];
}
static bool is_by_kernel(const gy_submit *x)
{
    return x->h->op[x->op].by_kernel && x->h->combine[x->first_lane.device];
}

static gantry_status execute(gy_submit *x)
{
    const gy_op *op = &x->h->job->schedule->ops.at[x->op];
    if (!gy_cuda_here(x->h, x->op))
        return gy_cross_submit(x);
    if (x->h->op[x->op].when)
        return gy_when_submit(x);
    GY_TRY(is_by_kernel(x)                ? gy_carry_submit(x)
           : gy_op_calls(op)              ? launch(x)
           : op->kind == GY_OP_COLLECTIVE ? gy_submit_collective(x)
           : op->kind == GY_OP_FILL       ? gy_submit_fill(x)
                                          : copy(x));
    return gy_submit_join(x);
}

/* Of lane `lane` of the op, where each of its lanes has one, else 0. */
static CUevent event_of(const gy_cuda *h, uint32_t op, uint32_t lane, uint64_t start)
{
    return h->event[(size_t)(h->op[op].event + lane) * h->ring + start % h->ring];
}

/* Waits for the ops of the sync table. A graph is launched after earlier starts, so it waits for none of them. Beside
 * resident kernels counters stand for all of the table. */
static gantry_status await_row(gy_submit *x, gy_cuda_wait row, gy_queue queue)
{
    if (row.distance == 0 && x->submitter)
        GY_TRY(gy_submitters_await(x, row.from));
    if (row.distance > 0 && (x->capture || row.distance >= x->start))
        return GANTRY_OK;
    uint32_t lane = gy_cuda_lane_ahead(x->h, row.from, queue.device);
    if (gy_gates_between(x, gy_cuda_lane_of(x->h, row.from, lane)->queue.device, queue.device))
        return gy_submit_gate(x, queue, row.from);
    gy_gates_follow(x, queue, row.from);
    return gy_submit_await(x, queue, event_of(x->h, row.from, lane, x->start - row.distance));
}

static gantry_status await_rows(gy_submit *x, gy_queue queue)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    gantry_status status = GANTRY_OK;
    if (gy_resident_on(x->h))
        return gy_resident_stream_await(x);
    for (uint32_t i = op->wait; i < op->wait + op->waits && status == GANTRY_OK; i++)
        status = await_row(x, x->h->wait[i], queue);
    return status;
}

/* Of an op whose lanes meet: each row is for one of them, and those of ahead.h. */
static gantry_status await_rows_of_lane(gy_submit *x, uint32_t lane)
{
    const gy_cuda_op *op = &x->h->op[x->op];
    const gy_cuda_ahead *ahead = x->h->ahead;
    gy_queue queue = gy_submit_lane(x, lane);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = op->wait; i < op->wait + op->waits && status == GANTRY_OK; i++)
        if (gy_cuda_lane_after(x->h, x->op, x->h->wait[i].from) == lane)
            status = await_row(x, x->h->wait[i], queue);
    for (uint32_t i = ahead->first[x->op]; i < ahead->first[x->op + 1] && status == GANTRY_OK; i++)
        if (ahead->row[i].lane == lane)
            status = await_row(x, (gy_cuda_wait){ .from = ahead->row[i].from }, queue);
    return status;
}

/* The kernel of a copy waits for what the copies that it carries wait for. */
static gantry_status await_all_rows(gy_submit *x)
{
    uint32_t first = x->op;
    gantry_status status = await_rows(x, x->first_lane);
    for (uint32_t id = is_by_kernel(x) ? x->h->op[first].carries : GY_NONE; id != GY_NONE && !status;
         id = x->h->op[id].carries) {
        x->op = id;
        status = await_rows(x, x->first_lane);
    }
    x->op = first;
    return status;
}

static uint32_t lanes_of(const gy_submit *x)
{
    return gy_cuda_here(x->h, x->op) ? x->h->job->schedule->ops.at[x->op].lanes : 1;
}

/* An op of several lanes begins when all lanes have come to it and the ops that it waits for have ended. An op that is
 * tied to the one before it begins in each lane when that lane has come to it; so does one whose lanes meet by
 * counters. */
static gantry_status gather_lanes(gy_submit *x)
{
    bool tied = gy_order_tied(x, false), meets = gy_cuda_op_meets(&x->h->op[x->op]);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; meets && i < lanes_of(x) && status == GANTRY_OK; i++)
        status = await_rows_of_lane(x, i);
    if (meets)
        return status;
    status = await_all_rows(x);
    for (uint32_t i = 1; i < lanes_of(x) && status == GANTRY_OK; i++)
        status = tied ? await_rows(x, gy_submit_lane(x, i)) : gy_submit_order(x, gy_submit_lane(x, i), x->first_lane);
    return status;
}

/* All lanes go on when the op has ended; where the next op is tied to it, or lanes meet by counters, each lane goes on
 * when its own part has. */
static gantry_status part_lanes(gy_submit *x)
{
    bool apart = gy_order_tied(x, true) || gy_cuda_op_meets(&x->h->op[x->op]);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 1; i < lanes_of(x) && status == GANTRY_OK && !apart; i++)
        status = gy_submit_order(x, x->first_lane, gy_submit_lane(x, i));
    return status;
}

static gantry_status record_each_lane(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < lanes_of(x) && status == GANTRY_OK; i++)
        status = gy_submit_record(x, gy_submit_lane(x, i), event_of(x->h, x->op, i, x->start));
    return status;
}

/* Records the event of the op, after all of its lanes. Where each lane goes on with its own part of the next op, the
 * auxiliary stream waits for all of them. Where all of them have met, each has an event. */
static gantry_status record_end(gy_submit *x)
{
    const gy_op *op = &x->h->job->schedule->ops.at[x->op];
    gantry_status status = GANTRY_OK;
    gy_queue queue = x->first_lane;
    if (x->h->op[x->op].event == GY_NONE || gy_resident_on(x->h))
        return GANTRY_OK;
    if (gy_cuda_op_has_met(&x->h->op[x->op])) {
        GY_TRY(gy_gates_end(x, x->op, queue));
        return record_each_lane(x);
    }
    if (gy_order_tied(x, true)) {
        queue = x->h->device[x->first_lane.device].auxiliary;
        x->h->auxiliary_last[x->first_lane.device] = 1;
        for (uint32_t i = 0; i < op->lanes && status == GANTRY_OK; i++)
            status = gy_submit_order(x, gy_submit_lane(x, i), queue);
    }
    status = status ? status : gy_gates_end(x, x->op, queue);
    if (status == GANTRY_OK && gy_gates_within(x, x->op))
        status = gy_submit_record(x, queue, event_of(x->h, x->op, 0, x->start));
    if (status == GANTRY_OK && x->submitter)
        gy_submitters_signal(x);
    return status;
}

static gantry_status tick(gy_submit *x, uint32_t end)
{
    bool timed = x->h->clock && !x->capture && (!gy_cupti_on(x->h) || gy_cupti_may_miss(x->h, x->op));
    return timed ? gy_submit_record(x, x->first_lane, *gy_cuda_clock(x->h, x->turn, x->op, end)) : GANTRY_OK;
}

/* It is a part of what its batch's first op has submitted. */
static bool is_joined(const gy_submit *x)
{
    return x->h->op[x->op].called && x->h->job->schedule->ops.at[x->op].kind == GY_OP_COLLECTIVE;
}

static gantry_status submit_parts(gy_submit *x)
{
    x->first_lane = gy_submit_lane(x, 0);
    if (x->capture)
        leave_ours(x);
    bool joined = is_joined(x), carried = joined || is_carried(x); /* its kernel is ahead in the lane */
    gantry_status status = carried ? GANTRY_OK : gather_lanes(x);
    status = status ? status : tick(x, 0);
    status = status || carried ? status : execute(x);
    status = status ? status : tick(x, 1);
    status = status ? status : record_end(x);
    status = status || joined ? status : part_lanes(x);
    return status || !gy_resident_on(x->h) ? status : gy_resident_stream_signal(x);
}

gantry_status gy_submit_op(gy_submit *x)
{
    gy_range_op(x->h->ranges, x->op);
    gy_cupti_op(x->h, x->op);
    gantry_status status = submit_parts(x);
    gy_cupti_op(x->h, GY_NONE);
    gy_range_end(x->h->ranges);
    return status;
}

gantry_status gy_submit_check_canceled(const gy_submit *x)
{
    if (x->capture || !gy_job_canceled(x->h->job))
        return GANTRY_OK;
    return gy_cuda_op_cut(x->h, x->op, x->err);
}

/* After a failure x->op is the op that failed. */
static gantry_status submit_all(gy_submit *x)
{
    size_t ops = x->h->job->schedule->ops.count;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < ops && status == GANTRY_OK; i++) {
        x->op = i;
        if (!gy_cuda_has(x->h, i))
            continue;
        status = gy_submit_check_canceled(x);
        status = status ? status : gy_submit_op(x);
    }
    return status;
}

/* Kernels of workers, and, of many thousand ops maybe, those that are left to streams. */
static gantry_status submit_resident(gy_submit *x)
{
    const gy_resident *r = x->h->resident;
    gantry_status status = gy_resident_follow_starts(x);
    status = status ? status : gy_resident_launch(x);
    for (uint32_t i = 0; i < r->lefts && status == GANTRY_OK; i++) {
        uint32_t op = r->left[i];
        bool cuts = r->cut[op] == GY_CUT_HERE;
        status = gy_resident_pass(x, op);
        if (status)
            break;
        x->op = op;
        status = gy_submit_check_canceled(x);
        status = status || !cuts ? status : gy_resident_cut_begin(x);
        status = status ? status : gy_submit_op(x);
        status = status || !cuts ? status : gy_resident_cut_end(x);
    }
    return status ? status : gy_resident_pass(x, (uint32_t)x->h->job->schedule->ops.count);
}

static bool has_kernel(const gy_cuda *h, uint32_t device)
{
    return gy_resident_on(h) && h->resident->gpu[device].workers > 0;
}

/* Where the work of a device begins and ends. */
static gy_queue origin_of(const gy_submit *x, uint32_t device)
{
    return x->capture ? gy_gates_origin(x->h, device) : x->h->end_stream;
}

static gy_queue begin_of(const gy_submit *x, uint32_t lane)
{
    return origin_of(x, x->h->lane[lane].queue.device);
}

/* All lanes wait for the end stream: streams take part in a capture from their first wait for captured work on, and a
 * start on a stream of the caller comes after that stream. */
static gantry_status fork(gy_submit *x)
{
    gantry_status status = gy_gates_fork(x);
    for (uint32_t i = 0; i < x->h->lanes && status == GANTRY_OK; i++)
        status = gy_resident_streams(x->h, i) ? gy_submit_order(x, begin_of(x, i), x->h->lane[i].queue) : GANTRY_OK;
    for (uint32_t i = 0; i < x->h->devices && status == GANTRY_OK; i++)
        status = has_kernel(x->h, i) ? gy_submit_order(x, x->h->end_stream, x->h->resident->gpu[i].queue) : GANTRY_OK;
    return status;
}

static bool has_words(const gy_cuda *h, uint32_t device)
{
    return h->device[device].gpu && h->device[device].fetched > 0;
}

/* Fetches the words after all launches of the device, while other devices fetch theirs. */
static gantry_status fetch_words(gy_submit *x, uint32_t device)
{
    gy_cuda *h = x->h;
    gy_cuda_device *d = &h->device[device];
    size_t bytes = d->fetched * sizeof(int32_t);
    gantry_status status = gy_cuda_use(h, device, x->err);
    if (status)
        return status;
    CUresult code = h->d.cuMemcpyDtoHAsync(d->host_status + (size_t)x->turn * d->launches, d->status + x->turn * bytes,
                                           bytes, d->auxiliary.stream);
    return gy_submit_check(x, code, d->auxiliary, "fetching status words");
}

/* The queue ends in the end stream; if that is another GPU's, or there are words to fetch, in the auxiliary stream of
 * its device first. */
static gantry_status end_queue(gy_submit *x, gy_queue queue)
{
    gy_cuda *h = x->h;
    gy_queue origin = origin_of(x, queue.device);
    if (!has_words(h, queue.device) && gy_cuda_same_gpu(h, queue.device, origin.device))
        return gy_submit_order(x, queue, origin);
    h->auxiliary_last[queue.device] = 1;
    return gy_submit_order(x, queue, h->device[queue.device].auxiliary);
}

/* All streams end in the end stream, by one wait between two GPUs for each device. No device waits for another's words.
 */
static gantry_status join(gy_submit *x)
{
    gy_cuda *h = x->h;
    gantry_status status = GANTRY_OK;
    x->op = GY_NONE;
    for (uint32_t i = 0; i < h->lanes && status == GANTRY_OK; i++)
        status = gy_resident_streams(h, i) ? end_queue(x, h->lane[i].queue) : GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++)
        status = has_kernel(h, i) ? end_queue(x, h->resident->gpu[i].queue) : GANTRY_OK;
    for (uint32_t i = 0; i < h->devices && status == GANTRY_OK; i++) {
        status = has_words(h, i) ? fetch_words(x, i) : GANTRY_OK;
        if (status == GANTRY_OK && (has_words(h, i) || h->auxiliary_last[i]))
            status = gy_submit_order(x, h->device[i].auxiliary, origin_of(x, i));
    }
    return status;
}

bool gy_submit_ends_apart(const gy_cuda *h, bool after_caller)
{
    const gy_resident *r = gy_resident_on(h) ? h->resident : NULL;
    bool apart = r && !after_caller && h->turns == 1 && r->lefts == 0 && has_kernel(h, h->end_stream.device);
    for (uint32_t i = 0; i < h->devices; i++)
        apart = apart && !has_words(h, i);
    return apart;
}

gantry_status gy_submit_start(gy_submit *x)
{
    gantry_status status = GANTRY_OK;
    memset(x->h->forked, 0, x->h->devices);
    memset(x->h->auxiliary_last, 0, x->h->devices);
    x->op = GY_NONE;
    x->segment = x->passage = 0;
    x->untied = gy_resident_on(x->h);
    for (uint32_t i = 0; x->capture && i < x->h->lanes; i++)
        x->h->lane[i].ours = false;
    if (x->capture || x->after_caller)
        status = fork(x);
    if (status == GANTRY_OK)
        status = gy_resident_on(x->h)              ? submit_resident(x)
                 : x->h->submitters && !x->capture ? gy_submitters_submit(x)
                                                   : submit_all(x);
    return status || gy_submit_ends_apart(x->h, x->after_caller) ? status : join(x);
}
