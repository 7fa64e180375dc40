/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address map: for every space, runs of bytes (cells) with their content, the op that wrote them last and the ops
 * that have read them since. Rule race is decided here, one access at a time; rule version by comparing cells with
 * expected runs.
 */
#include "base/error.h"
#include "schedule/check/check.h"
#include <stdio.h>

static const gy_stamp nobody = { GY_NONE, 0 };

static size_t space_number(const gy_bytes *b, const gantry_schedule *s, const gy_instance *in)
{
    switch (in->space) {
    case GY_SPACE_SLAB:
        return in->memory;
    case GY_SPACE_STAGING:
        return b->memories;
    default:
        return b->memories + 1 + s->values.at[in->value].buffer;
    }
}

gy_imap *gy_bytes_space(const gy_bytes *b, const gantry_schedule *s, const gy_instance *in)
{
    return in->space == GY_SPACE_INPUT ? NULL : &b->space[space_number(b, s, in)];
}

static int64_t address_of(const gy_check *k, const gy_instance *in)
{
    return (int64_t)gy_instance_address(k->s, in, k->now.start);
}

int64_t gy_bytes_base(const gy_check *k, const gy_instance *in)
{
    return address_of(k, in) - gy_row_offset(k->s, in->value, in->first);
}

static uint32_t new_cell(gy_bytes *b, gy_cell cell)
{
    uint32_t i;
    if (b->unused.count > 0) {
        i = b->unused.at[--b->unused.count];
        b->cell.at[i] = cell;
        return i;
    }
    i = (uint32_t)b->cell.count;
    if (i == UINT32_MAX || !gy_vec_push(&b->cell, cell)) {
        b->failed = true;
        return 0;
    }
    return i;
}

static void drop_readers(gy_bytes *b, gy_cell *cell)
{
    while (cell->readers != GY_NONE) {
        uint32_t i = cell->readers;
        cell->readers = b->reader.at[i].next;
        b->reader.at[i].next = b->unused_reader;
        b->unused_reader = i;
    }
}

static void add_reader(gy_bytes *b, uint32_t cell, gy_stamp who)
{
    gy_read_record reader = { who, b->cell.at[cell].readers };
    uint32_t i = b->unused_reader;
    if (i != GY_NONE) {
        b->unused_reader = b->reader.at[i].next;
        b->reader.at[i] = reader;
    } else {
        i = (uint32_t)b->reader.count;
        if (i == UINT32_MAX || !gy_vec_push(&b->reader, reader)) {
            b->failed = true;
            return;
        }
    }
    b->cell.at[cell].readers = i;
}

/* A run that is cut in two: the upper half gets a cell of its own with the same past. */
static uint64_t copy_cell(void *context, uint64_t payload)
{
    gy_bytes *b = context;
    gy_cell cell = b->cell.at[payload];
    uint32_t from = cell.readers;
    cell.readers = GY_NONE;
    uint32_t to = new_cell(b, cell);
    for (; !b->failed && from != GY_NONE; from = b->reader.at[from].next)
        add_reader(b, to, b->reader.at[from].who);
    return to;
}

static gantry_status open_space(gy_check *k, const gy_instance *in)
{
    gy_bytes *b = &k->bytes;
    gy_imap *map = gy_bytes_space(b, k->s, in);
    if (!map || map->at)
        return GANTRY_OK;
    int64_t bytes;
    if (in->space == GY_SPACE_OUTPUT)
        bytes = gy_row_offset(k->s, in->value, k->s->values.at[in->value].rows);
    else
        bytes = (int64_t)(in->space == GY_SPACE_SLAB ? k->s->slab.at[in->memory] : k->s->staging);
    gy_cell cell = { GY_UNKNOWN, GY_GEOMETRY_ANY, 0, nobody, GY_NONE };
    uint32_t first = new_cell(b, cell);
    if (b->failed || !gy_imap_init(map, 0, bytes, first))
        return gy_fail_nomem(k->err);
    map->on_cut = copy_cell;
    map->context = b;
    return GANTRY_OK;
}

