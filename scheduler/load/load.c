/* SPDX-License-Identifier: Apache-2.0 */
/* The construction of loads from the flow, the table of times and the routes. */
#include "scheduler/load/load.h"

#include "base/align.h"
#include "base/error.h"
#include "base/imap.h"
#include <stdlib.h>

#define TICKS_PER_DAY (86400e6 * GY_TICKS_PER_US)
#define MOST_LOAD     (0.9 * (double)INT64_MAX)

/* One unit reads rows as one access left them; `source` is the number of that access by the order of tasks, or
 * `accesses` + value for what is there at the start. Unit GY_NONE: the output. */
typedef struct record {
    uint64_t source;
    int64_t first, last;
    uint32_t unit;
} record;

/* A buffer that stays: who uses which rows. */
typedef struct stay {
    uint32_t buffer, unit;
    int64_t first, last;
} stay;

typedef struct maker {
    gy_load *l;
    const gy_plan *p;
    gy_imap *map;   /* per value: 0: as at the start; else the number of the access + 1 */
    size_t *access; /* per number: of the flow */
    uint32_t *task; /* per number */
    size_t numbers;
    GY_VEC(record) records;
    GY_VEC(stay) stays;
    gy_map size_of; /* bytes -> index of sizes */
    gantry_error *err;
} maker;

/* ---- units ---- */

static gantry_status make_units(gy_load *l, const gy_plan *p, gantry_error *err)
{
    gy_map unit_of_group = { 0 };
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < p->flow->tasks && !status; i++) {
        uint32_t t = l->order[i], node = p->flow->task[t].node;
        uint64_t unit = l->units;
        if (gy_plan_team(p, t)) {
            unit = GY_NONE;
        } else if (!p->cost.pinned[node] || !gy_map_get(&unit_of_group, p->cost.group[node], &unit)) {
            l->task_of[l->units++] = t;
            if (p->cost.pinned[node] && !gy_map_put(&unit_of_group, p->cost.group[node], unit))
                status = gy_fail_nomem(err);
        }
        l->unit_of[t] = (uint32_t)unit;
    }
    gy_map_free(&unit_of_group);
    return status;
}

static bool add_times(gy_load *l, const gy_plan *p)
{
    l->time = gy_calloc((size_t)l->units * l->devices + 1, sizeof *l->time);
    for (uint32_t t = 0; l->time && t < p->flow->tasks; t++)
        for (uint32_t d = 0; l->unit_of[t] != GY_NONE && d < l->devices; d++) {
            gy_ticks *sum = &l->time[(size_t)l->unit_of[t] * l->devices + d];
            gy_ticks time = gy_plan_time(p, p->flow->task[t].node, d);
            *sum = *sum >= GY_TICKS_MAX || time >= GY_TICKS_MAX - *sum ? GY_TICKS_MAX : *sum + time;
        }
    return l->time;
}

/* ---- who reads what ---- */

static bool is_there(const gy_plan *p, uint32_t value)
{
    return p->flow->value[value].generation == 0 && gy_value_buffer(p->graph, p->flow, value)->cls == GANTRY_INPUT;
}

static bool note_read(maker *m, uint32_t value, int64_t first, int64_t last, uint32_t unit)
{
    const gy_imap *map = &m->map[value];
    if (first >= last)
        return true;
    for (uint32_t i = gy_imap_find(map, first); i != GY_IMAP_NONE && map->at[i].first < last;
         i = gy_imap_next(map, i)) {
        record r = { .first = map->at[i].first > first ? map->at[i].first : first, .unit = unit };
        r.last = map->at[i].last < last ? map->at[i].last : last;
        r.source = map->at[i].payload ? map->at[i].payload - 1 : m->p->flow->accesses + value;
        if (!map->at[i].payload && !is_there(m->p, value))
            continue;
        if (!gy_vec_push(&m->records, r))
            return false;
    }
    return true;
}

