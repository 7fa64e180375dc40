/* SPDX-License-Identifier: Apache-2.0 */
/* The view of a schedule that pictures and reports share: groups, lanes, the critical path, texts. */
#include "export/export.h"

#include "base/error.h"
#include "base/map.h"

#include <stdlib.h>

uint32_t gy_view_device(const gantry_schedule *s, const gy_op *op)
{
    return op->lanes > 0 ? gy_op_device(s, op, 0) : GY_NONE;
}

uint64_t gy_view_bytes(const gantry_schedule *s, const gy_op *op)
{
    uint64_t bytes = 0;
    uint32_t reads = gy_op_is_copy(op) ? 1 : op->kind == GY_OP_COLLECTIVE ? op->ins : 0;
    for (uint32_t i = 0; i < reads && i < op->uses; i++)
        bytes += gy_use_bytes(s, &s->use.at[op->use + i]);
    return bytes;
}

bool gy_view_device_used(const gy_view *view, uint32_t device)
{
    for (size_t i = 0; i < view->s->lanes.count; i++)
        if (view->s->lanes.at[i].device == device && view->lane[i].ops > 0)
            return true;
    return false;
}

/* ---- groups ---- */

static bool has_name(const gantry_schedule *s, const gy_op *op)
{
    return op->kind == GY_OP_LAUNCH && op->node < s->node_ids.count;
}

static uint32_t group_of(gy_view *view, const gy_op *op)
{
    static const uint8_t of_kind[] = {
        [GY_OP_LAUNCH] = GY_GROUP_OTHER,
        [GY_OP_HOST] = GY_GROUP_HOST,
        [GY_OP_FILL] = GY_GROUP_FILL,
        [GY_OP_COPY] = GY_GROUP_COPY,
        [GY_OP_EVICT] = GY_GROUP_SPILL,
        [GY_OP_FETCH] = GY_GROUP_SPILL,
        [GY_OP_COLLECTIVE] = GY_GROUP_COLLECTIVE,
    };
    if (has_name(view->s, op))
        return gy_groups_of(&view->groups, view->s->node_ids.at[op->node]);
    view->groups.used[of_kind[op->kind]]++;
    return of_kind[op->kind];
}

static bool make_groups(gy_view *view)
{
    const gantry_schedule *s = view->s;
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (has_name(s, &s->ops.at[i]))
            gy_groups_add(&view->groups, s->node_ids.at[s->ops.at[i].node], (uint64_t)s->ops.at[i].duration);
    gy_groups_rank(&view->groups);
    for (uint32_t i = 0; i < s->ops.count; i++)
        view->group[i] = group_of(view, &s->ops.at[i]);
    return !view->groups.failed;
}

/* ---- lanes ---- */

static void count_lanes(gy_view *view)
{
    const gantry_schedule *s = view->s;
    for (uint32_t i = 0; i < s->ops.count; i++)
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
            gy_view_lane *lane = &view->lane[s->op_lane.at[s->ops.at[i].lane + k]];
            lane->ops++;
            lane->busy += s->ops.at[i].end - s->ops.at[i].start;
        }
    for (size_t i = 0; i < s->lanes.count; i++)
        for (size_t k = 0; k < i; k++)
            view->lane[i].number += view->lane[k].ops > 0 && s->lanes.at[k].device == s->lanes.at[i].device &&
                                    s->lanes.at[k].kind == s->lanes.at[i].kind;
}

typedef struct span {
    gy_ticks start, end;
} span;

/* Time during which at least one op of a compute lane runs. Lanes of one device overlap: `until` is how far it is known
 * to be busy, and ops are taken in the order of their start. */
static int earlier(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start) : (x->end > y->end) - (x->end < y->end);
}

static gy_ticks covered(span *at, size_t count)
{
    gy_ticks total = 0, until = 0;
    if (count > 0)
        qsort(at, count, sizeof *at, earlier);
    for (size_t i = 0; i < count; i++) {
        gy_ticks from = at[i].start > until ? at[i].start : until;
        if (at[i].end > from) {
            total += at[i].end - from;
            until = at[i].end;
        }
    }
    return total;
}

static bool count_busy(gy_view *view)
{
    const gantry_schedule *s = view->s;
    GY_VEC(span) spans = { 0 };
    bool fine = gy_vec_reserve(&spans, s->ops.count);
    for (uint32_t d = 0; fine && d < s->machine->devices; d++) {
        spans.count = 0;
        for (uint32_t i = 0; i < s->ops.count; i++) {
            const gy_op *op = &s->ops.at[i];
            if (op->kind != GY_OP_COLLECTIVE && !gy_op_is_copy(op) && gy_view_device(s, op) == d)
                spans.at[spans.count++] = (span){ op->start, op->end };
        }
        view->busy[d] = covered(spans.at, spans.count);
    }
    gy_vec_free(&spans);
    return fine;
}

