/* SPDX-License-Identifier: Apache-2.0 */
/* Which op of one schedule is which of another. */
#include "export/diff/diff.h"

#include "base/error.h"
#include "base/sort.h"
#include "base/versioned.h"
#include "export/page/page.h"
#include <string.h>

/* Ops of `a` by what they are called, each name with a queue of them. */
typedef struct book {
    gy_names names;
    GY_VEC(uint32_t) first; /* per name: its first op that has no partner yet, or GY_NONE */
    uint32_t *next;         /* per op of a */
} book;

const char *gy_diff_device(const gantry_schedule *s, const gy_op *op)
{
    uint32_t device = gy_view_device(s, op);
    return device == GY_NONE ? "-" : s->machine->device[device].id;
}

uint32_t gy_diff_find_device(const gantry_machine *machine, const char *id)
{
    for (uint32_t d = 0; d < machine->devices; d++)
        if (strcmp(machine->device[d].id, id) == 0)
            return d;
    return GY_NONE;
}

bool gy_diff_is_moved(const gy_diff *diff, uint32_t i)
{
    const gy_op *op = &diff->b.s->ops.at[i];
    return op->node != GY_NONE && diff->match[i] != GY_NONE &&
           strcmp(gy_diff_device(diff->a.s, &diff->a.s->ops.at[diff->match[i]]), gy_diff_device(diff->b.s, op)) != 0;
}

gy_ticks gy_diff_took(const gantry_schedule *s, uint32_t op)
{
    return s->ops.at[op].end - s->ops.at[op].start;
}

gy_ticks gy_diff_change(const gy_diff *diff, uint32_t i)
{
    return gy_diff_took(diff->b.s, i) - gy_diff_took(diff->a.s, diff->match[i]);
}

/* The deed of an op as text; with `places` its memories or device too. */
static void name_op(gy_text *to, const gantry_schedule *s, uint32_t index, bool places)
{
    const gy_op *op = &s->ops.at[index];
    to->length = 0;
    gy_text_printf(to, "%s ", gy_op_kind_name((gy_op_kind)op->kind));
    if (op->node != GY_NONE || places)
        gy_op_text(to, s, index);
    else if (op->uses)
        gy_use_text(to, s, &s->use.at[op->use + (op->kind == GY_OP_COLLECTIVE ? op->uses - 1U : 0U)]);
    if (op->node != GY_NONE && places)
        gy_text_printf(to, " on %s", gy_diff_device(s, op));
}

static bool note_op(book *k, gy_text *name, const gantry_schedule *s, uint32_t op, bool places)
{
    name_op(name, s, op, places);
    uint32_t index = name->failed ? GY_NO_NAME : gy_names_add(&k->names, name->at, NULL);
    if (index == GY_NO_NAME || (k->first.count <= index && !gy_vec_push(&k->first, GY_NONE)))
        return false;
    k->next[op] = k->first.at[index];
    k->first.at[index] = op;
    return true;
}

/* Takes the first op of that name off its queue; GY_NONE. */
static uint32_t find_op(book *k, gy_text *name, const gantry_schedule *s, uint32_t op, bool places)
{
    name_op(name, s, op, places);
    uint32_t index = name->failed ? GY_NO_NAME : gy_names_find(&k->names, name->at);
    uint32_t found = index == GY_NO_NAME ? GY_NONE : k->first.at[index];
    if (found != GY_NONE)
        k->first.at[index] = k->next[found];
    return found;
}

/* Pairs what has no partner yet. Ops of `a` are noted from the last to the first, so that queues begin with the first.
 */
