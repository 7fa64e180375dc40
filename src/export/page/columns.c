/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule as columns; page.h has their list. What follows from them by arithmetic (causes, idle times) is left to
 * the viewer. */
#include "export/page/page.h"

#include <stdlib.h>

#include "schedule/words.h"

/* Rows of a value that instances have or ops use. */
typedef struct region {
    uint32_t value;
    int64_t first, last;
} region;

/* Each once, by value, first and last row. */
typedef struct regions {
    GY_VEC(region) at;
} regions;

/* Differences between neighbours are small, so they take fewer bytes than the numbers. */
static void put_step(gy_columns *b, int64_t *before, int64_t now)
{
    gy_columns_signed(b, now - *before);
    *before = now;
}

/* A column that is mostly 0: a 0 is followed by how many more of them there are. `zeros` are those not yet written. */
static void put_zeros(gy_columns *b, uint64_t *zeros)
{
    if (*zeros > 0) {
        gy_columns_number(b, 0);
        gy_columns_number(b, *zeros - 1);
    }
    *zeros = 0;
}

static void put_sparse(gy_columns *b, uint64_t *zeros, uint64_t number)
{
    if (number == 0) {
        ++*zeros;
        return;
    }
    put_zeros(b, zeros);
    gy_columns_number(b, number);
}

static void put_words(gy_columns *b, const gy_words *words)
{
    gy_columns_number(b, words->first + words->count);
    for (size_t i = 0; i < words->first + words->count; i++)
        gy_columns_text(b, i < words->first ? "" : gy_word(words, i));
}

/* ---- the machine and its lanes ---- */

static uint64_t slab_of(const gantry_schedule *s, uint32_t memory)
{
    return s->slab.count > memory ? s->slab.at[memory] : 0;
}

static void put_machine(gy_columns *b, const gantry_schedule *s)
{
    gy_columns_number(b, s->machine->memories);
    for (uint32_t i = 0; i < s->machine->memories; i++) {
        gy_columns_text(b, s->machine->memory[i].id);
        gy_columns_number(b, s->machine->memory[i].capacity);
        gy_columns_number(b, slab_of(s, i) + (i == 0 ? s->staging : 0));
    }
    gy_columns_number(b, s->machine->devices);
    for (uint32_t i = 0; i < s->machine->devices; i++) {
        gy_columns_text(b, s->machine->device[i].id);
        gy_columns_number(b, s->machine->device[i].memory);
    }
}

static void put_lanes(gy_columns *b, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    gy_columns_number(b, s->lanes.count);
    for (uint32_t i = 0; i < s->lanes.count; i++) {
        gy_text text = { 0 };
        gy_view_lane_text(&text, view, i);
        gy_columns_number(b, s->lanes.at[i].device);
        gy_columns_number(b, s->lanes.at[i].kind);
        b->failed = b->failed || text.failed;
        gy_columns_text(b, text.at);
        gy_text_free(&text);
    }
}

static void put_groups(gy_columns *b, const gy_view *view)
{
    const gy_groups *g = &view->groups;
    uint32_t count = GY_GROUP_FIRST_NAME + GY_GROUP_NAMES;
    gy_columns_number(b, count);
    for (uint32_t i = 0; i < count; i++) {
        bool taken = i < GY_GROUP_FIRST_NAME || g->top[i - GY_GROUP_FIRST_NAME] != GY_NO_NAME;
        gy_columns_text(b, taken ? gy_group_label(g, i) : ""); /* no name has this colour */
        gy_columns_text(b, gy_group_colour(i).fill);
        gy_columns_text(b, gy_group_colour(i).line);
    }
}

/* ---- values and where they lie ---- */

static void put_values(gy_columns *b, const gantry_schedule *s)
{
    gy_text before = { 0 };
    gy_columns_number(b, s->values.count);
    for (size_t i = 0; i < s->values.count; i++)
        gy_columns_name(b, &before, s->values.at[i].name);
    gy_text_free(&before);
    for (size_t i = 0; i < s->values.count; i++)
        gy_columns_number(b, s->values.at[i].generation);
    for (size_t i = 0; i < s->values.count; i++)
        gy_columns_number(b, (uint64_t)s->values.at[i].rows);
}

