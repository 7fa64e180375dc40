/* SPDX-License-Identifier: Apache-2.0 */
/* A difference for people, and as one JSON object. */
#include "export/diff/diff.h"

#include <inttypes.h>

enum { LISTED = 20 }; /* ops of a kind that a text for people lists; the object has all */

/* ---- for people ---- */

static void add_signed_percent(gy_text *to, gy_ticks a, gy_ticks b)
{
    double change = a > 0 ? 100 * ((double)b / (double)a - 1) : 0;
    gy_text_add(to, change > 0 ? "+" : "");
    gy_export_fixed(to, change, 2);
    gy_text_add(to, " %");
}

/* The same in a column. */
static void add_change(gy_text *to, gy_ticks a, gy_ticks b)
{
    gy_text change = { 0 };
    add_signed_percent(&change, a, b);
    gy_text_printf(to, "%10s", change.at ? change.at : "");
    to->failed = to->failed || change.failed;
    gy_text_free(&change);
}

static void add_head(gy_text *to, const char *which, const gy_view *view)
{
    gy_text_printf(to, "%s ", which);
    gy_export_name(to, view->s->graph_name ? view->s->graph_name : "schedule", 60);
    gy_text_add(to, " on ");
    gy_export_name(to, view->s->machine->name, 60);
    gy_text_add(to, ": ");
    gy_view_headline(to, view, "us");
    gy_text_add(to, "\n");
}

static void add_more(gy_text *to, uint64_t listed, uint64_t all)
{
    char number[GY_EXPORT_SHORT];
    if (all > listed)
        gy_text_printf(to, "  ... and %s more; --json lists all\n", gy_export_count(number, all - listed));
}

static void add_moved(gy_text *to, const gy_diff *diff)
{
    char number[GY_EXPORT_SHORT], of[GY_EXPORT_SHORT];
    uint64_t listed = 0;
    gy_text_printf(to, "\n%s of %s pairs of ops are on other devices\n", gy_export_count(number, diff->moved),
                   gy_export_count(of, diff->pairs));
    for (uint32_t i = 0; i < diff->b.s->ops.count && listed < LISTED; i++) {
        if (!gy_diff_is_moved(diff, i))
            continue;
        gy_text_add(to, "  ");
        gy_op_text(to, diff->b.s, i);
        gy_text_printf(to, "  %s -> %s\n", gy_diff_device(diff->a.s, &diff->a.s->ops.at[diff->match[i]]),
                       gy_diff_device(diff->b.s, &diff->b.s->ops.at[i]));
        listed++;
    }
    add_more(to, listed, diff->moved);
}

static bool is_lone(const gy_diff *diff, bool added, uint32_t i)
{
    return added ? diff->match[i] == GY_NONE : !diff->matched[i];
}

static void add_lone(gy_text *to, const gy_diff *diff, bool added)
{
    const gantry_schedule *s = added ? diff->b.s : diff->a.s;
    const gy_diff_count *count = added ? &diff->added : &diff->removed;
    char number[GY_EXPORT_SHORT], copies[GY_EXPORT_SHORT], bytes[GY_EXPORT_SHORT];
    uint64_t listed = 0;
    gy_text_printf(to, "\n%s ops %s, %s of them copies; they move %s\n", gy_export_count(number, count->ops),
                   added ? "added" : "removed", gy_export_count(copies, count->copies),
                   gy_bytes_text(bytes, sizeof bytes, count->bytes));
    for (uint32_t i = 0; i < s->ops.count && listed < LISTED; i++) {
        if (!is_lone(diff, added, i))
            continue;
        uint64_t moved = gy_view_bytes(s, &s->ops.at[i]);
        gy_text_add(to, added ? "  + " : "  - ");
        gy_op_text(to, s, i);
        if (moved > 0)
            gy_text_printf(to, "  %s", gy_bytes_text(bytes, sizeof bytes, moved));
        gy_text_add(to, "\n");
        listed++;
    }
    add_more(to, listed, count->ops);
}