static bool pair(gy_diff *diff, bool places)
{
    const gantry_schedule *a = diff->a.s, *b = diff->b.s;
    book k = { .next = gy_calloc(a->ops.count, sizeof *k.next) };
    gy_text name = { 0 };
    bool fine = k.next != NULL;
    for (uint32_t i = (uint32_t)a->ops.count; fine && i-- > 0;)
        fine = diff->matched[i] || note_op(&k, &name, a, i, places);
    for (uint32_t i = 0; fine && i < b->ops.count; i++) {
        uint32_t found = diff->match[i] == GY_NONE ? find_op(&k, &name, b, i, places) : GY_NONE;
        if (found != GY_NONE) {
            diff->match[i] = found;
            diff->matched[found] = 1;
        }
    }
    fine = fine && !name.failed;
    gy_text_free(&name);
    gy_vec_free(&k.first);
    gy_names_free(&k.names);
    gy_free(k.next);
    return fine;
}

static void count_op(gy_diff_count *count, const gantry_schedule *s, uint32_t op)
{
    count->ops++;
    count->copies += gy_op_is_copy(&s->ops.at[op]);
    count->bytes += gy_view_bytes(s, &s->ops.at[op]);
}

static void count(gy_diff *diff)
{
    const gantry_schedule *a = diff->a.s, *b = diff->b.s;
    for (uint32_t i = 0; i < a->ops.count; i++)
        if (!diff->matched[i])
            count_op(&diff->removed, a, i);
    for (uint32_t i = 0; i < b->ops.count; i++) {
        diff->pairs += diff->match[i] != GY_NONE;
        diff->moved += gy_diff_is_moved(diff, i);
        if (diff->match[i] == GY_NONE)
            count_op(&diff->added, b, i);
    }
}

static bool list_changed(gy_diff *diff)
{
    size_t ops = diff->b.s->ops.count;
    int64_t *key = gy_calloc(ops, sizeof *key);
    bool done = key != NULL;
    for (uint32_t i = 0; done && i < ops; i++) {
        gy_ticks change = diff->match[i] == GY_NONE ? 0 : gy_diff_change(diff, i);
        key[i] = change > 0 ? -change : change;
        done = !change || gy_vec_push(&diff->changed, i);
    }
    done = done && gy_sort_by_key(diff->changed.at, key, diff->changed.count);
    gy_free(key);
    return done;
}

gantry_status gy_diff_make(gy_diff *diff, const gantry_schedule *a, const gantry_schedule *b, gantry_error *err)
{
    *diff = (gy_diff){ 0 };
    gantry_status status = gy_view_make(&diff->a, a, err);
    if (status)
        return status;
    status = gy_view_make(&diff->b, b, err);
    if (status) {
        gy_view_free(&diff->a);
        return status;
    }
    diff->match = gy_calloc(b->ops.count, sizeof *diff->match);
    diff->matched = gy_calloc(a->ops.count, sizeof *diff->matched);
    for (size_t i = 0; diff->match && i < b->ops.count; i++)
        diff->match[i] = GY_NONE;
    if (diff->match && diff->matched && pair(diff, true) && pair(diff, false) && list_changed(diff)) {
        count(diff);
        return GANTRY_OK;
    }
    gy_diff_free(diff);
    return gy_fail_nomem(err);
}

void gy_diff_free(gy_diff *diff)
{
    gy_view_free(&diff->a);
    gy_view_free(&diff->b);
    gy_free(diff->match);
    gy_free(diff->matched);
    gy_vec_free(&diff->changed);
}

/* ---- the public function ---- */

static void write_page(gy_text *to, const gy_diff *diff)
{
    const gy_page_part part[] = { { "first", &diff->a, NULL, NULL }, { "second", &diff->b, NULL, diff->match } };
    gy_export_page(to, part, 2);
}

static gantry_status check_whole(const gantry_schedule *s, const char *which, gantry_error *err)
{
    if (s->phases.count > 0)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "the %s schedule has %zu phases; give one of them (--phase, gantry_schedule_phase)", which,
                       s->phases.count);
    return GANTRY_OK;
}

static gantry_status check_format(gantry_format format, gantry_error *err)
{
    if (format == GANTRY_TEXT || format == GANTRY_REPORT || format == GANTRY_HTML)
        return GANTRY_OK;
    return gy_fail(
        err, GANTRY_E_INVALID, NULL,
        "a difference can be written as GANTRY_TEXT (%d), GANTRY_REPORT (%d) or GANTRY_HTML (%d), not as format %d",
        (int)GANTRY_TEXT, (int)GANTRY_REPORT, (int)GANTRY_HTML, (int)format);
}

