/* SPDX-License-Identifier: Apache-2.0 */
/* From what a start has taken to a schedule for the starts to come, and from one run to the next. */
#include "run/run.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "run/edge.h"
#include "scheduler/balance/guided.h"
#include "scheduler/options.h"
#include <string.h>

/* ---- a new schedule ---- */

/* Ops of lanes wait for what they depend on before they begin, so times are those of the work itself. */
static gantry_status read_times(gantry_run *run, gy_ticks **took, gantry_error *err)
{
    const gy_op_time *time = run->backend->times(run->state);
    if (!time || !run->backend->executes) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the run has measured no times; set record_trace in its options, with a back end that executes");
    }
    if (run->finished == 0 || run->failure.last == run->finished) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "there are no times of a whole start yet; call gantry_run_wait on one that succeeds");
    }
    size_t ops = run->schedule->ops.count;
    *took = gy_calloc(ops + 1, sizeof **took);
    if (!*took)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < ops; i++) {
        const gy_op *op = &run->schedule->ops.at[i];
        bool perhaps = gy_op_is_conditional(run->schedule, op); /* it may have done nothing */
        (*took)[i] = perhaps ? op->duration : gy_ticks_from_us((double)(time[i].end - time[i].start) / 1e3);
    }
    return GANTRY_OK;
}

static void tell(gantry_rebalance *report, const gy_guided *g, bool pays)
{
    gantry_rebalance full = { .now_us = gy_ticks_to_us(g->now),
                              .then_us = gy_ticks_to_us(g->then),
                              .hand_over_us = gy_ticks_to_us(g->hand_over),
                              .moved_bytes = g->moved,
                              .handed_bytes = g->handed,
                              .pays = pays };
    gy_struct_write(report, &full, sizeof full);
}

static gantry_status rebalance(gantry_schedule **next, gantry_run *run, int64_t starts_left,
                               const gantry_schedule_options *options, gantry_rebalance *report, gantry_error *err)
{
    gy_ticks *took = NULL;
    gy_guided result = { 0 };
    gy_options o;
    gantry_schedule *made = NULL;
    if (starts_left < 0) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "gantry_run_rebalance was told that %lld starts are left; give 0 or more",
                       (long long)starts_left);
    }
    gantry_status status = report ? gy_struct_check(report, sizeof *report, "gantry_rebalance", err) : GANTRY_OK;
    status = status ? status : gy_run_need_idle(run, "gantry_run_rebalance", err);
    if (!status)
        status = gy_options_read(&o, options, err);
    if (!status)
        status = read_times(run, &took, err);
    if (!status)
        status = gy_guided_schedule(&made, run->schedule, took, &o, &result, err);
    gy_free(took);
    if (status)
        return status;
    double gain = gy_ticks_to_us(result.now) - gy_ticks_to_us(result.then);
    bool pays = made && gain * (double)starts_left > gy_ticks_to_us(result.hand_over);
    if (!pays)
        gantry_schedule_free(made);
    tell(report, &result, pays);
    *next = pays ? made : NULL;
    return GANTRY_OK;
}

gantry_status gantry_run_rebalance(gantry_schedule **next, gantry_run *run, int64_t starts_left,
                                   const gantry_schedule_options *options, gantry_rebalance *report, gantry_error *err)
{
    GY_NEED(next, err);
    GY_USE_RUN(run, rebalance(next, run, starts_left, options, report, err), err);
}

/* ---- a new run ---- */

static gantry_status fail_pair(gantry_error *err)
{
    return gy_fail(err, GANTRY_E_INVALID, NULL, "gantry_run_take_over needs two runs of the same graph");
}

static gantry_status check_pair(gantry_run *run, gantry_run *from, gantry_error *err)
{
    if (run->graph->hash != from->graph->hash)
        return fail_pair(err);
    if (run->started > 0) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the run has been started, and has states of its own; take over before its first start");
    }
    if (run->schedule->phases.count || from->schedule->phases.count)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "a run in phases neither takes over nor is taken over");
    return gy_run_need_idle(from, "gantry_run_take_over", err);
}

