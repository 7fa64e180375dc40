/* SPDX-License-Identifier: Apache-2.0 */
/* The last start next to its prediction, for chrome://tracing and Perfetto: process 0 is what was measured, process 1
 * what was predicted, a thread is a lane. Phases have two processes each, for the last time each was started. */
#include "run/phases.h"

#include "base/error.h"
#include "base/memory.h"
#include "schedule/memory_profile.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct span {
    double start_us, end_us;
} span;

/* One side of a trace: what was measured of a schedule, or predicted. */
typedef struct side {
    gy_text *to;
    const gantry_schedule *s;
    int process;
    gy_op_span *at; /* of each op */
    double from_us; /* where its time 0 is */
} side;

static void add_lane_names(gy_text *to, const gantry_schedule *s, int process, const char *title)
{
    gy_text_printf(to, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}", process,
                   title);
    for (size_t i = 0; i < s->lanes.count; i++) {
        static const char *const kinds[] = { "compute", "copy", "collective" };
        const gy_lane *lane = &s->lanes.at[i];
        gy_text name = { 0 };
        gy_text_printf(&name, "%s %s %zu", s->machine->device[lane->device].id,
                       lane->kind < 3 ? kinds[lane->kind] : "lane", i);
        gy_text_printf(
            to, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%zu,\"args\":{\"name\":", process, i);
        gy_text_json(to, name.at ? name.at : "");
        gy_text_add(to, "}}");
        to->failed |= name.failed;
        gy_text_free(&name);
    }
}

/* The kernel of an op and the element type that its speed depends on, so that times can be summed up by them. */
static void add_kernel(gy_text *to, const gantry_schedule *s, const gy_op *op)
{
    const gy_node *n = op->node != GY_NONE && s->graph ? &s->graph->nodes.at[op->node] : NULL;
    if (!n || !gy_op_calls(op) || n->kernel == GY_NONE)
        return;
    gy_text_add(to, ",\"kernel\":");
    gy_text_json(to, s->graph->kernels.at[n->kernel].manifest->name);
    gy_text_printf(to, ",\"dtype\":\"%s\"", gantry_dtype_name(gy_node_dtype(s->graph, n)));
}

/* The device of a lane of an op, and which memories a copy is between. */
static void add_place(gy_text *to, const gantry_schedule *s, const gy_op *op, uint32_t lane)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    gy_text_add(to, ",\"device\":");
    gy_text_json(to, s->machine->device[gy_op_device(s, op, lane)].id);
    if (!gy_op_is_copy(op))
        return;
    gy_text_add(to, ",\"from\":");
    gy_text_json(to, s->machine->memory[s->instances.at[use[0].instance].memory].id);
    gy_text_add(to, ",\"to\":");
    gy_text_json(to, s->machine->memory[s->instances.at[use[1].instance].memory].id);
    gy_text_printf(to, ",\"bytes\":%" PRIu64, gy_use_bytes(s, use));
}

static void add_event(gy_text *to, const gantry_schedule *s, uint32_t id, int process, span at, span other)
{
    const gy_op *op = &s->ops.at[id];
    gy_text name = { 0 };
    gy_op_text(&name, s, id);
    for (uint32_t k = 0; k < op->lanes; k++) {
        gy_text_add(to, ",\n{\"ph\":\"X\",\"name\":");
        gy_text_json(to, name.at ? name.at : "");
        gy_text_printf(to, ",\"cat\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":", gy_op_kind_name((gy_op_kind)op->kind),
                       process, s->op_lane.at[op->lane + k]);
        gy_text_double(to, at.start_us);
        gy_text_add(to, ",\"dur\":");
        gy_text_double(to, at.end_us - at.start_us);
        gy_text_printf(to, ",\"args\":{\"op\":%u,\"%s_us\":", id, process % 2 ? "measured" : "predicted");
        gy_text_double(to, other.end_us - other.start_us);
        add_place(to, s, op, k);
        add_kernel(to, s, op);
        gy_text_add(to, "}}");
    }
    to->failed |= name.failed;
    gy_text_free(&name);
}