static void add_changed(gy_text *to, const gy_diff *diff)
{
    char number[2][GY_EXPORT_SHORT], all[GY_EXPORT_SHORT], of[GY_EXPORT_SHORT];
    uint64_t listed = 0;
    if (!diff->changed.count)
        return;
    gy_text_printf(to, "\n%s of %s pairs of ops take another time, the largest change first\n",
                   gy_export_count(all, diff->changed.count), gy_export_count(of, diff->pairs));
    for (; listed < diff->changed.count && listed < LISTED; listed++) {
        uint32_t i = diff->changed.at[listed];
        gy_ticks took = gy_diff_took(diff->a.s, diff->match[i]), then = gy_diff_took(diff->b.s, i);
        gy_text_printf(to, "  %10s %10s ", gy_export_time(number[0], took, 4, "us"),
                       gy_export_time(number[1], then, 4, "us"));
        add_change(to, took, then);
        gy_text_add(to, "   ");
        gy_op_text(to, diff->b.s, i);
        gy_text_add(to, "\n");
    }
    add_more(to, listed, diff->changed.count);
}

static gy_ticks busy_of(const gy_view *view, uint32_t device)
{
    return device == GY_NONE ? 0 : view->busy[device];
}

static gy_ticks idle_of(const gy_view *view, uint32_t device)
{
    return device == GY_NONE ? 0 : view->s->makespan - view->busy[device];
}

static void add_device(gy_text *to, const gy_diff *diff, const char *id, uint32_t a, uint32_t b)
{
    char number[4][GY_EXPORT_SHORT];
    gy_ticks busy = busy_of(&diff->a, a), then = busy_of(&diff->b, b);
    gy_text_printf(to, "  %-12s %10s %10s ", id, gy_export_time(number[0], busy, 4, "us"),
                   gy_export_time(number[1], then, 4, "us"));
    add_change(to, busy, then);
    gy_text_printf(to, "   %10s %10s\n", gy_export_time(number[2], idle_of(&diff->a, a), 4, "us"),
                   gy_export_time(number[3], idle_of(&diff->b, b), 4, "us"));
}

/* Devices of the first by their names, then those that only the second has. */
static void each_device(gy_text *to, const gy_diff *diff,
                        void (*add)(gy_text *, const gy_diff *, const char *, uint32_t, uint32_t))
{
    const gantry_machine *a = diff->a.s->machine, *b = diff->b.s->machine;
    for (uint32_t d = 0; d < a->devices; d++)
        add(to, diff, a->device[d].id, d, gy_diff_find_device(b, a->device[d].id));
    for (uint32_t d = 0; d < b->devices; d++)
        if (gy_diff_find_device(a, b->device[d].id) == GY_NONE)
            add(to, diff, b->device[d].id, GY_NONE, d);
}

void gy_diff_text(gy_text *to, const gy_diff *diff)
{
    add_head(to, "first: ", &diff->a);
    add_head(to, "second:", &diff->b);
    gy_text_add(to, "\nmakespan ");
    add_signed_percent(to, diff->a.s->makespan, diff->b.s->makespan);
    gy_text_add(to, "\n");
    if (diff->a.s->graph_hash != diff->b.s->graph_hash)
        gy_text_add(to, "The graphs differ; ops are pairs by the names of nodes and buffers.\n");
    add_moved(to, diff);
    add_lone(to, diff, true);
    add_lone(to, diff, false);
    add_changed(to, diff);
    gy_text_printf(to, "\n  %-12s %10s %10s %10s   %10s %10s\n", "device", "busy", "then", "change", "idle", "then");
    each_device(to, diff, add_device);
}

/* ---- JSON ---- */

static void add_side(gy_text *to, const char *key, const gy_view *view)
{
    gy_text_printf(to, "  \"%s\": {\"graph\": ", key);
    gy_text_json(to, view->s->graph_name ? view->s->graph_name : "");
    gy_text_add(to, ", \"machine\": ");
    gy_text_json(to, view->s->machine->name);
    gy_text_add(to, ", \"policy\": ");
    gy_text_json(to, view->s->policy ? view->s->policy : "");
    gy_text_add(to, ", \"makespan_us\": ");
    gy_text_double(to, gy_ticks_to_us(view->s->makespan));
    gy_text_printf(to, ", \"ops\": %zu, \"bytes_moved\": %" PRIu64 "},\n", view->s->ops.count, view->sum.bytes_moved);
}

