/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/traffic.h"

#include "base/error.h"
#include "scheduler/search/model.h"
#include <string.h>

/* ---- roads ---- */

typedef struct maker {
    gy_model *m;
    gy_roads *r;
    uint32_t *engine_first; /* per device */
    uint32_t *rate;         /* per resource: column of `hold` */
    int64_t *rates;         /* per column */
    GY_VEC(gy_toll) toll;
    GY_VEC(uint32_t) size, upload;
    gy_map region; /* of bound inputs -> parcel */
} maker;

/* Most resources have one of a few rates. */
static gantry_status find_rates(maker *k, gantry_error *err)
{
    const gantry_machine *machine = k->m->plan->machine;
    k->rate = gy_calloc((size_t)machine->resources + 1, sizeof *k->rate);
    k->rates = gy_calloc((size_t)machine->resources + 1, sizeof *k->rates);
    if (!k->rate || !k->rates)
        return gy_fail_nomem(err);
    for (uint32_t i = 0; i < machine->resources; i++) {
        uint32_t c = 0;
        while (c < k->r->rates && k->rates[c] != machine->resource[i].rate)
            c++;
        if (c == k->r->rates)
            k->rates[k->r->rates++] = machine->resource[i].rate;
        k->rate[i] = c;
    }
    return GANTRY_OK;
}

static bool add_hop(maker *k, gy_road *road, const gy_route *route)
{
    const gy_plan *p = k->m->plan;
    uint32_t device = gy_plan_copier(p, route->from, route->to);
    gy_hop *hop = &road->hop[road->hops++];
    hop->kind = gy_model_kind(k->m, route->from, route->to);
    hop->engine = device == GY_NONE ? 0 : k->engine_first[device];
    hop->engines = device == GY_NONE ? 0 : p->machine->device[device].copy_engines;
    hop->toll = (uint32_t)k->toll.count;
    hop->tolls = route->resources;
    for (uint32_t i = 0; i < route->resources; i++) {
        gy_toll toll = { route->resource[i], k->rate[route->resource[i]] };
        if (!gy_vec_push(&k->toll, toll))
            return false;
    }
    return true;
}

