/* SPDX-License-Identifier: Apache-2.0 */
/* Rule form: what holds for every schedule, whatever its graph. After it no index needs to be looked at again. */
#include "schedule/form.h"
#include "base/error.h"
#include "base/map.h"
#include "schedule/words.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gantry_status gy_breach(gantry_error *err, const char *rule, const char *list, size_t index, const char *format, ...)
{
    char text[sizeof err->text], where[sizeof err->where];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(where, sizeof where, "/%s/%zu", list, index);
    return gy_fail(err, GANTRY_E_SCHEDULE, where, "rule %s: %s", rule, text);
}

#define BREACH(...) gy_breach(err, "form", __VA_ARGS__)

static bool same_rows(const gy_schedule_value *a, const gy_schedule_value *b)
{
    if (a->rows != b->rows || a->row_bytes != b->row_bytes || !a->offset != !b->offset)
        return false;
    if (a->axes != b->axes || memcmp(a->tiles, b->tiles, sizeof a->tiles) != 0)
        return false;
    return a->offset == b->offset || memcmp(a->offset, b->offset, ((size_t)a->rows + 1) * sizeof *a->offset) == 0;
}

/* Sizes are kept below 2^62, so that sums of two of them are numbers too. */
#define BYTES_MAX (INT64_MAX / 2)

/* Products of numbers up to the number of rows, which stop where they grow beyond it. */
static bool tiles_are_rows(const gy_schedule_value *v)
{
    int64_t product = 1;
    for (int k = 0; k < GANTRY_TILE_AXES; k++) {
        if (v->tiles[k] < 1 || (k >= v->axes && v->tiles[k] != 1) || v->tiles[k] > v->rows / product)
            return false;
        product *= v->tiles[k];
    }
    return v->axes >= 1 && v->axes <= GANTRY_TILE_AXES && product == v->rows;
}

static gantry_status check_rows(const gy_schedule_value *v, size_t i, gantry_error *err)
{
    if (v->rows < 0 || v->row_bytes < 0 || (v->row_bytes > 0 && v->rows > BYTES_MAX / v->row_bytes)) {
        return BREACH("values", i,
                      "\"%s\" has %lld rows of %lld bytes; both must be 0 or more, and their product below 2^62",
                      v->name, (long long)v->rows, (long long)v->row_bytes);
    }
    if (!v->offset)
        return GANTRY_OK;
    if (v->row_bytes != 0) {
        return BREACH("values", i, "\"%s\" is tiled and has %lld row_bytes; tiled buffers have 0 and offsets", v->name,
                      (long long)v->row_bytes);
    }
    if (!tiles_are_rows(v)) {
        return BREACH("values", i, "the tiles of \"%s\" along its axes are not %lld together", v->name,
                      (long long)v->rows);
    }
    for (int64_t row = 0; row <= v->rows; row++) {
        int64_t before = row ? v->offset[row - 1] : 0;
        if (v->offset[row] < before || v->offset[row] > BYTES_MAX || (row == 0 && v->offset[0] != 0)) {
            return BREACH("values", i, "offset %lld of \"%s\" is %lld; offsets begin with 0 and do not fall",
                          (long long)row, v->name, (long long)v->offset[row]);
        }
    }
    return GANTRY_OK;
}

static gantry_status check_value(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_schedule_value *v = &s->values.at[i];
    if (!v->name)
        return BREACH("values", i, "value %zu has no name", i);
    if (v->buffer > i || (v->buffer == i) != (v->generation == 0)) {
        return BREACH("values", i,
                      "value %zu is generation %u of buffer %u; value i of generation 0 is buffer i, other "
                      "generations come behind it",
                      i, v->generation, v->buffer);
    }
    if (v->generation == 0)
        return check_rows(v, i, err);
    const gy_schedule_value *own = &s->values.at[v->buffer];
    if (own->generation != 0 || !same_rows(v, own))
        return BREACH("values", i, "value %zu has other rows than its buffer, \"%s\"", i, own->name);
    return GANTRY_OK;
}