static region region_of(const gantry_schedule *s, const gy_use *use)
{
    return (region){ s->instances.at[use->instance].value, use->first, use->last };
}

static bool is_whole(const gantry_schedule *s, const gy_use *use)
{
    const gy_instance *in = &s->instances.at[use->instance];
    return use->first == in->first && use->last == in->last;
}

static int compare_regions(const void *x, const void *y)
{
    const region *a = x, *b = y;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->last < b->last ? -1 : a->last > b->last;
}

static bool collect_regions(regions *r, const gantry_schedule *s)
{
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        if (!gy_vec_push(&r->at, ((region){ in->value, in->first, in->last })))
            return false;
    }
    for (size_t i = 0; i < s->use.count; i++)
        if (!is_whole(s, &s->use.at[i]) && !gy_vec_push(&r->at, region_of(s, &s->use.at[i])))
            return false;
    return true;
}

static bool find_regions(regions *r, const gantry_schedule *s)
{
    size_t kept = 0;
    if (!collect_regions(r, s))
        return false;
    if (r->at.count > 1)
        qsort(r->at.at, r->at.count, sizeof *r->at.at, compare_regions);
    for (size_t i = 0; i < r->at.count; i++)
        if (kept == 0 || compare_regions(&r->at.at[kept - 1], &r->at.at[i]) != 0)
            r->at.at[kept++] = r->at.at[i];
    r->at.count = kept;
    return true;
}

/* All of them are there. */
static int64_t region_at(const regions *r, region key)
{
    const region *found = bsearch(&key, r->at.at, r->at.count, sizeof key, compare_regions);
    return found - r->at.at;
}

static void put_region_names(gy_columns *b, const gantry_schedule *s, const regions *r)
{
    gy_text before = { 0 };
    gy_columns_number(b, r->at.count);
    for (size_t i = 0; i < r->at.count; i++) {
        const region *one = &r->at.at[i];
        gy_text name = { 0 };
        gy_value_rows_text(&name, s, one->value, one->first, one->last);
        b->failed = b->failed || name.failed;
        gy_columns_name(b, &before, name.at);
        gy_text_free(&name);
    }
    gy_text_free(&before);
}

static void put_regions(gy_columns *b, const gantry_schedule *s, const regions *r)
{
    int64_t before = 0;
    uint64_t zeros = 0;
    put_region_names(b, s, r);
    for (size_t i = 0; i < r->at.count; i++) {
        put_sparse(b, &zeros, gy_columns_zigzag((int64_t)r->at.at[i].value - before));
        before = r->at.at[i].value;
    }
    put_zeros(b, &zeros);
    before = 0;
    for (size_t i = 0; i < r->at.count; i++)
        put_step(b, &before, r->at.at[i].first);
    before = 0;
    for (size_t i = 0; i < r->at.count; i++) {
        int64_t rows = r->at.at[i].last - r->at.at[i].first;
        put_sparse(b, &zeros, gy_columns_zigzag(rows - before));
        before = rows;
    }
    put_zeros(b, &zeros);
}

/* Bytes: mostly those of the one before. */
static void put_bytes(gy_columns *b, const gantry_schedule *s)
{
    uint64_t zeros = 0;
    int64_t before = 0;
    for (size_t i = 0; i < s->instances.count; i++) {
        put_sparse(b, &zeros, gy_columns_zigzag((int64_t)s->instances.at[i].bytes - before));
        before = (int64_t)s->instances.at[i].bytes;
    }
    put_zeros(b, &zeros);
}