static bool note_task(maker *m, uint32_t task)
{
    const gy_flow *f = m->p->flow;
    const gy_task *t = &f->task[task];
    uint32_t unit = m->l->unit_of[task], accesses = m->p->graph->nodes.at[t->node].accesses;
    bool done = true;
    for (uint32_t k = 0; k < accesses && done; k++) {
        const gy_access *a = gy_flow_access_of(m->p->graph, f, t->access + k);
        const gy_buffer *b = gy_value_buffer(m->p->graph, f, f->access[t->access + k].value);
        stay s = { f->value[f->access[t->access + k].value].buffer, unit, a->first, a->last };
        if (a->mode != GANTRY_WRITE && unit != GY_NONE)
            done = note_read(m, f->access[t->access + k].value, a->first, a->last, unit);
        if (done && unit != GY_NONE && (b->cls == GANTRY_CONST || b->cls == GANTRY_STATE) && a->first < a->last)
            done = gy_vec_push(&m->stays, s);
    }
    for (uint32_t k = 0; k < accesses && done; k++) {
        const gy_access *a = gy_flow_access_of(m->p->graph, f, t->access + k);
        m->access[m->numbers] = t->access + k;
        m->task[m->numbers++] = task;
        if (a->mode != GANTRY_READ)
            done = gy_imap_set(&m->map[f->access[t->access + k].value], a->first, a->last, m->numbers);
    }
    return done;
}

static bool note_outputs(maker *m)
{
    bool done = true;
    for (uint32_t b = 0; b < m->p->graph->buffers.count && done; b++)
        if (m->p->graph->buffers.at[b].output)
            done = note_read(m, m->p->flow->exit[b], 0, m->p->graph->buffers.at[b].rows, GY_NONE);
    return done;
}

static bool note_all(maker *m)
{
    const gy_flow *f = m->p->flow;
    uint32_t made = 0;
    m->map = gy_calloc((size_t)f->values + 1, sizeof *m->map);
    m->access = gy_calloc(f->accesses + 1, sizeof *m->access);
    m->task = gy_calloc(f->accesses + 1, sizeof *m->task);
    bool done = m->map && m->access && m->task;
    for (; made < f->values && done; made++)
        done = gy_imap_init(&m->map[made], 0, gy_value_buffer(m->p->graph, f, made)->rows, 0);
    for (uint32_t t = 0; t < f->tasks && done; t++)
        done = note_task(m, m->l->order[t]);
    done = done && note_outputs(m);
    for (uint32_t v = 0; m->map && v < made; v++)
        gy_imap_free(&m->map[v]);
    gy_free(m->map);
    return done;
}

/* ---- items ---- */

