/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a machine: resources, and routes with their patterns. docs/machine-format.md describes the format. */
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "machine/read.h"
#include <string.h>

typedef GY_VEC(uint32_t) indices;

/* One element of "routes" while it is read; the vectors are reused from element to element. */
typedef struct route_reader {
    gy_machine_reader *r;
    const gy_json_at *at; /* the element */
    uint32_t index;       /* its number */
    uint32_t *declared;   /* memories x memories: 1 + the element that declared the pair; 0: none */
    gy_map resource;      /* hash of the id -> index; ids with the hash of another are not in it */
    indices from, to, via;
    gy_point_list point; /* empty: latency and rate */
    gy_ticks latency;
    int64_t rate, kernel_bytes;
    bool listed, both, network; /* listed: from or to is a list or a pattern */
} route_reader;

gantry_status gy_machine_read_resources(gy_machine_reader *r, const gy_json_at *resources)
{
    void *item = json_object_iter((json_t *)(uintptr_t)resources->value);
    for (uint32_t i = 0; i < r->m->resources; i++) {
        const char *id = json_object_iter_key(item);
        gy_json_at place = gy_json_key(resources, id);
        double gbs = 0;
        gantry_status status = gy_machine_id(r->err, &place, id);
        if (!status)
            status = gy_json_number(resources, id, true, 0, GY_LEAST_GBS, GY_MOST_GBS, &gbs, GANTRY_E_MACHINE, r->err);
        if (status)
            return status;
        r->m->resource[i] = (gy_resource){ gy_machine_text(r->m, id), (int64_t)(gbs * 1e9 + 0.5) };
        if (!r->m->resource[i].id)
            return gy_fail_nomem(r->err);
        item = json_object_iter_next((json_t *)(uintptr_t)resources->value, item);
    }
    return GANTRY_OK;
}

/* ---- from, to ---- */

/* Adds the memories that one string names: an id, or a beginning and "*". */
static gantry_status add_memories(route_reader *q, const gy_json_at *at, indices *to)
{
    const gantry_machine *m = q->r->m;
    if (!json_is_string(at->value))
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, at, "a memory must be named by a string, found %s",
                            gy_json_kind(at->value));
    const char *id = json_string_value(at->value);
    size_t length = strlen(id), before = to->count;
    bool pattern = length && id[length - 1] == '*';
    for (uint32_t i = 0; i < m->memories; i++)
        if (pattern ? !strncmp(m->memory[i].id, id, length - 1) : !strcmp(m->memory[i].id, id))
            if (!gy_vec_push(to, i))
                return gy_fail_nomem(q->r->err);
    q->listed = q->listed || pattern;
    if (to->count > before)
        return GANTRY_OK;
    if (strchr(id, '*'))
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, at,
                            "no memory matches \"%s\"; \"*\" stands for any ending and comes last", id);
    return gy_machine_no_memory(q->r, at, id);
}

static gantry_status read_end(route_reader *q, const char *key, indices *to)
{
    gy_json_at place = gy_json_key(q->at, key);
    to->count = 0;
    if (!place.value)
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, q->at,
                            "no \"%s\": name a memory, a list of memories or a pattern such as \"gpu*\"", key);
    if (!json_is_array(place.value))
        return add_memories(q, &place, to);
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < json_array_size(place.value) && !status; i++) {
        gy_json_at item = gy_json_item(&place, i);
        status = add_memories(q, &item, to);
    }
    q->listed = true;
    return status;
}

/* ---- times ---- */

static gantry_status read_times(route_reader *q)
{
    gy_json_at list;
    double latency = 0, gbs = 0;
    bool link = json_object_get(q->at->value, "bandwidth_gbs") != NULL;
    gantry_status status = gy_machine_array(q->r->err, q->at, "points", NULL, &list);
    q->point.count = 0;
    if (status)
        return status;
    if (list.value && (link || json_object_get(q->at->value, "latency_us")))
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, q->at, "\"points\" and \"%s\" exclude each other; keep one",
                            link ? "bandwidth_gbs" : "latency_us");
    if (list.value)
        return gy_machine_read_points(q->r->err, &list, ", or \"latency_us\" and \"bandwidth_gbs\"", &q->point);
    if (!link)
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, q->at, "no times: give \"points\" or \"bandwidth_gbs\"");
    status = gy_json_number(q->at, "latency_us", false, 0, 0, GY_MOST_US, &latency, GANTRY_E_MACHINE, q->r->err);
    if (!status)
        status = gy_json_number(q->at, "bandwidth_gbs", true, 0, GY_LEAST_GBS, GY_MOST_GBS, &gbs, GANTRY_E_MACHINE,
                                q->r->err);
    q->latency = gy_ticks_from_us(latency);
    q->rate = (int64_t)(gbs * 1e9 + 0.5);
    return status;
}