static void put_instances(gy_columns *b, const gantry_schedule *s, const regions *r)
{
    size_t count = s->instances.count;
    const gy_instance *at = s->instances.at;
    int64_t before = 0;
    gy_columns_number(b, count);
    for (size_t i = 0; i < count; i++)
        put_step(b, &before, region_at(r, (region){ at[i].value, at[i].first, at[i].last }));
    for (size_t i = 0; i < count; i++)
        gy_columns_number(b, at[i].memory);
    for (size_t i = 0; i < count; i++)
        gy_columns_number(b, at[i].space + 4U * at[i].role);
    put_bytes(b, s);
    before = 0;
    for (size_t i = 0; i < count; i++)
        put_step(b, &before, (int64_t)(at[i].offset + (at[i].space == GY_SPACE_STAGING ? slab_of(s, 0) : 0)));
}

/* ---- ops ---- */

static void put_kinds(gy_columns *b, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    int64_t before = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        gy_columns_number(b, s->ops.at[i].kind + 8U * s->ops.at[i].repeat + 16U * s->ops.at[i].joined +
                                 32U * view->critical[i]);
    for (size_t i = 0; i < s->ops.count; i++)
        gy_columns_number(b, view->group[i]);
    for (size_t i = 0; i < s->ops.count; i++)
        put_step(b, &before, s->ops.at[i].node == GY_NONE ? 0 : (int64_t)s->ops.at[i].node + 1);
    uint64_t zeros = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        put_sparse(b, &zeros, s->ops.at[i].iteration);
    put_zeros(b, &zeros);
}

/* Collectives and fills of accumulators without a node are named by what they do. */
static uint32_t word_of(const gantry_schedule *s, const gy_op *op)
{
    if (op->node != GY_NONE)
        return 0;
    if (op->kind == GY_OP_COLLECTIVE)
        return 1 + op->collective;
    if (op->kind != GY_OP_FILL)
        return 0;
    uint32_t reduce = op->reduce ? op->reduce : s->instances.at[s->use.at[op->use].instance].op;
    return 1 + (uint32_t)(gy_collective_words.first + gy_collective_words.count) + reduce;
}

static void put_named(gy_columns *b, const gantry_schedule *s)
{
    uint64_t zeros = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        put_sparse(b, &zeros, word_of(s, &s->ops.at[i]));
    put_zeros(b, &zeros);
}

static void put_word_list(gy_columns *b)
{
    size_t collectives = gy_collective_words.first + gy_collective_words.count;
    size_t reductions = gy_reduction_words.first + gy_reduction_words.count;
    gy_columns_number(b, collectives + reductions);
    for (size_t i = 0; i < collectives; i++)
        gy_columns_text(b, gy_word(&gy_collective_words, i));
    for (size_t i = 0; i < reductions; i++)
        gy_columns_text(b, gy_word(&gy_reduction_words, i));
}

static void put_op_lanes(gy_columns *b, const gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        bool one = s->ops.at[i].lanes == 1;
        gy_columns_number(b, one ? 2 * s->op_lane.at[s->ops.at[i].lane] : 2 * s->ops.at[i].lanes + 1);
        for (uint32_t k = 0; !one && k < s->ops.at[i].lanes; k++)
            gy_columns_number(b, s->op_lane.at[s->ops.at[i].lane + k]);
    }
}

/* Most ops begin when the one before in their lane ends. */
static void put_starts(gy_columns *b, const gantry_schedule *s)
{
    gy_ticks *end = gy_calloc(s->lanes.count, sizeof *end);
    b->failed = b->failed || !end;
    for (size_t i = 0; end && i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        gy_columns_signed(b, op->start - (op->lanes ? end[s->op_lane.at[op->lane]] : 0));
        for (uint32_t k = 0; k < op->lanes; k++)
            end[s->op_lane.at[op->lane + k]] = op->end;
    }
    gy_free(end);
}

static void put_times(gy_columns *b, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    put_starts(b, s);
    for (size_t i = 0; i < s->ops.count; i++)
        gy_columns_number(b, (uint64_t)(s->ops.at[i].end - s->ops.at[i].start));
    uint64_t zeros = 0;
    for (size_t i = 0; i < s->ops.count; i++)
        put_sparse(b, &zeros, gy_columns_zigzag(s->ops.at[i].duration - (s->ops.at[i].end - s->ops.at[i].start)));
    put_zeros(b, &zeros);
    for (size_t i = 0; i < s->ops.count; i++)
        gy_columns_number(b, gy_view_bytes(s, &s->ops.at[i]));
}