static int by_source(const void *a, const void *b)
{
    const record *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static bool find_size(maker *m, int64_t bytes, uint32_t *size)
{
    uint64_t found = m->l->sizes.count;
    if (!gy_map_get(&m->size_of, (uint64_t)bytes, &found) &&
        !(gy_map_put(&m->size_of, (uint64_t)bytes, found) && gy_vec_push(&m->l->sizes, bytes)))
        return false;
    *size = (uint32_t)found;
    return true;
}

/* The unit that made `source` (GY_NONE: it was there at the start), and the buffer it is in. */
static const gy_buffer *look_up(const maker *m, uint64_t source, uint32_t *unit)
{
    const gy_flow *f = m->p->flow;
    bool there = source >= f->accesses;
    *unit = there ? GY_NONE : m->l->unit_of[m->task[source]];
    return gy_value_buffer(m->p->graph, f,
                           there ? (uint32_t)(source - f->accesses) : f->access[m->access[source]].value);
}

/* Rows [first, last) of one source: an item, if a unit that did not make them reads them all. */
static bool add_item(maker *m, const record *r, size_t count, int64_t first, int64_t last, uint32_t maker_unit,
                     const gy_buffer *b)
{
    gy_load *l = m->l;
    gy_load_item item = { .maker = maker_unit, .reader = (uint32_t)l->reader.count };
    for (size_t i = 0; i < count; i++) {
        bool seen = r[i].unit == maker_unit;
        if (r[i].first > first || r[i].last < last)
            continue;
        if (r[i].unit == GY_NONE) {
            item.home = true;
            continue;
        }
        for (uint32_t k = 0; k < item.readers && !seen; k++)
            seen = l->reader.at[item.reader + k] == r[i].unit;
        if (seen)
            continue;
        if (!gy_vec_push(&l->reader, r[i].unit))
            return false;
        item.readers++;
    }
    if (!item.readers && !(item.home && maker_unit != GY_NONE))
        return true;
    return find_size(m, gy_buffer_span(b, first, last), &item.size) && gy_vec_push(&l->items, item);
}

/* The records of one source, cut where one of them begins or ends, so that whoever reads a piece reads all of it. */
static bool add_source(maker *m, const record *r, size_t count, int64_t *bound)
{
    uint32_t unit;
    const gy_buffer *b = look_up(m, r->source, &unit);
    size_t bounds = 0;
    bool done = true;
    for (size_t i = 0; i < count; i++) {
        bound[bounds++] = r[i].first;
        bound[bounds++] = r[i].last;
    }
    qsort(bound, bounds, sizeof *bound, by_number);
    for (size_t i = 0; i + 1 < bounds && done; i++)
        if (bound[i] < bound[i + 1])
            done = add_item(m, r, count, bound[i], bound[i + 1], unit, b);
    return done;
}

static bool add_items(maker *m)
{
    const gy_flow *f = m->p->flow;
    int64_t *bound = gy_calloc(m->records.count * 2 + 1, sizeof *bound);
    bool done = bound != NULL;
    if (m->records.count)
        qsort(m->records.at, m->records.count, sizeof *m->records.at, by_source);
    for (size_t i = 0, last; done && i < m->records.count; i = last) {
        for (last = i; last < m->records.count && m->records.at[last].source == m->records.at[i].source;)
            last++;
        uint64_t source = m->records.at[i].source;
        if (source >= f->accesses || m->l->unit_of[m->task[source]] != GY_NONE)
            done = add_source(m, &m->records.at[i], last - i, bound);
    }
    gy_free(bound);
    return done;
}

/* ---- what stays ---- */

static int by_rows(const void *a, const void *b)
{
    const stay *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Rows that are named alike are held once a memory; rows that overlap otherwise count in each. */
static bool add_held(maker *m)
{
    gy_load *l = m->l;
    if (m->stays.count)
        qsort(m->stays.at, m->stays.count, sizeof *m->stays.at, by_rows);
    for (size_t i = 0; i < m->stays.count; i++) {
        const stay *s = &m->stays.at[i], *before = i ? s - 1 : NULL;
        bool same = before && before->buffer == s->buffer && before->first == s->first && before->last == s->last;
        uint64_t bytes = (uint64_t)gy_buffer_span(&m->p->graph->buffers.at[s->buffer], s->first, s->last);
        gy_load_held held = { gy_aligned(bytes), (uint32_t)l->user.count, 0 };
        if (!same && !gy_vec_push(&l->held, held))
            return false;
        if (same && before->unit == s->unit)
            continue;
        if (!gy_vec_push(&l->user, s->unit))
            return false;
        gy_vec_last(&l->held)->users++;
    }
    return true;
}

/* ---- lists by unit ---- */

static void count_unit(uint32_t *first, uint32_t unit)
{
    if (unit != GY_NONE)
        first[unit + 2]++;
}

static void add_unit(uint32_t *first, uint32_t *list, uint32_t unit, uint32_t what)
{
    if (unit != GY_NONE)
        list[first[unit + 1]++] = what;
}

static bool list_by_unit(gy_load *l)
{
    l->item_first = gy_calloc((size_t)l->units + 2, sizeof *l->item_first);
    l->held_first = gy_calloc((size_t)l->units + 2, sizeof *l->held_first);
    l->item_of = gy_calloc(l->reader.count + l->items.count + 1, sizeof *l->item_of);
    l->held_of = gy_calloc(l->user.count + 1, sizeof *l->held_of);
    if (!l->item_first || !l->held_first || !l->item_of || !l->held_of)
        return false;
    for (uint32_t i = 0; i < l->items.count; i++)
        count_unit(l->item_first, l->items.at[i].maker);
    for (size_t i = 0; i < l->reader.count; i++)
        count_unit(l->item_first, l->reader.at[i]);
    for (size_t i = 0; i < l->user.count; i++)
        count_unit(l->held_first, l->user.at[i]);
    for (uint32_t u = 2; u < l->units + 2; u++) {
        l->item_first[u] += l->item_first[u - 1];
        l->held_first[u] += l->held_first[u - 1];
    }
    for (uint32_t i = 0; i < l->items.count; i++) {
        const gy_load_item *item = &l->items.at[i];
        add_unit(l->item_first, l->item_of, item->maker, i);
        for (uint32_t k = 0; k < item->readers; k++)
            add_unit(l->item_first, l->item_of, l->reader.at[item->reader + k], i);
    }
    for (uint32_t i = 0; i < l->held.count; i++)
        for (uint32_t k = 0; k < l->held.at[i].users; k++)
            add_unit(l->held_first, l->held_of, l->user.at[l->held.at[i].user + k], i);
    return true;
}

/* ---- what transfers cost ---- */

static gy_load_pay pay_for(const gantry_machine *m, uint32_t from, uint32_t to, int64_t bytes)
{
    const gy_route *r = gy_machine_route(m, from, to);
    if (from == to)
        return (gy_load_pay){ 0 };
    if (r->kind == GY_ROUTE_RELAY || r->kind == GY_ROUTE_STAGED)
        return (gy_load_pay){ gy_route_time(m, r->hop[0], bytes), gy_route_time(m, r->hop[1], bytes),
                              r->kind == GY_ROUTE_STAGED };
    gy_ticks time = gy_route_time(m, r, bytes);
    return (gy_load_pay){ time, time, from == 0 || to == 0 };
}

static bool add_pay(gy_load *l)
{
    uint32_t n = l->memories;
    l->pay = gy_calloc(l->sizes.count * n * n + 1, sizeof *l->pay);
    for (size_t i = 0; l->pay && i < l->sizes.count; i++)
        for (uint32_t k = 0; k < n * n; k++)
            l->pay[i * n * n + k] = pay_for(l->p->machine, k / n, k % n, l->sizes.at[i]);
    return l->pay;
}

/* ---- how much there can be ---- */

/* The cost of one reader of a size for sender and receiver, wherever they are. */
static double most_paid(const gy_load *l, uint32_t size)
{
    size_t pairs = (size_t)l->memories * l->memories;
    double most = 0;
    for (size_t k = 0; k < pairs; k++) {
        const gy_load_pay *pay = &l->pay[size * pairs + k];
        double sum = (double)pay->send + (double)pay->receive;
        most = pay->receive < GY_TICKS_MAX && sum > most ? sum : most;
    }
    return most;
}

/* Loads are sums that units are added to and taken from: whatever is where, they must stay numbers. */
static gantry_status check_sums(const gy_load *l, gantry_error *err)
{
    double *paid = gy_calloc(l->sizes.count + 1, sizeof *paid), sum = 0;
    for (uint32_t i = 0; paid && i < l->sizes.count; i++)
        paid[i] = most_paid(l, i);
    for (size_t i = 0; paid && i < l->items.count; i++)
        sum += paid[l->items.at[i].size] * (l->items.at[i].readers + 1.0);
    for (size_t u = 0; u < l->units; u++) {
        gy_ticks most = 0;
        for (uint32_t d = 0; d < l->devices; d++) {
            gy_ticks time = l->time[u * l->devices + d];
            most = time < GY_TICKS_MAX && time > most ? time : most;
        }
        sum += (double)most;
    }
    gantry_status status = paid ? GANTRY_OK : gy_fail_nomem(err);
    gy_free(paid);
    if (status || sum < MOST_LOAD)
        return status;
    return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                   "nodes and transfers of graph \"%s\" add up to %.0f days, and %.0f can be shared out; make times "
                   "or the graph smaller",
                   l->p->graph->name, sum / TICKS_PER_DAY, MOST_LOAD / TICKS_PER_DAY);
}

/* ---- all of it ---- */

gantry_status gy_load_make(gy_load *l, const gy_plan *p, gantry_error *err)
{
    maker m = { .l = l, .p = p, .err = err };
    *l = (gy_load){ .p = p, .devices = p->devices, .memories = p->machine->memories };
    l->unit_of = gy_calloc((size_t)p->flow->tasks + 1, sizeof *l->unit_of);
    l->task_of = gy_calloc((size_t)p->flow->tasks + 1, sizeof *l->task_of);
    gantry_status status = l->unit_of && l->task_of ? gy_load_order(l, p, err) : gy_fail_nomem(err);
    if (!status)
        status = make_units(l, p, err);
    if (!status && !(add_times(l, p) && note_all(&m) && add_items(&m) && add_held(&m) && list_by_unit(l) && add_pay(l)))
        status = gy_fail_nomem(err);
    status = status ? status : check_sums(l, err);
    gy_vec_free(&m.records);
    gy_vec_free(&m.stays);
    gy_map_free(&m.size_of);
    gy_free(m.access);
    gy_free(m.task);
    return status;
}

void gy_load_free(gy_load *l)
{
    gy_free(l->order);
    gy_free(l->loose);
    gy_free(l->unit_of);
    gy_free(l->task_of);
    gy_free(l->time);
    gy_vec_free(&l->items);
    gy_vec_free(&l->reader);
    gy_vec_free(&l->held);
    gy_vec_free(&l->user);
    gy_free(l->item_first);
    gy_free(l->item_of);
    gy_free(l->held_first);
    gy_free(l->held_of);
    gy_vec_free(&l->sizes);
    gy_free(l->pay);
    *l = (gy_load){ 0 };
}