/* Phases: each as often as it is started. */
static gantry_status add_phases(gy_view *view, gantry_error *err)
{
    const gantry_schedule *s = view->s;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < s->phases.count && !status; i++) {
        gy_view one;
        status = gy_view_make(&one, s->phases.at[i].schedule, err);
        for (uint32_t d = 0; d < s->machine->devices && !status; d++)
            view->busy[d] = gy_ticks_both(view->busy[d], gy_ticks_repeated(one.busy[d], s->phases.at[i].phase.starts));
        if (!status)
            gy_view_free(&one);
    }
    return status;
}

/* ---- the critical path ---- */

/* Remembers `from` if its end is what `to` waited for; of several the lowest position, waits before lane order. */
static void offer(gy_view *view, uint32_t from, uint32_t to)
{
    const gy_op *op = view->s->ops.at;
    if (from < to && op[from].end == op[to].start && (view->cause[to] == GY_NONE || from < view->cause[to]))
        view->cause[to] = from;
}

static void offer_lane_order(gy_view *view, uint32_t *last)
{
    const gantry_schedule *s = view->s;
    for (size_t i = 0; i < s->lanes.count; i++)
        last[i] = GY_NONE;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        bool open = view->cause[i] == GY_NONE;
        for (uint32_t k = 0; k < s->ops.at[i].lanes; k++) {
            uint32_t *before = &last[s->op_lane.at[s->ops.at[i].lane + k]];
            if (open && *before != GY_NONE)
                offer(view, *before, i);
            *before = i;
        }
    }
}

/* ---- ops that waited for their device, or its copy engines: for the first that ended there just then ---- */

static bool has_engine(const gy_op *op)
{
    return op->lanes > 0 && op->kind != GY_OP_COLLECTIVE;
}

static uint64_t engine_key(const gantry_schedule *s, uint32_t op, gy_ticks time)
{
    bool copies = gy_op_is_copy(&s->ops.at[op]);
    return ((uint64_t)time * s->machine->devices + gy_view_device(s, &s->ops.at[op])) * 2 + copies;
}

static bool note_ends(gy_map *ends, const gantry_schedule *s)
{
    uint64_t before;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (has_engine(op) && op->start < op->end && !gy_map_get(ends, engine_key(s, i, op->end), &before) &&
            !gy_map_put(ends, engine_key(s, i, op->end), i))
            return false;
    }
    return true;
}

static uint32_t engine_cause(const gy_map *ends, const gantry_schedule *s, uint32_t op)
{
    uint64_t from;
    bool waited = has_engine(&s->ops.at[op]) && s->ops.at[op].start > 0;
    return waited && gy_map_get(ends, engine_key(s, op, s->ops.at[op].start), &from) ? (uint32_t)from : GY_NONE;
}

static bool follow(gy_view *view)
{
    const gantry_schedule *s = view->s;
    gy_map ends = { 0 };
    uint32_t at = GY_NONE;
    bool fine = note_ends(&ends, s);
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (at == GY_NONE || s->ops.at[i].end > s->ops.at[at].end)
            at = i;
    while (fine && at != GY_NONE && !view->critical[at]) {
        view->critical[at] = 1;
        if (view->cause[at] == GY_NONE)
            view->cause[at] = engine_cause(&ends, s, at);
        at = view->cause[at];
    }
    gy_map_free(&ends);
    return fine;
}

static bool find_critical(gy_view *view)
{
    const gantry_schedule *s = view->s;
    uint32_t *last = gy_calloc(s->lanes.count, sizeof *last);
    if (!last)
        return false;
    for (uint32_t i = 0; i < s->ops.count; i++)
        view->cause[i] = GY_NONE;
    for (size_t r = 0; r < s->sync.count; r++)
        if (s->sync.at[r].distance == 0)
            offer(view, s->sync.at[r].from, s->sync.at[r].to);
    offer_lane_order(view, last);
    gy_free(last);
    return follow(view);
}

/* ---- texts ---- */

void gy_view_lane_text(gy_text *to, const gy_view *view, uint32_t lane)
{
    static const char *const kinds[] = { "compute", "copy", "collective" };
    const gy_lane *l = &view->s->lanes.at[lane];
    bool alone = true;
    for (size_t i = 0; i < view->s->lanes.count; i++)
        alone = alone && (i == lane || view->lane[i].ops == 0 || view->s->lanes.at[i].device != l->device ||
                          view->s->lanes.at[i].kind != l->kind);
    gy_text_add(to, kinds[l->kind]);
    if (!alone)
        gy_text_printf(to, " %u", view->lane[lane].number);
}

static void add_part(gy_text *to, const char *name, uint64_t count, bool always)
{
    char number[GY_EXPORT_SHORT];
    if (count > 0 || always)
        gy_text_printf(to, " · %s %s%s", gy_export_count(number, count), name, count == 1 ? "" : "s");
}