static void put_use(gy_columns *b, const gantry_schedule *s, const regions *r, const gy_use *use, int64_t *before)
{
    bool whole = is_whole(s, use);
    uint64_t coded = gy_columns_zigzag((int64_t)use->instance - *before);
    *before = use->instance;
    gy_columns_number(b, coded << 4 | (use->mode & 7U) << 1 | (whole ? 1U : 0U));
    if (!whole)
        gy_columns_number(b, (uint64_t)region_at(r, region_of(s, use)));
}

static void put_uses(gy_columns *b, const gantry_schedule *s, const regions *r)
{
    int64_t before = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        gy_columns_number(b, s->ops.at[i].uses);
        for (uint32_t k = 0; k < s->ops.at[i].uses; k++)
            put_use(b, s, r, &s->use.at[s->ops.at[i].use + k], &before);
    }
}

static bool is_within_start(const gy_sync *row)
{
    return row->distance == 0 && row->from < row->to;
}

/* Rows of the sync table by `to`, by counting: those of op i are row[first[i]] and so on, up to row[first[i + 1]]. */
static void sort_rows(const gantry_schedule *s, uint32_t *first, uint32_t *row)
{
    for (size_t r = 0; r < s->sync.count; r++)
        first[s->sync.at[r].to + 2] += is_within_start(&s->sync.at[r]);
    for (size_t i = 2; i < s->ops.count + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t r = 0; r < s->sync.count; r++)
        if (is_within_start(&s->sync.at[r]))
            row[first[s->sync.at[r].to + 1]++] = r;
}

/* Ops that each op waits for within a start. */
static void put_waits(gy_columns *b, const gantry_schedule *s)
{
    uint32_t *first = gy_calloc(s->ops.count + 2, sizeof *first), *row = gy_calloc(s->sync.count + 1, sizeof *row);
    b->failed = b->failed || !first || !row;
    if (!b->failed)
        sort_rows(s, first, row);
    for (size_t i = 0; i < s->ops.count && !b->failed; i++) {
        gy_columns_number(b, first[i + 1] - first[i]);
        for (uint32_t k = first[i]; k < first[i + 1]; k++) {
            const gy_sync *sync = &s->sync.at[row[k]];
            gy_columns_number(b, (uint64_t)(sync->to - sync->from) << 2 | sync->reason);
        }
    }
    gy_free(first);
    gy_free(row);
}

void gy_page_schedule(gy_columns *b, const gy_view *view)
{
    const gantry_schedule *s = view->s;
    gy_text before = { 0 };
    regions r = { 0 };
    if (!find_regions(&r, s)) {
        b->failed = true;
        gy_vec_free(&r.at);
        return;
    }
    gy_columns_text(b, s->graph_name);
    gy_columns_text(b, s->machine->name);
    gy_columns_text(b, s->policy);
    gy_columns_number(b, (uint64_t)s->makespan);
    gy_columns_number(b, (uint64_t)s->bound);
    put_machine(b, s);
    put_lanes(b, view);
    put_groups(b, view);
    put_words(b, &gy_op_words);
    put_words(b, &gy_reason_words);
    gy_columns_number(b, s->node_ids.count);
    for (size_t i = 0; i < s->node_ids.count; i++)
        gy_columns_name(b, &before, s->node_ids.at[i]);
    gy_text_free(&before);
    put_values(b, s);
    put_regions(b, s, &r);
    put_instances(b, s, &r);
    gy_columns_number(b, s->ops.count);
    put_kinds(b, view);
    put_named(b, s);
    put_op_lanes(b, s);
    put_times(b, view);
    put_uses(b, s, &r);
    put_waits(b, s);
    put_word_list(b);
    gy_vec_free(&r.at);
}