/* Inputs, outputs and what persists belong to a buffer, and lie where that buffer's rows lie. */
static gantry_status check_owned(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_instance *in = &s->instances.at[i];
    const gy_schedule_value *v = &s->values.at[in->value];
    bool outside = in->space == GY_SPACE_INPUT || in->space == GY_SPACE_OUTPUT;
    if (outside != (in->role == GY_ROLE_EXTERNAL)) {
        return BREACH("instances", i,
                      "instance %zu has role %s in space %s; role external and spaces input and output go "
                      "together",
                      i, gy_word(&gy_role_words, in->role), gy_word(&gy_space_words, in->space));
    }
    if (in->role == GY_ROLE_PERSIST && in->space != GY_SPACE_SLAB) {
        return BREACH("instances", i, "instance %zu persists in space %s; only slabs persist", i,
                      gy_word(&gy_space_words, in->space));
    }
    if ((outside || in->role == GY_ROLE_PERSIST) && v->generation != 0) {
        return BREACH("instances", i,
                      "instance %zu is of generation %u of \"%s\"; inputs, outputs and what persists are of "
                      "the buffer itself, generation 0",
                      i, v->generation, v->name);
    }
    if (outside && in->offset != (uint64_t)gy_row_offset(s, in->value, in->first)) {
        return BREACH("instances", i, "instance %zu has offset %llu; in space %s row %lld of \"%s\" is at %lld", i,
                      (unsigned long long)in->offset, gy_word(&gy_space_words, in->space), (long long)in->first,
                      v->name, (long long)gy_row_offset(s, in->value, in->first));
    }
    if (!outside && in->offset % GY_ALIGNMENT != 0) {
        return BREACH("instances", i, "instance %zu has offset %llu, which is no multiple of %d", i,
                      (unsigned long long)in->offset, GY_ALIGNMENT);
    }
    return GANTRY_OK;
}

static gantry_status check_instance(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_instance *in = &s->instances.at[i];
    if (in->value >= s->values.count || in->memory >= s->machine->memories) {
        return BREACH("instances", i, "instance %zu is of value %u of %zu in memory %u of %u", i, in->value,
                      s->values.count, in->memory, s->machine->memories);
    }
    if (in->space > GY_SPACE_STAGING || in->role > GY_ROLE_EXTERNAL ||
        (in->role == GY_ROLE_ACCUMULATOR && !gy_is_reduction(in->op))) {
        return BREACH("instances", i, "instance %zu has space %u, role %u, reduction %u", i, in->space, in->role,
                      in->op);
    }
    if (in->space == GY_SPACE_STAGING && in->memory != 0) {
        return BREACH("instances", i, "instance %zu has space %s in memory %s; that is always in memory %s", i,
                      gy_word(&gy_space_words, in->space), s->machine->memory[in->memory].id, s->machine->memory[0].id);
    }
    const gy_schedule_value *v = &s->values.at[in->value];
    if (in->first < 0 || in->last < in->first || in->last > v->rows) {
        return BREACH("instances", i, "instance %zu has rows %lld to %lld of \"%s\", which has %lld", i,
                      (long long)in->first, (long long)in->last, v->name, (long long)v->rows);
    }
    uint64_t bytes = gy_instance_offset(s, in, in->last);
    if (in->bytes != bytes || in->offset > BYTES_MAX) {
        return BREACH("instances", i, "instance %zu has %llu bytes at %llu; its rows have %llu", i,
                      (unsigned long long)in->bytes, (unsigned long long)in->offset, (unsigned long long)bytes);
    }
    return check_owned(s, i, err);
}

static gantry_status check_lane(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const gy_lane *lane = &s->lanes.at[i];
    if (lane->device >= s->machine->devices || lane->kind > GY_LANE_COLLECTIVE) {
        return BREACH("lanes", i, "lane %zu has kind %u and device %u of %u", i, lane->kind, lane->device,
                      s->machine->devices);
    }
    return GANTRY_OK;
}