/* ---- via ---- */

/* "{from}.out" with the memories' ids put in. NULL: out of memory. */
static char *fill_in(const gantry_machine *m, const char *name, uint32_t from, uint32_t to)
{
    gy_text text = { 0 };
    gy_text_add(&text, "");
    while (*name) {
        bool is_from = !strncmp(name, "{from}", 6), is_to = !strncmp(name, "{to}", 4);
        if (is_from || is_to)
            gy_text_add(&text, m->memory[is_from ? from : to].id);
        else
            gy_text_add_n(&text, name, 1);
        name += is_from ? 6 : is_to ? 4 : 1;
    }
    return gy_text_take(&text, NULL);
}

static uint64_t hash_of(const char *id)
{
    return gy_hash_bytes(id, strlen(id), 0);
}

static bool list_resources(route_reader *q)
{
    const gantry_machine *m = q->r->m;
    bool done = true;
    for (uint32_t i = m->resources; i-- > 0 && done;)
        done = gy_map_put(&q->resource, hash_of(m->resource[i].id), i);
    return done;
}

static uint32_t find_resource(const route_reader *q, const char *id)
{
    const gantry_machine *m = q->r->m;
    uint64_t index;
    if (gy_map_get(&q->resource, hash_of(id), &index) && !strcmp(m->resource[index].id, id))
        return (uint32_t)index;
    for (uint32_t i = 0; i < m->resources; i++)
        if (!strcmp(m->resource[i].id, id))
            return i;
    return GY_MACHINE_NONE;
}

static gantry_status add_resource(route_reader *q, const gy_json_at *at, const char *id)
{
    const gantry_machine *m = q->r->m;
    uint32_t found = find_resource(q, id);
    if (found == GY_MACHINE_NONE) {
        gy_near near = { 0 };
        for (uint32_t i = 0; i < m->resources; i++)
            gy_near_offer(&near, id, m->resource[i].id);
        return near.best ? gy_json_fail(q->r->err, GANTRY_E_MACHINE, at, "no resource \"%s\" (did you mean \"%s\"?)",
                                        id, near.best)
                         : gy_json_fail(q->r->err, GANTRY_E_MACHINE, at,
                                        "no resource \"%s\"; resources are listed in \"resources\"", id);
    }
    for (size_t i = 0; i < q->via.count; i++)
        if (q->via.at[i] == found)
            return gy_json_fail(q->r->err, GANTRY_E_MACHINE, at, "resource \"%s\" is listed twice", id);
    return gy_vec_push(&q->via, found) ? GANTRY_OK : gy_fail_nomem(q->r->err);
}

static gantry_status read_via(route_reader *q, uint32_t from, uint32_t to)
{
    gy_json_at list;
    gantry_status status = gy_machine_array(q->r->err, q->at, "via", NULL, &list);
    q->via.count = 0;
    for (size_t i = 0; i < json_array_size(list.value) && !status; i++) {
        gy_json_at item = gy_json_item(&list, i);
        if (!json_is_string(item.value))
            return gy_json_fail(q->r->err, GANTRY_E_MACHINE, &item, "a resource must be named by a string, found %s",
                                gy_json_kind(item.value));
        char *id = fill_in(q->r->m, json_string_value(item.value), from, to);
        status = id ? add_resource(q, &item, id) : gy_fail_nomem(q->r->err);
        gy_free(id);
    }
    return status;
}

/* ---- putting it together ---- */