/* Rows that no op of the schedule touches are what they were at the beginning. */
static gantry_status read_first(gantry_run *from, uint32_t id, char *packed, gantry_error *err)
{
    const gy_buffer *b = &from->graph->buffers.at[id];
    gy_binding *binding = &from->binding[id];
    const void *first;
    bool whole = false;
    if (binding->placed && !gy_run_persists_whole(from->schedule, id, b->rows, &whole))
        return gy_fail_nomem(err);
    if (whole)
        return GANTRY_OK;
    GY_TRY(gy_run_contents(from, id, &first, err));
    if (b->bytes)
        memcpy(packed, first, b->bytes);
    if (binding->placed) {
        gy_free(binding->packed);
        binding->packed = NULL;
    }
    return GANTRY_OK;
}

gantry_status gy_run_read_state(gantry_run *from, uint32_t id, char *packed, gantry_error *err)
{
    const gy_buffer *b = &from->graph->buffers.at[id];
    const gantry_schedule *s = from->schedule;
    if (s->phases.count && from->binding[id].placed)
        return from->backend->get(from->state, id, packed, err);
    gantry_status status = read_first(from, id, packed, err);
    for (uint32_t i = 0; !status && from->binding[id].placed && i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        if (in->value == id && in->role == GY_ROLE_PERSIST)
            status = from->backend->get(from->state, i, packed + gy_buffer_offset(b, in->first), err);
    }
    return status;
}

static gantry_status take_state(gantry_run *run, gantry_run *from, uint32_t id, gantry_error *err)
{
    const gy_buffer *b = &from->graph->buffers.at[id];
    char *packed = gy_alloc(b->bytes + 1), *array = packed;
    if (!packed)
        return gy_fail_nomem(err);
    gantry_status status = gy_run_read_state(from, id, packed, err);
    if (!status && b->tile_offset) {
        array = gy_alloc(b->bytes + 1);
        status = array ? GANTRY_OK : gy_fail_nomem(err);
        if (array)
            gy_tiles_unpack(array, packed, b);
        gy_free(packed);
    }
    if (!status)
        status = gy_run_set_array(run, id, array, array, err);
    if (status)
        gy_free(array);
    else
        run->binding[id].of_first = true;
    return status;
}

static gantry_status take_buffer(gantry_run *run, gantry_run *from, uint32_t id, gantry_error *err)
{
    gy_binding *theirs = &from->binding[id];
    bool changed = from->graph->buffers.at[id].cls == GANTRY_STATE && theirs->placed && from->finished > 0;
    gantry_status status = GANTRY_OK;
    if (changed && !from->backend->get) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "back end \"%s\" cannot read the state \"%s\" back",
                       from->backend->name, from->graph->buffers.at[id].name);
    }
    if (changed) {
        status = take_state(run, from, id, err);
    } else if (theirs->array) {
        status = gy_run_set_array(run, id, theirs->array, theirs->own, err);
        run->binding[id].of_first = theirs->of_first;
        theirs->own = status ? theirs->own : NULL;
    }
    run->binding[id].result = theirs->result;
    return status;
}

static gantry_status take_over(gantry_run *run, gantry_run *from, gantry_error *err)
{
    gantry_status status = check_pair(run, from, err);
    if (status)
        return status;
    for (uint32_t id = 0; !status && id < from->graph->buffers.count; id++)
        status = take_buffer(run, from, id, err);
    if (!status)
        status = gy_run_feeds_hand_over(run, from, err);
    memcpy(run->scalar, from->scalar, from->graph->scalar.count * sizeof *run->scalar);
    run->changed = true;
    return status;
}

static gantry_status take_over_from(gantry_run *run, gantry_run *from, gantry_error *err)
{
    GY_USE_RUN(from, take_over(run, from, err), err);
}

gantry_status gantry_run_take_over(gantry_run *run, gantry_run *from, gantry_error *err)
{
    GY_NEED(from, err);
    if (run == from)
        return fail_pair(err);
    GY_USE_RUN(run, take_over_from(run, from, err), err);
}