static gantry_status check_bound(const gantry_schedule *s, size_t i, gantry_error *err)
{
    const struct gy_part_bounds *b = &s->bounds.at[i];
    if (!b->buffer || !b->first || b->parts == 0)
        return BREACH("bounds", i, "bounds %zu have %u parts; a split buffer has a name and 1 or more", i, b->parts);
    for (uint32_t part = 0; part <= b->parts; part++) {
        if (part ? b->first[part] < b->first[part - 1] : b->first[0] != 0) {
            return BREACH("bounds", i, "part %u of \"%s\" begins at row %lld; bounds begin with 0 and do not fall",
                          part, b->buffer, (long long)b->first[part]);
        }
    }
    return GANTRY_OK;
}

/* One for each memory or none; all of them inside the slab, and so that what they shift stays aligned. */
static gantry_status check_windows(const gantry_schedule *s, gantry_error *err)
{
    if (s->window.count && s->window.count != s->slab.count) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/windows",
                       "rule form: %zu windows for %zu slabs; there is one for each", s->window.count, s->slab.count);
    }
    for (size_t i = 0; i < s->window.count; i++) {
        if (s->window.at[i] % GY_ALIGNMENT || s->window.at[i] > s->slab.at[i] / s->in_flight) {
            return BREACH(
                "windows", i, "window %zu has %llu bytes; it is a multiple of %d, and %u of them fit the slab of %llu",
                i, (unsigned long long)s->window.at[i], GY_ALIGNMENT, s->in_flight, (unsigned long long)s->slab.at[i]);
        }
    }
    if (s->staging_window % GY_ALIGNMENT || s->staging_window > s->staging / s->in_flight) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/staging_window",
                       "rule form: the staging window has %llu bytes; it is a multiple of %d, and %u of them fit the "
                       "%llu of staging",
                       (unsigned long long)s->staging_window, GY_ALIGNMENT, s->in_flight,
                       (unsigned long long)s->staging);
    }
    return GANTRY_OK;
}

static gantry_status check_head(const gantry_schedule *s, gantry_error *err)
{
    if (!s->machine || s->slab.count != s->machine->memories) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/slabs", "rule form: %zu slabs for %u memories; there is one for each",
                       s->slab.count, s->machine ? s->machine->memories : 0);
    }
    for (size_t i = 0; i < s->slab.count; i++)
        if (s->slab.at[i] > BYTES_MAX)
            return BREACH("slabs", i, "slab %zu has %llu bytes", i, (unsigned long long)s->slab.at[i]);
    if (s->staging > BYTES_MAX || s->makespan < 0 || s->bound < 0 || s->period < 0 || s->period_bound < 0) {
        return gy_fail(
            err, GANTRY_E_SCHEDULE, "",
            "rule form: staging has %llu bytes, makespan and bound are %lld and %lld ps, period and its bound "
            "%lld and %lld",
            (unsigned long long)s->staging, (long long)s->makespan, (long long)s->bound, (long long)s->period,
            (long long)s->period_bound);
    }
    if (s->unroll != 1)
        return gy_fail(err, GANTRY_E_SCHEDULE, "/unroll", "rule form: unroll is %u; this version has 1", s->unroll);
    if (s->in_flight < 1 || s->in_flight > GY_IN_FLIGHT_MAX) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "/in_flight", "rule form: in_flight is %u; allowed is 1 to %d",
                       s->in_flight, GY_IN_FLIGHT_MAX);
    }
    if (!s->graph_name || !s->policy)
        return gy_fail(err, GANTRY_E_SCHEDULE, "", "rule form: no %s", s->graph_name ? "policy" : "graph name");
    /* Clocks and stamps count ops of all starts of the window, and uses and rows, in 32 bits. */
    if (s->ops.count > (UINT32_MAX - 1) / s->in_flight || s->use.count >= UINT32_MAX ||
        s->op_lane.count >= UINT32_MAX || s->sync.count >= UINT32_MAX || s->instances.count >= UINT32_MAX ||
        s->values.count >= UINT32_MAX) {
        return gy_fail(err, GANTRY_E_SCHEDULE, "",
                       "rule form: %zu ops, %zu uses, %zu rows in the sync table; at most 2^32 / "
                       "in_flight ops and 2^32 of the others",
                       s->ops.count, s->use.count, s->sync.count);
    }
    return check_windows(s, err);
}