gantry_status gy_bytes_init(gy_check *k)
{
    gy_bytes *b = &k->bytes;
    *b = (gy_bytes){ .memories = k->s->machine->memories, .unused_reader = GY_NONE };
    b->spaces = b->memories + 1 + k->graph->buffers.count;
    b->space = gy_calloc(b->spaces, sizeof *b->space);
    if (!b->space)
        return gy_fail_nomem(k->err);
    for (size_t i = 0; i < k->s->instances.count; i++)
        GY_TRY(open_space(k, &k->s->instances.at[i]));
    return GANTRY_OK;
}

void gy_bytes_free(gy_bytes *b)
{
    for (size_t i = 0; b->space && i < b->spaces; i++)
        gy_imap_free(&b->space[i]);
    gy_free(b->space);
    gy_vec_free(&b->cell);
    gy_vec_free(&b->unused);
    gy_vec_free(&b->reader);
}

void gy_use_span(const gy_check *k, const gy_use *u, int64_t *first, int64_t *last)
{
    const gy_instance *in = gy_use_instance(k, u);
    int64_t at = address_of(k, in);
    *first = at + (int64_t)gy_instance_offset(k->s, in, u->first);
    *last = at + (int64_t)gy_instance_offset(k->s, in, u->last);
}

static gantry_status fail_race(const gy_check *k, const gy_use *u, const gy_interval *run, gy_stamp other, bool wrote)
{
    const gy_instance *in = gy_use_instance(k, u);
    gy_label here = gy_label_op(k->s, k->now.op), there = gy_label_op(k->s, other.op);
    gy_label rows = gy_label_rows(k->s, in->value, u->first, u->last);
    const char *memory = k->s->machine->memory[in->memory].id;
    long long first = run->first, last = run->last;
    if (other.op == k->now.op && other.start == k->now.start) {
        return gy_breach(k->err, "race", "ops", k->now.op,
                         "%s names bytes %lld to %lld of memory %s (%s) twice, and writes them", here.at, first, last,
                         memory, rows.at);
    }
    char starts[64] = "";
    if (other.start != k->now.start)
        snprintf(starts, sizeof starts, " %u start(s) before", k->now.start - other.start);
    return gy_breach(k->err, "race", "ops", k->now.op,
                     "%s %s bytes %lld to %lld of memory %s (%s) that %s%s %s, and nothing "
                     "orders the two; add a dependency",
                     here.at, u->mode == GANTRY_READ ? "reads" : "writes", first, last, memory, rows.at, there.at,
                     starts, wrote ? "writes" : "reads");
}

/* Readers that end before this one begins are forgotten: an op that is ordered behind this one is also behind them. */
static void replace_readers(gy_check *k, uint32_t index)
{
    gy_bytes *b = &k->bytes;
    uint32_t *link = &b->cell.at[index].readers;
    while (*link != GY_NONE) {
        uint32_t i = *link;
        if (gy_clocks_before(&k->clocks, b->reader.at[i].who)) {
            *link = b->reader.at[i].next;
            b->reader.at[i].next = b->unused_reader;
            b->unused_reader = i;
        } else {
            link = &b->reader.at[i].next;
        }
    }
    add_reader(b, index, k->now);
}