static gantry_status declare(route_reader *q, uint32_t from, uint32_t to)
{
    gantry_machine *m = q->r->m;
    uint32_t *declared = &q->declared[(size_t)from * m->memories + to];
    char list[sizeof q->r->err->where];
    if (*declared)
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, q->at,
                            "the route from \"%s\" to \"%s\" is given twice, first at %s/%u", m->memory[from].id,
                            m->memory[to].id, gy_json_pointer(q->at->up, list, sizeof list), *declared - 1);
    *declared = q->index + 1;
    GY_TRY(read_via(q, from, to));
    gy_via via = { q->via.at, (uint32_t)q->via.count };
    bool ok = q->point.count ? gy_machine_points(m, from, to, q->point.at, (uint32_t)q->point.count, via)
                             : gy_machine_link(m, from, to, q->latency, q->rate, via);
    gy_machine_by_kernels(m, from, to, q->kernel_bytes);
    gy_machine_by_network(m, from, to, q->network);
    return ok ? GANTRY_OK : gy_fail_nomem(q->r->err);
}

static gantry_status declare_all(route_reader *q)
{
    size_t pairs = 0;
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < q->from.count && !status; i++)
        for (size_t k = 0; k < q->to.count && !status; k++) {
            uint32_t from = q->from.at[i], to = q->to.at[k];
            if (from == to && q->listed)
                continue;
            pairs++;
            status = declare(q, from, to);
            if (!status && q->both)
                status = declare(q, to, from);
        }
    if (!status && !pairs)
        return gy_json_fail(q->r->err, GANTRY_E_MACHINE, q->at, "from and to name no two different memories");
    return status;
}

static gantry_status read_route(route_reader *q)
{
    static const char *const keys[] = { "from", "to",   "points",       "latency_us", "bandwidth_gbs",
                                        "via",  "both", "kernel_bytes", "network" };
    gantry_error *err = q->r->err;
    gantry_status status = gy_machine_object(err, q->at, "a route", keys, GY_COUNT(keys));
    q->listed = false;
    if (status || (status = read_end(q, "from", &q->from)) || (status = read_end(q, "to", &q->to)) ||
        (status = gy_json_bool(q->at, "both", false, &q->both, GANTRY_E_MACHINE, err)) ||
        (status = gy_json_bool(q->at, "network", false, &q->network, GANTRY_E_MACHINE, err)) ||
        (status =
             gy_json_int(q->at, "kernel_bytes", false, 0, 0, INT64_MAX, &q->kernel_bytes, GANTRY_E_MACHINE, err)) ||
        (status = read_times(q)))
        return status;
    if (q->both && !q->listed && q->from.at[0] == q->to.at[0])
        return gy_json_fail(err, GANTRY_E_MACHINE, q->at,
                            "\"both\" on a copy within one memory, which has no other direction; drop it");
    return declare_all(q);
}

static gantry_status check_reach(gy_machine_reader *r, const gy_json_at *root, const gy_json_at *routes)
{
    uint32_t from, to;
    if (!gy_machine_compose(r->m))
        return gy_fail_nomem(r->err);
    if (!gy_machine_unreached(r->m, &from, &to))
        return GANTRY_OK;
    return gy_json_fail(
        r->err, GANTRY_E_MACHINE, routes->value ? routes : root,
        "no route from memory \"%s\" to \"%s\", not even through one other memory; declare one in \"routes\"",
        r->m->memory[from].id, r->m->memory[to].id);
}

gantry_status gy_machine_read_routes(gy_machine_reader *r, const gy_json_at *root)
{
    gy_json_at list;
    route_reader q = { .r = r };
    gantry_status status = gy_machine_array(r->err, root, "routes", NULL, &list);
    if (status)
        return status;
    q.declared = gy_calloc((size_t)r->m->memories * r->m->memories, sizeof *q.declared);
    if (!q.declared || !list_resources(&q))
        status = gy_fail_nomem(r->err);
    for (uint32_t i = 0; i < json_array_size(list.value) && !status; i++) {
        gy_json_at item = gy_json_item(&list, i);
        q.at = &item;
        q.index = i;
        status = read_route(&q);
    }
    gy_free(q.declared);
    gy_map_free(&q.resource);
    gy_vec_free(&q.from);
    gy_vec_free(&q.to);
    gy_vec_free(&q.via);
    gy_vec_free(&q.point);
    return status ? status : check_reach(r, root, &list);
}