static gantry_status check_names(const gantry_schedule *s, gantry_error *err)
{
    for (size_t i = 0; i < s->node_ids.count; i++)
        if (!s->node_ids.at[i])
            return BREACH("nodes", i, "node %zu has no id", i);
    for (size_t i = 0; i < s->params.count; i++)
        if (!s->params.at[i].name)
            return BREACH("params", i, "param %zu has no name", i);
    return GANTRY_OK;
}

#define FOR_ALL(list, check)                                                                                           \
    for (size_t i = 0; !status && i < (list).count; i++)                                                               \
    status = check(s, i, err)

gantry_status gy_schedule_form(const gantry_schedule *s, gantry_error *err)
{
    gantry_status status = check_head(s, err);
    if (!status)
        status = check_names(s, err);
    FOR_ALL(s->values, check_value);
    FOR_ALL(s->instances, check_instance);
    FOR_ALL(s->lanes, check_lane);
    FOR_ALL(s->bounds, check_bound);
    if (status)
        return status;
    uint32_t *geometry;
    status = gy_form_geometry(s, &geometry, err);
    if (!status) {
        status = gy_form_ops(s, geometry, err);
        gy_free(geometry);
    }
    status = status ? status : gy_form_counters(s, err);
    return status ? status : gy_schedule_phases_form(s, err);
}

int64_t gy_row_offset(const gantry_schedule *s, uint32_t value, int64_t row)
{
    const gy_schedule_value *v = &s->values.at[value];
    return v->offset ? v->offset[row] : row * v->row_bytes;
}

static uint64_t hash_rows(const gy_schedule_value *v)
{
    if (!v->offset)
        return gy_hash64((uint64_t)v->row_bytes);
    return gy_hash_bytes(v->offset, ((size_t)v->rows + 1) * sizeof *v->offset, 1);
}

/* Rows of one size are alike however many there are; tables must be equal. */
static bool same_geometry(const gy_schedule_value *a, const gy_schedule_value *b)
{
    return !a->offset && !b->offset ? a->row_bytes == b->row_bytes : same_rows(a, b);
}

static bool number_geometry(const gantry_schedule *s, uint32_t *to, gy_map *seen)
{
    for (size_t i = 0; i < s->values.count; i++) {
        const gy_schedule_value *v = &s->values.at[i];
        to[i] = (uint32_t)i;
        if (v->generation > 0) {
            to[i] = to[v->buffer];
            continue;
        }
        uint64_t key = hash_rows(v), other;
        while (gy_map_get(seen, key, &other) && !same_geometry(v, &s->values.at[other]))
            key++;
        if (gy_map_get(seen, key, &other))
            to[i] = (uint32_t)other;
        else if (!gy_map_put(seen, key, i))
            return false;
    }
    return true;
}

gantry_status gy_form_geometry(const gantry_schedule *s, uint32_t **geometry, gantry_error *err)
{
    gy_map seen = { 0 };
    uint32_t *to = gy_calloc(s->values.count + 1, sizeof *to);
    bool done = to && number_geometry(s, to, &seen);
    gy_map_free(&seen);
    if (!done) {
        gy_free(to);
        return gy_fail_nomem(err);
    }
    *geometry = to;
    return GANTRY_OK;
}