/* Both ends lie in their slices: an arrow's end binds to the slice that encloses it. */
static void add_arrow_end(const side *x, const char *phase, size_t row, uint32_t op)
{
    const gy_sync *sync = &x->s->sync.at[row];
    gy_text_printf(x->to,
                   ",\n{\"ph\":\"%s\",\"name\":\"%s\",\"cat\":\"%s\",\"id\":\"%d.%zu\",\"pid\":%d,\"tid\":%u,\"ts\":",
                   phase, gy_reason_name((gy_reason)sync->reason), gy_carrier_name((gy_carrier)sync->carrier),
                   x->process, row, x->process, x->s->op_lane.at[x->s->ops.at[op].lane]);
    gy_text_double(x->to, x->from_us + gy_ticks_to_us(x->at[op].start));
    gy_text_add(x->to, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* An arrow for each wait between lanes. */
static void add_arrows(const side *x)
{
    for (size_t r = 0; r < x->s->sync.count; r++) {
        const gy_sync *row = &x->s->sync.at[r];
        if (row->distance > 0 || row->carrier == GY_CARRIER_LANE || !x->s->ops.at[row->from].lanes ||
            !x->s->ops.at[row->to].lanes)
            continue;
        add_arrow_end(x, "s", r, row->from);
        add_arrow_end(x, "f", r, row->to);
    }
}

/* Bytes in use. */
static void add_counter(const side *x, uint32_t memory)
{
    gy_memory_profile profile = { 0 };
    gy_text name = { 0 };
    gy_text_printf(&name, "memory %s", x->s->machine->memory[memory].id);
    bool fine = gy_memory_profile_make(&profile, x->s, memory, x->at) && !name.failed;
    x->to->failed = x->to->failed || !fine;
    for (size_t i = 0; fine && i < profile.count; i++) {
        gy_text_add(x->to, ",\n{\"ph\":\"C\",\"name\":");
        gy_text_json(x->to, name.at);
        gy_text_printf(x->to, ",\"pid\":%d,\"tid\":0,\"ts\":", x->process);
        gy_text_double(x->to, x->from_us + gy_ticks_to_us(profile.at[i].time));
        gy_text_printf(x->to, ",\"args\":{\"bytes\":%" PRIu64 "}}", profile.at[i].bytes);
    }
    gy_text_free(&name);
    gy_vec_free(&profile);
}

/* `time`: NULL where the side is what was predicted. */
static void add_side(gy_text *to, const gantry_schedule *s, const gy_op_time *time, int process, double from_us)
{
    side x = { to, s, process, gy_calloc(s->ops.count, sizeof *x.at), from_us };
    to->failed = to->failed || !x.at;
    for (size_t i = 0; x.at && i < s->ops.count; i++)
        x.at[i] = time
                      ? (gy_op_span){ time[i].start * (GY_TICKS_PER_US / 1000), time[i].end * (GY_TICKS_PER_US / 1000) }
                      : (gy_op_span){ s->ops.at[i].start, s->ops.at[i].end };
    if (x.at)
        add_arrows(&x);
    for (uint32_t m = 0; x.at && m < s->machine->memories; m++)
        add_counter(&x, m);
    gy_free(x.at);
}

/* One schedule: `process` is what was measured, the next what was predicted; both begin at an offset. */
static void add_schedule(gy_text *to, const gantry_schedule *s, const gy_op_time *time, int process, span offset)
{
    for (uint32_t i = 0; i < s->ops.count; i++) {
        double begin = offset.start_us, planned = offset.end_us;
        span measured = { begin + (double)time[i].start / 1e3, begin + (double)time[i].end / 1e3 };
        span predicted = { planned + gy_ticks_to_us(s->ops.at[i].start), planned + gy_ticks_to_us(s->ops.at[i].end) };
        add_event(to, s, i, process, measured, predicted);
        add_event(to, s, i, process + 1, predicted, measured);
    }
    add_side(to, s, time, process, offset.start_us);
    add_side(to, s, NULL, process + 1, offset.end_us);
}

static void add_phases(gy_text *to, const gantry_run *run)
{
    double planned = 0;
    for (size_t i = 0; i < run->schedule->phases.count; i++) {
        const gy_schedule_phase *phase = &run->schedule->phases.at[i];
        int64_t offset_ns;
        const gy_op_time *time = gy_phases_times(run->state, i, &offset_ns);
        double one = gy_ticks_to_us(phase->schedule->makespan), last = one * (double)(phase->phase.starts - 1);
        char title[64];
        snprintf(title, sizeof title, "phase %zu measured", i);
        if (time) {
            add_lane_names(to, phase->schedule, (int)(2 * i), title);
            snprintf(title, sizeof title, "phase %zu predicted", i);
            add_lane_names(to, phase->schedule, (int)(2 * i + 1), title);
            span offset = { (double)offset_ns / 1e3, planned + last };
            add_schedule(to, phase->schedule, time, (int)(2 * i), offset);
        }
        planned += last + one + gy_ticks_to_us(phase->hand_over);
    }
}

static gantry_status trace(const gantry_run *run, char **text, size_t *length, gantry_error *err)
{
    const gy_op_time *time = run->backend->times(run->state);
    if (!time)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "the run keeps no times; set record_trace in its options");
    if (run->finished == 0 || run->finished != run->started || run->failure.last == run->finished) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "there are no times of a whole start yet; call gantry_run_wait on one that succeeds");
    }
    const gantry_schedule *s = run->schedule;
    gy_text to = { 0 };
    gy_text_add(
        &to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,"
             "\"args\":{\"sort_index\":0}}");
    if (s->phases.count) {
        add_phases(&to, run);
    } else {
        add_lane_names(&to, s, 0, "measured");
        add_lane_names(&to, s, 1, "predicted");
        add_schedule(&to, s, time, 0, (span){ 0, 0 });
    }
    gy_text_add(&to, "\n]}\n");
    char *made = gy_text_take(&to, length);
    if (!made)
        return gy_fail_nomem(err);
    *text = made;
    return GANTRY_OK;
}

gantry_status gantry_run_trace(const gantry_run *run, char **text, size_t *length, gantry_error *err)
{
    GY_NEED(text, err);
    GY_USE_RUN(run, trace(run, text, length, err), err);
}
