/* SPDX-License-Identifier: Apache-2.0 */
/* Cells against what rows should hold, and contents in words. */
#include "base/error.h"
#include "schedule/check/check.h"

/* Found by looking at all tasks: for messages only. */
static const gy_task *task_of_access(const gy_check *k, uint64_t access)
{
    for (uint32_t i = 0; i < k->flow->tasks; i++) {
        const gy_task *t = &k->flow->task[i];
        if (access >= t->access && access < (uint64_t)t->access + k->graph->nodes.at[t->node].accesses)
            return t;
    }
    return NULL;
}

static void add_base(gy_text *to, const gy_check *k, const gy_content *x)
{
    switch (x->base_kind) {
    case GY_BASE_WRITE: {
        const gy_task *t = task_of_access(k, x->base);
        gy_text_printf(to, "what \"%s\" wrote", t ? k->graph->nodes.at[t->node].id : "?");
        if (t && t->iteration > 0)
            gy_text_printf(to, " in iteration %u", t->iteration);
        break;
    }
    case GY_BASE_ENTRY:
        gy_text_printf(to, "what \"%s\" is at the start", k->graph->buffers.at[x->base].name);
        break;
    case GY_BASE_IDENTITY:
        gy_text_printf(to, "the identity of %s", gy_word(&gy_reduction_words, x->base % 8));
        break;
    case GY_BASE_AFTER:
        gy_text_printf(to, "the result of another reduction");
        break;
    default:
        gy_text_printf(to, "nothing known");
    }
}

static void add_content(gy_text *to, const gy_check *k, gy_content_id id)
{
    const gy_content *x = &k->contents.at.at[id];
    add_base(to, k, x);
    if (x->op) {
        gy_text_printf(to, " and %llu contribution(s) to %s", (unsigned long long)x->count,
                       gy_word(&gy_reduction_words, x->op));
    }
}

/* The row of a value that is at a byte, counted from row 0. */
static int64_t row_at(const gantry_schedule *s, uint32_t value, int64_t byte)
{
    const gy_schedule_value *v = &s->values.at[value];
    if (!v->offset)
        return v->row_bytes ? byte / v->row_bytes : 0;
    int64_t low = 0, high = v->rows;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(v->offset[middle] <= byte ? &low : &high) = middle;
    }
    return low;
}

typedef struct seen {
    int64_t first, last; /* bytes */
    gy_content_id content;
    bool shifted; /* it is the content of other rows */
} seen;

static gantry_status fail(gy_check *k, const gy_use *u, const seen *there, gy_content_id expected, const char *rule,
                          const char *list, size_t index)
{
    const gy_instance *in = gy_use_instance(k, u);
    int64_t base = gy_bytes_base(k, in);
    gy_text text = { 0 };
    gy_label rows = gy_label_rows(k->s, in->value, row_at(k->s, in->value, there->first - base),
                                  row_at(k->s, in->value, there->last - 1 - base) + 1);
    if (k->now.op != GY_NONE)
        gy_text_printf(&text, "%s %s ", gy_label_op(k->s, k->now.op).at, u->mode == GANTRY_WRITE ? "writes" : "reads");
    else
        gy_text_printf(&text, "at the end ");
    gy_text_printf(&text, "%s in memory %s (instance %u)%s ", rows.at, k->s->machine->memory[in->memory].id,
                   u->instance, k->now.op != GY_NONE ? ", where there is" : " holds");
    add_content(&text, k, there->content);
    gy_text_add(&text, there->shifted ? ", of other rows; it should be " : "; it should be ");
    add_content(&text, k, expected);
    gantry_status status =
        gy_breach(k->err, rule, list, index, "%s", text.at && !text.failed ? text.at : "rows are wrong");
    gy_text_free(&text);
    return status;
}

/* Inputs never change, so they have no map: the whole space is one run. */
static bool input_differs(const gy_check *k, const gy_instance *in, gy_content_id expected)
{
    const gy_content *x = &k->contents.at.at[expected];
    return x->base_kind != GY_BASE_ENTRY || x->op != 0 || x->base != k->s->values.at[in->value].buffer;
}

static gantry_status check_run(gy_check *k, const gy_use *u, const gy_expected *run, const char *rule, const char *list,
                               size_t index)
{
    const gy_instance *in = gy_use_instance(k, u);
    const gy_imap *map = gy_bytes_space(&k->bytes, k->s, in);
    gy_use part = { .instance = u->instance, .mode = u->mode, .first = run->first, .last = run->last };
    seen there = { 0 };
    gy_use_span(k, &part, &there.first, &there.last);
    if (run->content == GY_UNKNOWN || there.first == there.last)
        return GANTRY_OK;
    if (!map) {
        there.content = gy_content_entry(&k->contents, k->s->values.at[in->value].buffer);
        return input_differs(k, in, run->content) ? fail(k, u, &there, run->content, rule, list, index) : GANTRY_OK;
    }
    int64_t base = gy_bytes_base(k, in), first = there.first, last = there.last;
    for (uint32_t i = gy_imap_find(map, first); i != GY_IMAP_NONE && map->at[i].first < last;
         i = gy_imap_next(map, i)) {
        const gy_cell *cell = &k->bytes.cell.at[map->at[i].payload];
        there.shifted =
            cell->geometry != GY_GEOMETRY_ANY && (cell->geometry != k->geometry[in->value] || cell->base != base);
        if (cell->content != run->content || there.shifted) {
            there.first = map->at[i].first > first ? map->at[i].first : first;
            there.last = map->at[i].last < last ? map->at[i].last : last;
            there.content = cell->content;
            return fail(k, u, &there, run->content, rule, list, index);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_check_rows(gy_check *k, const gy_use *u, const gy_expected *run, size_t runs, const char *rule,
                            const char *list, size_t index)
{
    for (size_t i = 0; i < runs; i++)
        GY_TRY(check_run(k, u, &run[i], rule, list, index));
    return GANTRY_OK;
}