static gantry_status make_roads(maker *k, gantry_error *err)
{
    const gantry_machine *machine = k->m->plan->machine;
    gy_roads *r = k->r;
    r->memories = machine->memories;
    r->road = gy_calloc((size_t)r->memories * r->memories, sizeof *r->road);
    r->memory = gy_calloc((size_t)machine->devices + 1, sizeof *r->memory);
    k->engine_first = gy_calloc((size_t)machine->devices + 1, sizeof *k->engine_first);
    bool done = r->road && r->memory && k->engine_first;
    for (uint32_t d = 0; d < machine->devices && done; d++) {
        r->memory[d] = machine->device[d].memory;
        k->engine_first[d] = r->engines;
        r->engines += machine->device[d].copy_engines;
    }
    for (uint32_t i = 0; i < r->memories * r->memories && done; i++) {
        const gy_route *route = gy_machine_route(machine, i / r->memories, i % r->memories);
        if (route->from == route->to || route->kind == GY_ROUTE_NONE)
            continue;
        for (int h = 0; h < (route->hop[0] ? 2 : 1) && done; h++)
            done = add_hop(k, &r->road[i], route->hop[0] ? route->hop[h] : route);
    }
    r->toll = k->toll.at;
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* For every size that there is. */
static gantry_status make_holds(maker *k, gantry_error *err)
{
    gy_roads *r = k->r;
    r->hold = gy_calloc((size_t)k->m->sizes * r->rates + 1, sizeof *r->hold);
    for (size_t s = GY_SIZE_HERE + 1; s < k->m->sizes && r->hold; s++)
        for (uint32_t c = 0; c < r->rates; c++)
            r->hold[s * r->rates + c] = gy_ticks_of((uint64_t)k->m->bytes.at[s], k->rates[c]);
    return r->hold ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- parcels ---- */

static bool new_parcel(maker *k, uint32_t size)
{
    k->r->parcels++;
    return gy_vec_push(&k->size, size);
}

/* One for each size that a task sends. */
static bool make_sends(maker *k, uint32_t *last)
{
    const gy_model *m = k->m;
    gy_roads *r = k->r;
    for (uint32_t t = 0; t < m->tasks; t++) {
        r->first_parcel[t] = r->parcels;
        for (size_t i = m->succ_first[t]; i < m->succ_first[t + 1]; i++) {
            uint32_t *known = &last[m->succ[i].size]; /* number of the last parcel of that size, + 1 */
            if (*known <= r->first_parcel[t]) {
                if (!new_parcel(k, m->succ[i].size))
                    return false;
                *known = r->parcels;
            }
            r->send[i] = (gy_send){ m->succ[i].task, *known - 1 };
        }
    }
    r->first_parcel[m->tasks] = r->parcels;
    for (uint32_t t = 0; t < m->tasks; t++)
        if (r->first_parcel[t + 1] - r->first_parcel[t] > r->most)
            r->most = r->first_parcel[t + 1] - r->first_parcel[t];
    return true;
}

static gantry_status make_parcels(maker *k, gantry_error *err)
{
    const gy_model *m = k->m;
    gy_roads *r = k->r;
    size_t arcs = m->pred_first[m->tasks];
    uint32_t *last = gy_calloc((size_t)m->sizes + 1, sizeof *last);
    size_t *next = gy_calloc((size_t)m->tasks + 1, sizeof *next);
    r->first_parcel = gy_calloc((size_t)m->tasks + 1, sizeof *r->first_parcel);
    r->send = gy_calloc(arcs + 1, sizeof *r->send);
    r->wanted = gy_calloc(arcs + 1, sizeof *r->wanted);
    bool done = last && next && r->first_parcel && r->send && r->wanted && make_sends(k, last);
    for (uint32_t t = 0; t < m->tasks && done; t++)
        next[t] = m->succ_first[t];
    for (uint32_t t = 0; t < m->tasks && done; t++) /* the arcs of succ were made in this order too */
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++)
            r->wanted[i] = (uint32_t)next[m->pred[i].task]++;
    gy_free(last);
    gy_free(next);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

static bool add_upload(maker *k, uint64_t key, int64_t bytes)
{
    uint64_t parcel = k->r->parcels;
    uint32_t size;
    if (!gy_map_get(&k->region, key, &parcel)) {
        if (!gy_model_size(k->m, bytes, &size) || !gy_map_put(&k->region, key, parcel) || !new_parcel(k, size))
            return false;
        k->r->inputs++;
    }
    return gy_vec_push(&k->upload, (uint32_t)parcel);
}

static bool reads_input(const gy_plan *p, size_t access)
{
    const gy_flow *f = p->flow;
    uint32_t value = f->access[access].value;
    return f->value[value].generation == 0 && gy_value_buffer(p->graph, f, value)->cls == GANTRY_INPUT &&
           !gy_value_buffer(p->graph, f, value)->external &&
           gy_flow_access_of(p->graph, f, access)->mode != GANTRY_WRITE;
}

static int64_t access_bytes(const gy_plan *p, size_t access)
{
    const gy_access *a = gy_flow_access_of(p->graph, p->flow, access);
    return gy_buffer_span(gy_value_buffer(p->graph, p->flow, p->flow->access[access].value), a->first, a->last);
}

/* Regions of inputs, shared by all that read the same; of a task that reads some of one after it was written, its
 * upload as one. */
static bool add_uploads(maker *k, uint32_t task)
{
    const gy_plan *p = k->m->plan;
    size_t first = p->flow->task[task].access, count = gy_plan_node(p, task)->accesses;
    int64_t bytes = 0;
    bool done = true;
    for (size_t x = first; x < first + count; x++)
        bytes += reads_input(p, x) ? access_bytes(p, x) : 0;
    if (bytes != p->inputs.upload[task])
        return !p->inputs.upload[task] || add_upload(k, gy_hash64(task), p->inputs.upload[task]);
    for (size_t x = first; x < first + count && done; x++) {
        const gy_access *a = gy_flow_access_of(p->graph, p->flow, x);
        int64_t region[3] = { a->buffer, a->first, a->last };
        if (reads_input(p, x) && a->first < a->last)
            done = add_upload(k, gy_hash_bytes(region, sizeof region, 1), access_bytes(p, x));
    }
    return done;
}

static gantry_status make_uploads(maker *k, gantry_error *err)
{
    const gy_model *m = k->m;
    k->r->upload_first = gy_calloc((size_t)m->tasks + 1, sizeof *k->r->upload_first);
    bool done = k->r->upload_first;
    for (uint32_t t = 0; t < m->tasks && done; t++) {
        done = gy_model_is_team(m, t) || add_uploads(k, t);
        k->r->upload_first[t + 1] = k->upload.count;
    }
    k->r->upload = k->upload.at;
    gy_map_free(&k->region);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

/* ---- the whole ---- */

gantry_status gy_roads_make(gy_model *m, gantry_error *err)
{
    m->roads = gy_calloc(1, sizeof *m->roads);
    if (!m->roads)
        return gy_fail_nomem(err);
    maker k = { .m = m, .r = m->roads };
    gantry_status status = find_rates(&k, err);
    if (!status)
        status = make_roads(&k, err);
    if (!status)
        status = make_parcels(&k, err);
    if (!status)
        status = make_uploads(&k, err);
    if (!status)
        status = make_holds(&k, err);
    k.r->size = k.size.at;
    gy_free(k.engine_first);
    gy_free(k.rate);
    gy_free(k.rates);
    return status;
}

void gy_roads_free(gy_roads *r)
{
    if (!r)
        return;
    gy_free(r->memory);
    gy_free(r->road);
    gy_free(r->toll);
    gy_free(r->hold);
    gy_free(r->size);
    gy_free(r->first_parcel);
    gy_free(r->send);
    gy_free(r->wanted);
    gy_free(r->upload_first);
    gy_free(r->upload);
    gy_free(r);
}

/* ---- in a decode ---- */

gantry_status gy_traffic_init(gy_traffic *t, const gy_model *m, gantry_error *err)
{
    const gy_roads *r = m->roads;
    *t = (gy_traffic){ 0 };
    if (!r)
        return GANTRY_OK;
    t->resource = gy_calloc((size_t)m->plan->machine->resources + 1, sizeof *t->resource);
    t->engine = gy_calloc((size_t)r->engines + 1, sizeof *t->engine);
    t->arrived = gy_calloc(m->pred_first[m->tasks] + 1, sizeof *t->arrived);
    t->uploaded = gy_calloc(r->upload_first[m->tasks] + 1, sizeof *t->uploaded);
    uint32_t parcels = r->inputs > r->most ? r->inputs : r->most;
    t->there = gy_calloc((size_t)parcels * r->memories + 1, sizeof *t->there);
    return t->resource && t->engine && t->arrived && t->uploaded && t->there ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_traffic_free(gy_traffic *t)
{
    gy_free(t->resource);
    gy_free(t->engine);
    gy_free(t->arrived);
    gy_free(t->uploaded);
    gy_free(t->there);
}

void gy_traffic_begin(gy_traffic *t, const gy_model *m)
{
    const gy_roads *r = m->roads;
    memset(t->resource, 0, m->plan->machine->resources * sizeof *t->resource);
    memset(t->engine, 0, r->engines * sizeof *t->engine);
}

static gy_ticks copy(gy_traffic *t, const gy_model *m, const gy_hop *hop, uint32_t size, gy_ticks begin)
{
    const gy_roads *r = m->roads;
    const gy_toll *toll = hop->tolls ? &r->toll[hop->toll] : NULL; /* without resources there are no tables */
    const gy_ticks *hold = hop->tolls ? &r->hold[(size_t)size * r->rates] : NULL;
    gy_ticks none = 0, *engine = hop->engines ? &t->engine[hop->engine] : &none;
    for (uint32_t i = 1; i < hop->engines; i++)
        engine = t->engine[hop->engine + i] < *engine ? &t->engine[hop->engine + i] : engine;
    begin = *engine > begin ? *engine : begin;
    for (uint32_t i = 0; i < hop->tolls; i++)
        begin = t->resource[toll[i].resource] > begin ? t->resource[toll[i].resource] : begin;
    for (uint32_t i = 0; i < hop->tolls; i++)
        t->resource[toll[i].resource] = begin + hold[toll[i].rate];
    return *engine = begin + m->move[(size_t)size * m->kinds + hop->kind];
}

gy_ticks gy_traffic_send(gy_traffic *t, const gy_model *m, uint32_t size, uint32_t from, uint32_t to, gy_ticks ready)
{
    const gy_road *road = &m->roads->road[(size_t)from * m->roads->memories + to];
    for (uint32_t h = 0; h < road->hops; h++)
        ready = copy(t, m, &road->hop[h], size, ready);
    return ready;
}