void gy_view_headline(gy_text *to, const gy_view *view, const char *micro)
{
    char a[GY_EXPORT_SHORT];
    const gantry_schedule *s = view->s;
    gy_text_printf(to, "makespan %s", gy_export_time(a, s->makespan, 4, micro));
    if (s->bound > 0) {
        gy_text_printf(to, " · bound %s · gap ", gy_export_time(a, s->bound, 4, micro));
        gy_export_fixed(to, view->sum.gap * 100, 1);
        gy_text_add(to, " %");
    }
    gy_text_printf(to, " · policy %s", s->policy ? s->policy : "unknown");
    add_part(to, "op", view->sum.ops, true);
    if (view->sum.copies > 0)
        gy_text_printf(to, " · %s copies", gy_export_count(a, view->sum.copies));
    add_part(to, "collective", view->sum.collectives, false);
    if (view->sum.bytes_moved > 0)
        gy_text_printf(to, " · %s moved", gy_bytes_text(a, sizeof a, view->sum.bytes_moved));
}

static void add_where(gy_text *to, const gy_view *view, const gy_op *op)
{
    for (uint32_t k = 0; k < op->lanes; k++) {
        uint32_t lane = view->s->op_lane.at[op->lane + k];
        gy_text_printf(to, "%s%s, ", k ? "; " : "", view->s->machine->device[view->s->lanes.at[lane].device].id);
        gy_view_lane_text(to, view, lane);
    }
}

void gy_view_details(gy_text *to, const gy_view *view, uint32_t index, const char *newline)
{
    char a[GY_EXPORT_SHORT], b[GY_EXPORT_SHORT];
    const gantry_schedule *s = view->s;
    const gy_op *op = &s->ops.at[index];
    gy_op_text(to, s, index);
    gy_text_printf(to, "%s%s, position %u%s", newline, gy_op_kind_name((gy_op_kind)op->kind), index, newline);
    add_where(to, view, op);
    gy_text_printf(to, "%s%s to %s", newline, gy_export_time(a, op->start, 6, "µs"),
                   gy_export_time(b, op->end, 6, "µs"));
    gy_text_printf(to, ", takes %s", gy_export_time(a, op->end - op->start, 4, "µs"));
    if (op->end - op->start > op->duration && op->duration > 0)
        gy_text_printf(to, " (alone %s)", gy_export_time(a, op->duration, 4, "µs"));
    uint64_t bytes = gy_view_bytes(s, op);
    if (bytes > 0)
        gy_text_printf(to, "%s%s, %s", newline, gy_bytes_text(a, sizeof a, bytes),
                       gy_export_rate(b, bytes, op->end - op->start));
    if (op->algorithm)
        gy_text_printf(to, "%sby %s", newline, gy_algorithm_name((gy_algorithm)op->algorithm));
    if (view->critical[index])
        gy_text_printf(to, "%son the critical path", newline);
}

/* ---- nodes with `when` ---- */

static uint64_t count_conditional(const gantry_schedule *s)
{
    uint64_t count = 0;
    for (size_t i = 0; i < s->phases.count; i++)
        count += count_conditional(s->phases.at[i].schedule) * (uint64_t)s->phases.at[i].phase.starts;
    for (size_t i = 0; i < s->ops.count; i++)
        count += s->graph && gy_op_is_conditional(s, &s->ops.at[i]);
    return count;
}

/* ---- all of it ---- */

gantry_status gy_view_make(gy_view *view, const gantry_schedule *s, gantry_error *err)
{
    *view = (gy_view){ .s = s, .sum = GANTRY_SCHEDULE_SUMMARY_INIT };
    gantry_status status = gantry_schedule_summarize(s, &view->sum, err);
    if (status)
        return status;
    view->conditional = count_conditional(s);
    view->lane = gy_calloc(s->lanes.count, sizeof *view->lane);
    view->critical = gy_calloc(s->ops.count, sizeof *view->critical);
    view->cause = gy_calloc(s->ops.count, sizeof *view->cause);
    view->group = gy_calloc(s->ops.count, sizeof *view->group);
    view->busy = gy_calloc(s->machine->devices, sizeof *view->busy);
    if (view->lane && view->critical && view->cause && view->group && view->busy && make_groups(view) &&
        find_critical(view) && count_busy(view)) {
        count_lanes(view);
        status = add_phases(view, err);
        if (status)
            gy_view_free(view);
        return status;
    }
    gy_view_free(view);
    return gy_fail_nomem(err);
}

void gy_view_free(gy_view *view)
{
    gy_free(view->lane);
    gy_free(view->critical);
    gy_free(view->cause);
    gy_free(view->group);
    gy_free(view->busy);
    gy_groups_free(&view->groups);
}
