/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Trace Event Format that chrome://tracing and Perfetto read: a process per device, a thread per lane, a slice per
 * op and lane, an arrow per wait between lanes, a counter per memory. Times are microseconds with picoseconds behind
 * the point. "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
 */
#include "export/export.h"

#include <inttypes.h>

/* Process ids: devices from 1, memories of no device behind them. Thread ids: lanes from 1. */
typedef struct trace {
    gy_text *to;
    const gy_view *view;
    bool more;
} trace;

static void begin_event(trace *t, const char *phase, uint32_t process, uint32_t thread)
{
    gy_text_printf(t->to, "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", t->more ? "," : "", phase, process, thread);
    t->more = true;
}

static void add_name(trace *t, const char *key, const char *name)
{
    gy_text_printf(t->to, ",\"%s\":", key);
    gy_text_json(t->to, name);
}

static void add_time(trace *t, const char *key, gy_ticks time)
{
    gy_text_printf(t->to, ",\"%s\":%" PRId64 ".%06" PRId64, key, time / GY_TICKS_PER_US, time % GY_TICKS_PER_US);
}

static void add_meta(trace *t, const char *what, uint32_t process, uint32_t thread, const char *name)
{
    begin_event(t, "M", process, thread);
    add_name(t, "name", what);
    gy_text_add(t->to, ",\"args\":{\"name\":");
    gy_text_json(t->to, name ? name : "");
    gy_text_add(t->to, "}}");
}

static void add_order(trace *t, const char *what, uint32_t process, uint32_t thread, uint32_t index)
{
    begin_event(t, "M", process, thread);
    gy_text_printf(t->to, ",\"name\":\"%s\",\"args\":{\"sort_index\":%u}}", what, index);
}

static void add_places(trace *t)
{
    const gantry_schedule *s = t->view->s;
    for (uint32_t d = 0; d < s->machine->devices; d++) {
        add_meta(t, "process_name", d + 1, 0, s->machine->device[d].id);
        add_order(t, "process_sort_index", d + 1, 0, d);
    }
    for (uint32_t i = 0; i < s->lanes.count; i++) {
        gy_text name = { 0 };
        gy_view_lane_text(&name, t->view, i);
        t->to->failed = t->to->failed || name.failed;
        add_meta(t, "thread_name", s->lanes.at[i].device + 1, i + 1, name.at);
        add_order(t, "thread_sort_index", s->lanes.at[i].device + 1, i + 1, i);
        gy_text_free(&name);
    }
}

static void add_arguments(trace *t, uint32_t index)
{
    const gantry_schedule *s = t->view->s;
    const gy_op *op = &s->ops.at[index];
    uint64_t bytes = gy_view_bytes(s, op);
    gy_text_printf(t->to, ",\"args\":{\"position\":%u,\"alone_us\":", index);
    gy_text_double(t->to, gy_ticks_to_us(op->duration));
    gy_text_printf(t->to, ",\"cost\":\"%s\"", gy_provenance_name((gy_provenance)op->provenance));
    if (bytes > 0)
        gy_text_printf(t->to, ",\"bytes\":%" PRIu64, bytes);
    if (gy_op_is_copy(op)) {
        add_name(t, "from", s->machine->memory[s->instances.at[s->use.at[op->use].instance].memory].id);
        add_name(t, "to", s->machine->memory[s->instances.at[s->use.at[op->use + 1].instance].memory].id);
    }
    if (op->batch)
        gy_text_printf(t->to, ",\"batch\":%u", op->batch);
    if (t->view->critical[index])
        gy_text_add(t->to, ",\"critical\":true");
    gy_text_add(t->to, "}");
}

static void add_op(trace *t, uint32_t index)
{
    const gantry_schedule *s = t->view->s;
    const gy_op *op = &s->ops.at[index];
    gy_text name = { 0 };
    gy_op_text(&name, s, index);
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t lane = s->op_lane.at[op->lane + k];
        begin_event(t, "X", s->lanes.at[lane].device + 1, lane + 1);
        add_name(t, "name", name.at ? name.at : "");
        add_name(t, "cat", gy_op_kind_name((gy_op_kind)op->kind));
        add_time(t, "ts", op->start);
        add_time(t, "dur", op->end - op->start);
        add_arguments(t, index);
        gy_text_add(t->to, "}");
    }
    t->to->failed = t->to->failed || name.failed;
    gy_text_free(&name);
}

/* Both ends lie in their slices: an arrow's end binds to the slice that encloses it. */
static void add_arrow_end(trace *t, const char *phase, uint32_t op, size_t row, const gy_sync *sync)
{
    const gantry_schedule *s = t->view->s;
    uint32_t lane = s->op_lane.at[s->ops.at[op].lane];
    begin_event(t, phase, s->lanes.at[lane].device + 1, lane + 1);
    add_name(t, "name", gy_reason_name((gy_reason)sync->reason));
    add_name(t, "cat", gy_carrier_name((gy_carrier)sync->carrier));
    gy_text_printf(t->to, ",\"id\":%zu", row + 1);
    add_time(t, "ts", s->ops.at[op].start);
    gy_text_add(t->to, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void add_arrows(trace *t)
{
    const gantry_schedule *s = t->view->s;
    for (size_t r = 0; r < s->sync.count; r++) {
        const gy_sync *row = &s->sync.at[r];
        if (row->distance > 0 || row->carrier == GY_CARRIER_LANE || s->ops.at[row->from].lanes == 0 ||
            s->ops.at[row->to].lanes == 0)
            continue;
        add_arrow_end(t, "s", row->from, r, row);
        add_arrow_end(t, "f", row->to, r, row);
    }
}

static uint32_t process_of_memory(const gantry_machine *m, uint32_t memory)
{
    for (uint32_t d = 0; d < m->devices; d++)
        if (m->device[d].memory == memory)
            return d + 1;
    return m->devices + 1;
}

static void add_memory(trace *t, uint32_t memory)
{
    const gantry_schedule *s = t->view->s;
    gy_memory_profile profile = { 0 };
    gy_text name = { 0 };
    gy_text_printf(&name, "memory %s", s->machine->memory[memory].id);
    if (!gy_memory_profile_make(&profile, s, memory, NULL) || name.failed)
        t->to->failed = true;
    for (size_t i = 0; i < profile.count && !name.failed; i++) {
        begin_event(t, "C", process_of_memory(s->machine, memory), 0);
        add_name(t, "name", name.at);
        add_time(t, "ts", profile.at[i].time);
        gy_text_printf(t->to, ",\"args\":{\"bytes\":%" PRIu64 "}}", profile.at[i].bytes);
    }
    gy_text_free(&name);
    gy_vec_free(&profile);
}

void gy_export_chrome(gy_text *to, const gy_view *view)
{
    trace t = { to, view, false };
    gy_text_add(to, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"graph\":");
    gy_text_json(to, view->s->graph_name ? view->s->graph_name : "");
    gy_text_add(to, ",\"machine\":");
    gy_text_json(to, view->s->machine->name);
    gy_text_add(to, ",\"policy\":");
    gy_text_json(to, view->s->policy ? view->s->policy : "");
    gy_text_add(to, "},\"traceEvents\":[");
    add_places(&t);
    for (uint32_t i = 0; i < view->s->ops.count; i++)
        add_op(&t, i);
    add_arrows(&t);
    for (uint32_t i = 0; i < view->s->machine->memories; i++)
        add_memory(&t, i);
    gy_text_add(to, "\n]}\n");
}