static gantry_status write_diff(const gantry_schedule *first, const gantry_schedule *second, gantry_format format,
                                char **text, size_t *length, gantry_error *err)
{
    gy_diff diff;
    gy_text made = { 0 };
    GY_TRY(gy_diff_make(&diff, first, second, err));
    if (format == GANTRY_HTML)
        write_page(&made, &diff);
    else if (format == GANTRY_TEXT)
        gy_diff_text(&made, &diff);
    else
        gy_diff_report(&made, &diff);
    gy_diff_free(&diff);
    return gy_export_hand_over(&made, text, length, err);
}

gantry_status gantry_schedule_diff(const gantry_schedule *first, const gantry_schedule *second, gantry_format format,
                                   char **text, size_t *length, gantry_error *err)
{
    GY_NEED(first, err);
    GY_NEED(second, err);
    GY_NEED(text, err);
    GY_TRY(check_format(format, err));
    GY_TRY(check_whole(first, "first", err));
    GY_TRY(check_whole(second, "second", err));
    return write_diff(first, second, format, text, length, err);
}

/* ---- runs ---- */

/* A schedule whose ops have the times of a run. All but `ops` is the schedule's own. */
typedef struct timed {
    gantry_schedule s;
    gy_op *op;
    gy_page_time *time;
    gy_text policy;
} timed;

/* Times count from the start of the first op, as in a prediction. No bound: it is of predictions. */
static void take_times(timed *t)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < t->s.ops.count; i++)
        first = t->time[i].start < first ? t->time[i].start : first;
    for (size_t i = 0; i < t->s.ops.count; i++) {
        t->op[i].start = (t->time[i].start - first) * 1000;
        t->op[i].end = (t->time[i].end - first) * 1000;
        last = t->op[i].end > last ? t->op[i].end : last;
    }
    t->s.ops.at = t->op;
    t->s.makespan = last;
    t->s.bound = 0;
}

static gantry_status time_schedule(timed *t, const gantry_timeline *given, gantry_error *err)
{
    const gantry_schedule *s;
    gantry_timeline line = GANTRY_TIMELINE_INIT;
    GY_TRY(gy_struct_read(&line, sizeof line, given, "gantry_timeline", err));
    GY_TRY(gy_need(line.schedule, "schedule", "gantry_timeline_diff", err));
    GY_TRY(gy_page_phase(&s, line.schedule, line.phase, err));
    t->s = *s;
    if (!line.trace)
        return GANTRY_OK;
    t->op = gy_calloc(s->ops.count, sizeof *t->op);
    t->time = gy_calloc(s->ops.count, sizeof *t->time);
    if (!t->op || !t->time)
        return gy_fail_nomem(err);
    memcpy(t->op, s->ops.at, s->ops.count * sizeof *t->op);
    GY_TRY(gy_page_times(t->time, s, line.phase, line.trace, line.length, err));
    take_times(t);
    gy_text_printf(&t->policy, "%s, measured", s->policy ? s->policy : "");
    t->s.policy = t->policy.at;
    return t->policy.failed ? gy_fail_nomem(err) : GANTRY_OK;
}

static void free_timed(timed *t)
{
    gy_free(t->op);
    gy_free(t->time);
    gy_text_free(&t->policy);
}

gantry_status gantry_timeline_diff(const gantry_timeline *first, const gantry_timeline *second, gantry_format format,
                                   char **text, size_t *length, gantry_error *err)
{
    timed a = { 0 }, b = { 0 };
    GY_NEED(first, err);
    GY_NEED(second, err);
    GY_NEED(text, err);
    GY_TRY(check_format(format, err));
    gantry_status status = time_schedule(&a, first, err);
    if (!status)
        status = time_schedule(&b, second, err);
    if (!status)
        status = write_diff(&a.s, &b.s, format, text, length, err);
    free_timed(&a);
    free_timed(&b);
    return status;
}