static void add_op_json(gy_text *to, const gantry_schedule *s, uint32_t op, bool more)
{
    gy_text name = { 0 };
    gy_op_text(&name, s, op);
    gy_text_printf(to, "%s\n    {\"position\": %u, \"op\": ", more ? "," : "", op);
    gy_text_json(to, name.at ? name.at : "");
    to->failed = to->failed || name.failed;
    gy_text_free(&name);
}

static void add_moved_json(gy_text *to, const gy_diff *diff)
{
    bool more = false;
    gy_text_add(to, "  \"moved\": [");
    for (uint32_t i = 0; i < diff->b.s->ops.count; i++) {
        if (!gy_diff_is_moved(diff, i))
            continue;
        add_op_json(to, diff->b.s, i, more);
        gy_text_add(to, ", \"from\": ");
        gy_text_json(to, gy_diff_device(diff->a.s, &diff->a.s->ops.at[diff->match[i]]));
        gy_text_add(to, ", \"to\": ");
        gy_text_json(to, gy_diff_device(diff->b.s, &diff->b.s->ops.at[i]));
        gy_text_add(to, "}");
        more = true;
    }
    gy_text_add(to, "],\n");
}

static void add_lone_json(gy_text *to, const gy_diff *diff, bool added)
{
    const gantry_schedule *s = added ? diff->b.s : diff->a.s;
    bool more = false;
    gy_text_printf(to, "  \"%s\": [", added ? "added" : "removed");
    for (uint32_t i = 0; i < s->ops.count; i++) {
        if (!is_lone(diff, added, i))
            continue;
        add_op_json(to, s, i, more);
        gy_text_printf(to, ", \"bytes\": %" PRIu64 "}", gy_view_bytes(s, &s->ops.at[i]));
        more = true;
    }
    gy_text_add(to, "],\n");
}

static void add_pair_us(gy_text *to, const char *key, gy_ticks a, gy_ticks b)
{
    gy_text_printf(to, "\"%s\": [", key);
    gy_text_double(to, gy_ticks_to_us(a));
    gy_text_add(to, ", ");
    gy_text_double(to, gy_ticks_to_us(b));
    gy_text_add(to, "]");
}

static void add_device_json(gy_text *to, const gy_diff *diff, const char *id, uint32_t a, uint32_t b)
{
    gy_text_add(to, to->at[to->length - 1] == '{' ? "\n    " : ",\n    ");
    gy_text_json(to, id);
    gy_text_add(to, ": {");
    add_pair_us(to, "busy_us", busy_of(&diff->a, a), busy_of(&diff->b, b));
    gy_text_add(to, ", ");
    add_pair_us(to, "idle_us", idle_of(&diff->a, a), idle_of(&diff->b, b));
    gy_text_add(to, "}");
}

static void add_changed_json(gy_text *to, const gy_diff *diff)
{
    gy_text_add(to, "  \"changed\": [");
    for (size_t k = 0; k < diff->changed.count; k++) {
        uint32_t i = diff->changed.at[k];
        add_op_json(to, diff->b.s, i, k > 0);
        gy_text_add(to, ", ");
        add_pair_us(to, "took_us", gy_diff_took(diff->a.s, diff->match[i]), gy_diff_took(diff->b.s, i));
        gy_text_add(to, "}");
    }
    gy_text_add(to, "],\n");
}

void gy_diff_report(gy_text *to, const gy_diff *diff)
{
    gy_text_add(to, "{\n");
    add_side(to, "first", &diff->a);
    add_side(to, "second", &diff->b);
    gy_text_printf(to, "  \"pairs\": %" PRIu64 ",\n", diff->pairs);
    add_moved_json(to, diff);
    add_lone_json(to, diff, true);
    add_lone_json(to, diff, false);
    add_changed_json(to, diff);
    gy_text_add(to, "  \"devices\": {");
    if (!to->failed)
        each_device(to, diff, add_device_json);
    gy_text_add(to, "}\n}\n");
}