gantry_status gy_bytes_read(gy_check *k, const gy_use *u)
{
    gy_imap *map = gy_bytes_space(&k->bytes, k->s, gy_use_instance(k, u));
    int64_t first, last;
    gy_use_span(k, u, &first, &last);
    if (!map || first == last)
        return GANTRY_OK;
    uint32_t i = gy_imap_cut(map, first, last);
    for (uint32_t j = i; !k->bytes.failed && j != GY_IMAP_NONE && map->at[j].first < last; j = gy_imap_next(map, j)) {
        uint32_t cell = (uint32_t)map->at[j].payload;
        gy_stamp writer = k->bytes.cell.at[cell].writer;
        if (writer.op != GY_NONE && !gy_clocks_before(&k->clocks, writer))
            return fail_race(k, u, &map->at[j], writer, true);
        replace_readers(k, cell);
    }
    return i == GY_IMAP_NONE || k->bytes.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

static bool is_now(const gy_check *k, gy_stamp who)
{
    return who.op == k->now.op && who.start == k->now.start;
}

/* True if each read of the current op that shares bytes with `u` reads the same rows through the same rank. */
static bool is_in_place(const gy_check *k, const gy_use *u)
{
    const gy_op *op = gy_check_op(k, k->now.op);
    const gy_instance *in = gy_use_instance(k, u);
    int64_t first, last, read_first, read_last;
    gy_use_span(k, u, &first, &last);
    for (uint32_t i = 0; i < op->ins; i++) {
        const gy_use *read = &k->s->use.at[op->use + i];
        const gy_instance *from = gy_use_instance(k, read);
        gy_use_span(k, read, &read_first, &read_last);
        bool shared = gy_bytes_space(&k->bytes, k->s, from) == gy_bytes_space(&k->bytes, k->s, in);
        if (!shared || read_first >= last || first >= read_last)
            continue;
        if (read->rank != u->rank || k->geometry[from->value] != k->geometry[in->value] ||
            gy_bytes_base(k, from) != gy_bytes_base(k, in))
            return false;
    }
    return true;
}

static gantry_status check_past(gy_check *k, const gy_use *u, const gy_interval *run)
{
    gy_bytes *b = &k->bytes;
    const gy_cell *cell = &b->cell.at[run->payload];
    if (cell->writer.op != GY_NONE && (is_now(k, cell->writer) || !gy_clocks_before(&k->clocks, cell->writer)))
        return fail_race(k, u, run, cell->writer, true);
    for (uint32_t i = cell->readers; i != GY_NONE; i = b->reader.at[i].next) {
        gy_stamp who = b->reader.at[i].who;
        if (is_now(k, who)) {
            bool collective = gy_check_op(k, who.op)->kind == GY_OP_COLLECTIVE;
            if (!collective || !is_in_place(k, u))
                return fail_race(k, u, run, who, false);
        } else if (!gy_clocks_before(&k->clocks, who)) {
            return fail_race(k, u, run, who, false);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_bytes_take(gy_check *k, const gy_use *u)
{
    gy_imap *map = gy_bytes_space(&k->bytes, k->s, gy_use_instance(k, u));
    int64_t first, last;
    gy_use_span(k, u, &first, &last);
    if (!map || first == last)
        return GANTRY_OK;
    uint32_t i = gy_imap_cut(map, first, last);
    for (uint32_t j = i; !k->bytes.failed && j != GY_IMAP_NONE && map->at[j].first < last; j = gy_imap_next(map, j)) {
        gantry_status status = check_past(k, u, &map->at[j]);
        if (status)
            return status;
        gy_cell *cell = &k->bytes.cell.at[map->at[j].payload];
        drop_readers(&k->bytes, cell);
        cell->writer = k->now;
    }
    return i == GY_IMAP_NONE || k->bytes.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

gantry_status gy_bytes_put(gy_check *k, gy_imap *map, int64_t first, int64_t last, gy_cell what)
{
    gy_bytes *b = &k->bytes;
    uint32_t i = gy_imap_cut(map, first, last), mine = GY_NONE;
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        if (mine == GY_NONE)
            mine = (uint32_t)map->at[i].payload;
        else if (!gy_vec_push(&b->unused, (uint32_t)map->at[i].payload))
            return gy_fail_nomem(k->err);
        map->at[i].payload = mine;
    }
    if (mine == GY_NONE || b->failed)
        return gy_fail_nomem(k->err);
    gy_cell *cell = &b->cell.at[mine];
    bool plain = gy_content_is_plain(&k->contents, what.content);
    cell->content = what.content;
    cell->geometry = plain ? GY_GEOMETRY_ANY : what.geometry;
    cell->base = what.base;
    gy_imap_join(map, first, last);
    return GANTRY_OK;
}

gantry_status gy_bytes_set(gy_check *k, const gy_use *u, gy_content_id content)
{
    const gy_instance *in = gy_use_instance(k, u);
    gy_imap *map = gy_bytes_space(&k->bytes, k->s, in);
    int64_t first, last;
    gy_use_span(k, u, &first, &last);
    if (!map || first == last)
        return GANTRY_OK;
    gy_cell what = { .content = content, .geometry = k->geometry[in->value], .base = gy_bytes_base(k, in) };
    return gy_bytes_put(k, map, first, last, what);
}

gantry_status gy_bytes_add(gy_check *k, const gy_use *u, uint64_t flow_access)
{
    gy_bytes *b = &k->bytes;
    const gy_instance *in = gy_use_instance(k, u);
    gy_imap *map = gy_bytes_space(b, k->s, in);
    int64_t first, last, base = gy_bytes_base(k, in);
    gy_use_span(k, u, &first, &last);
    uint32_t geometry = k->geometry[in->value];
    uint32_t i = map && first < last ? gy_imap_find(map, first) : GY_IMAP_NONE; /* taken, hence already cut */
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        gy_cell *cell = &b->cell.at[map->at[i].payload];
        bool fits = cell->geometry == GY_GEOMETRY_ANY || (cell->geometry == geometry && cell->base == base);
        cell->content = fits ? gy_content_add(&k->contents, cell->content, u->mode, flow_access) : GY_UNKNOWN;
        cell->geometry = geometry;
        cell->base = base;
    }
    return k->contents.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

/* The run sets up persistent instances, in their order; so their rows have no writer in the schedule. */
static gantry_status set_persistent(gy_check *k, size_t index)
{
    const gy_instance *in = &k->s->instances.at[index];
    gy_imap *map = gy_bytes_space(&k->bytes, k->s, in);
    int64_t first = address_of(k, in), last = first + (int64_t)in->bytes;
    if (in->role != GY_ROLE_PERSIST || first == last)
        return GANTRY_OK;
    gy_content_id content = gy_content_entry(&k->contents, in->value);
    uint32_t i = gy_imap_cut(map, first, last), j = i;
    for (; j != GY_IMAP_NONE && map->at[j].first < last; j = gy_imap_next(map, j)) {
        gy_cell *cell = &k->bytes.cell.at[map->at[j].payload];
        cell->content = content;
        cell->geometry = k->geometry[in->value];
        cell->base = gy_bytes_base(k, in);
    }
    return i == GY_IMAP_NONE || k->bytes.failed || k->contents.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

/* Each start has output arrays of its own: starts that overlap do not meet there. */
static void forget_outputs(gy_bytes *b)
{
    for (size_t i = b->memories + 1; i < b->spaces; i++) {
        const gy_imap *map = &b->space[i];
        uint32_t j = map->at ? gy_imap_find(map, 0) : GY_IMAP_NONE;
        for (; j != GY_IMAP_NONE; j = gy_imap_next(map, j)) {
            gy_cell *cell = &b->cell.at[map->at[j].payload];
            drop_readers(b, cell);
            cell->writer = nobody;
        }
    }
}

gantry_status gy_bytes_begin(gy_check *k)
{
    forget_outputs(&k->bytes);
    for (size_t i = 0; i < k->bytes.cell.count; i++)
        k->bytes.cell.at[i].content = GY_UNKNOWN;
    for (size_t i = 0; i < k->s->instances.count; i++)
        GY_TRY(set_persistent(k, i));
    return GANTRY_OK;
}
