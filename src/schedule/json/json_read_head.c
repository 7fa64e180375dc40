/* SPDX-License-Identifier: Apache-2.0 */
/* Reading all of a schedule file but its ops and sync table. */
#include "base/error.h"
#include "schedule/json/json_read.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static gantry_status no_memory(const gy_schedule_reader *r)
{
    return gy_fail_nomem(r->err);
}

static gantry_status read_string(gy_schedule_reader *r, const gy_json_at *at, const char *key, const char **out)
{
    const char *text;
    GY_TRY(gy_json_string(at, key, true, NULL, &text, GANTRY_E_SCHEDULE, r->err));
    *out = gy_arena_strdup(&r->s->arena, text);
    return *out ? GANTRY_OK : no_memory(r);
}

/* 64 bits without a sign do not fit a JSON integer of jansson: they are digits in a string. */
static gantry_status read_u64(gy_schedule_reader *r, const gy_json_at *at, const char *key, int radix, uint64_t *out)
{
    const char *text;
    char *end;
    GY_TRY(gy_json_string(at, key, true, NULL, &text, GANTRY_E_SCHEDULE, r->err));
    errno = 0;
    unsigned long long value = strtoull(text, &end, radix);
    size_t digits = strspn(text, "0123456789abcdefABCDEF"); /* strtoull also takes blanks, signs and "0x" */
    if (errno || *end || digits == 0 || text[digits]) {
        gy_json_at place = gy_json_key(at, key);
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &place, "\"%s\" is no %s number of 64 bits", text,
                            radix == 16 ? "hexadecimal" : "decimal");
    }
    *out = value;
    return GANTRY_OK;
}

static gantry_status read_ticks(gy_schedule_reader *r, const gy_json_at *at, const char *key, gy_ticks *out)
{
    return gy_json_int(at, key, true, 0, 0, INT64_MAX, out, GANTRY_E_SCHEDULE, r->err);
}

static gantry_status read_param(gy_schedule_reader *r, const gy_json_at *at)
{
    gy_param p = { .name = gy_arena_strdup(&r->s->arena, at->key) };
    if (!p.name)
        return no_memory(r);
    if (!json_is_number(at->value))
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "the param is %s; it is a number", gy_json_kind(at->value));
    p.is_real = json_is_real(at->value);
    p.integer = p.is_real ? 0 : json_integer_value(at->value);
    p.real = json_number_value(at->value);
    return gy_vec_push(&r->s->params, p) ? GANTRY_OK : no_memory(r);
}

static gantry_status read_bound(gy_schedule_reader *r, const gy_json_at *at)
{
    size_t count = json_array_size(at->value);
    struct gy_part_bounds b = { .buffer = gy_arena_strdup(&r->s->arena, at->key) };
    if (count < 2 || count > UINT32_MAX) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at,
                            "bounds are the first rows of all parts and the end, so two numbers or "
                            "more");
    }
    int64_t *first = gy_arena_calloc(&r->s->arena, count, sizeof *first);
    if (!b.buffer || !first)
        return no_memory(r);
    b.parts = (uint32_t)(count - 1);
    b.first = first;
    GY_TRY(gy_file_integers(r, at, count, first));
    if (!gy_vec_push(&r->s->bounds, b))
        GY_TRY(no_memory(r));
    return GANTRY_OK;
}

/* Members of the object at `key`, in the order of the file. */
static gantry_status read_members(gy_schedule_reader *r, const gy_json_at *root, const char *key,
                                  gantry_status (*read)(gy_schedule_reader *, const gy_json_at *))
{
    gy_json_at object = gy_json_key(root, key);
    if (!json_is_object(object.value)) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, object.value ? &object : root,
                            "\"%s\" is an object, and may be empty", key);
    }
    gantry_status status = GANTRY_OK;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object.value, name, value)
    {
        gy_json_at member = { &object, name, 0, value };
        status = read(r, &member);
        if (status)
            break;
    }
    return status;
}

static gantry_status read_sizes(gy_schedule_reader *r, const gy_json_at *root, const char *key, gy_sizes *to)
{
    gy_json_at list;
    int64_t bytes;
    gantry_status status = gy_file_list(r, root, key, &list);
    for (size_t i = 0; !status && i < json_array_size(list.value); i++) {
        status = gy_file_item(r, &list, i, 0, INT64_MAX, &bytes);
        if (!status && !gy_vec_push(to, (uint64_t)bytes))
            status = no_memory(r);
    }
    return status;
}

/* Where starts overlap and do not share all bytes. */
static gantry_status read_windows(gy_schedule_reader *r, const gy_json_at *root)
{
    int64_t staging = 0;
    gantry_status status =
        gy_json_key(root, "windows").value ? read_sizes(r, root, "windows", &r->s->window) : GANTRY_OK;
    if (!status) {
        status = gy_json_int(root, "staging_window", false, 0, 0, INT64_MAX, &staging, GANTRY_E_SCHEDULE, r->err);
        r->s->staging_window = (uint64_t)staging;
    }
    return status;
}

static gantry_status read_machine(gy_schedule_reader *r, const gy_json_at *root)
{
    gy_json_at machine = gy_json_key(root, "machine");
    if (!json_is_object(machine.value)) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, machine.value ? &machine : root,
                            "\"machine\" is an object: the machine that "
                            "the schedule is for");
    }
    int64_t staging = 0;
    gantry_status status = gy_machine_read(&r->s->machine, &machine, r->err);
    if (!status) {
        status = gy_json_int(root, "staging", true, 0, 0, INT64_MAX, &staging, GANTRY_E_SCHEDULE, r->err);
        r->s->staging = (uint64_t)staging;
    }
    if (!status)
        status = read_sizes(r, root, "slabs", &r->s->slab);
    return status ? status : read_windows(r, root);
}

static gantry_status read_balance(gy_schedule_reader *r, const gy_json_at *root)
{
    gy_json_at place = gy_json_key(root, "balance");
    uint8_t number = 0;
    if (!place.value)
        return GANTRY_OK;
    GY_TRY(gy_file_word_of(r, &place, &gy_balance_words, &number));
    return read_string(r, root, "balance", &r->s->balance);
}

static gantry_status read_options(gy_schedule_reader *r, const gy_json_at *root)
{
    gantry_schedule *s = r->s;
    int64_t effort = 0;
    uint8_t objective = 0, replay = 0;
    gantry_status status = read_string(r, root, "policy", &s->policy);
    if (!status) {
        status = gy_json_int(root, "effort", true, 0, INT32_MIN, INT32_MAX, &effort, GANTRY_E_SCHEDULE, r->err);
        s->effort = (int32_t)effort;
    }
    if (!status)
        status = read_u64(r, root, "seed", 10, &s->seed);
    if (!status)
        status = gy_file_word(r, root, "objective", true, &gy_objective_words, &objective);
    if (!status)
        status = gy_file_word(r, root, "replay", true, &gy_replay_words, &replay);
    s->objective = (gy_objective)objective;
    s->replay = (gy_replay)replay;
    if (!status)
        status = read_balance(r, root);
    if (!status)
        status = gy_file_u32(r, root, "unroll", true, 1, &s->unroll);
    return status ? status : gy_file_u32(r, root, "in_flight", true, 1, &s->in_flight);
}

gantry_status gy_file_head(gy_schedule_reader *r, const gy_json_at *root)
{
    GY_TRY(read_string(r, root, "graph", &r->s->graph_name));
    GY_TRY(read_u64(r, root, "graph_hash", 16, &r->s->graph_hash));
    GY_TRY(read_options(r, root));
    GY_TRY(read_ticks(r, root, "makespan_ps", &r->s->makespan));
    GY_TRY(read_ticks(r, root, "bound_ps", &r->s->bound));
    if (gy_json_key(root, "period_ps").value)
        GY_TRY(read_ticks(r, root, "period_ps", &r->s->period));
    if (gy_json_key(root, "period_bound_ps").value)
        GY_TRY(read_ticks(r, root, "period_bound_ps", &r->s->period_bound));
    GY_TRY(read_members(r, root, "params", read_param));
    GY_TRY(read_members(r, root, "bounds", read_bound));
    return read_machine(r, root);
}

static gantry_status read_node(gy_schedule_reader *r, const gy_json_at *at)
{
    bool isnew = false;
    if (!json_is_string(at->value)) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "%s, where the id of a node belongs",
                            gy_json_kind(at->value));
    }
    const char *id = gy_arena_strdup(&r->s->arena, json_string_value(at->value));
    if (!id || gy_names_add(&r->nodes, id, &isnew) == GY_NO_NAME || !gy_vec_push(&r->s->node_ids, id))
        return no_memory(r);
    return isnew ? GANTRY_OK : gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "node \"%s\" is listed twice", id);
}

static gantry_status read_offsets(gy_schedule_reader *r, const gy_json_at *at, gy_schedule_value *v)
{
    gy_json_at list;
    GY_TRY(gy_file_list(r, at, "offsets", &list));
    size_t count = json_array_size(list.value);
    if (count == 0 || (uint64_t)v->rows != count - 1) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &list,
                            "%zu offsets for %lld tiles; there is one for each and one for the "
                            "end",
                            count, (long long)v->rows);
    }
    int64_t *offset = gy_arena_calloc(&r->s->arena, count, sizeof *offset);
    v->offset = offset;
    return offset ? gy_file_integers(r, &list, count, offset) : no_memory(r);
}

static gantry_status read_tiles(gy_schedule_reader *r, const gy_json_at *at, gy_schedule_value *v)
{
    gy_json_at list;
    GY_TRY(gy_file_list(r, at, "tiles", &list));
    size_t count = json_array_size(list.value);
    if (count == 0 || count > GANTRY_TILE_AXES) {
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &list, "tiles along %zu axes; there are 1 to %d", count,
                            GANTRY_TILE_AXES);
    }
    v->axes = (int32_t)count;
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        v->tiles[k] = 1;
    GY_TRY(gy_file_integers(r, &list, count, v->tiles));
    return read_offsets(r, at, v);
}

/* A buffer brings its rows; a later generation of it has the same. */
static gantry_status read_value(gy_schedule_reader *r, const gy_json_at *at)
{
    static const char *const own_keys[] = { "name", "rows", "row_bytes", "tiles", "offsets" };
    static const char *const later_keys[] = { "buffer", "generation" };
    bool own = json_object_get(at->value, "generation") == NULL;
    gy_schedule_value v = { .buffer = (uint32_t)r->s->values.count };
    gantry_status status = gy_file_object(r, at, "a value", own ? own_keys : later_keys,
                                          own ? GY_COUNT_OF(own_keys) : GY_COUNT_OF(later_keys));
    if (!status && !own) {
        uint32_t buffer;
        status = gy_file_u32(r, at, "buffer", true, 0, &buffer);
        if (!status && (buffer >= r->s->values.count || r->s->values.at[buffer].generation != 0)) {
            status =
                gy_json_fail(r->err, GANTRY_E_SCHEDULE, at, "buffer %u is not before its later generation", buffer);
        }
        if (!status) {
            v = r->s->values.at[buffer];
            status = gy_file_u32(r, at, "generation", true, 0, &v.generation);
        }
    } else if (!status) {
        status = read_string(r, at, "name", &v.name);
        if (!status)
            status = gy_json_int(at, "rows", true, 0, 0, INT64_MAX, &v.rows, GANTRY_E_SCHEDULE, r->err);
        bool tiled = json_object_get(at->value, "offsets") != NULL;
        if (!status && tiled)
            status = read_tiles(r, at, &v);
        if (!status)
            status = gy_json_int(at, "row_bytes", !tiled, 0, 0, INT64_MAX, &v.row_bytes, GANTRY_E_SCHEDULE, r->err);
    }
    if (!status && !gy_vec_push(&r->s->values, v))
        status = no_memory(r);
    return status;
}

static gantry_status read_id(const gy_schedule_reader *r, const gy_json_at *at, const char *key, bool memory,
                             uint32_t *out)
{
    const char *id;
    GY_TRY(gy_json_string(at, key, true, NULL, &id, GANTRY_E_SCHEDULE, r->err));
    *out = memory ? gy_machine_find_memory(r->s->machine, id) : gy_machine_find_device(r->s->machine, id);
    if (*out == GY_MACHINE_NONE) {
        gy_json_at place = gy_json_key(at, key);
        return gy_json_fail(r->err, GANTRY_E_SCHEDULE, &place, "the machine has no %s \"%s\"", key, id);
    }
    return GANTRY_OK;
}

static gantry_status read_lane(gy_schedule_reader *r, const gy_json_at *at)
{
    static const char *const keys[] = { "device", "kind", "urgent" };
    gy_lane lane = { 0 };
    GY_TRY(gy_file_object(r, at, "a lane", keys, GY_COUNT_OF(keys)));
    GY_TRY(read_id(r, at, "device", false, &lane.device));
    GY_TRY(gy_file_word(r, at, "kind", true, &gy_lane_words, &lane.kind));
    GY_TRY(gy_json_bool(at, "urgent", false, &lane.urgent, GANTRY_E_SCHEDULE, r->err));
    if (!gy_vec_push(&r->s->lanes, lane))
        GY_TRY(no_memory(r));
    return GANTRY_OK;
}

static gantry_status read_extent(gy_schedule_reader *r, const gy_json_at *at, gy_instance *in)
{
    gy_json_at rows;
    int64_t bounds[2], offset = 0, bytes = 0;
    gantry_status status = gy_file_list(r, at, "rows", &rows);
    if (!status)
        status = gy_file_integers(r, &rows, 2, bounds);
    if (!status)
        status = gy_json_int(at, "offset", true, 0, 0, INT64_MAX, &offset, GANTRY_E_SCHEDULE, r->err);
    if (!status)
        status = gy_json_int(at, "bytes", true, 0, 0, INT64_MAX, &bytes, GANTRY_E_SCHEDULE, r->err);
    if (!status) {
        in->first = bounds[0];
        in->last = bounds[1];
        in->offset = (uint64_t)offset;
        in->bytes = (uint64_t)bytes;
    }
    return status;
}

static gantry_status read_instance(gy_schedule_reader *r, const gy_json_at *at)
{
    static const char *const keys[] = { "value", "memory", "space", "role", "op", "rows", "offset", "bytes" };
    gy_instance in = { 0 };
    GY_TRY(gy_file_object(r, at, "an instance", keys, GY_COUNT_OF(keys)));
    GY_TRY(gy_file_u32(r, at, "value", true, 0, &in.value));
    GY_TRY(read_id(r, at, "memory", true, &in.memory));
    GY_TRY(gy_file_word(r, at, "space", true, &gy_space_words, &in.space));
    GY_TRY(gy_file_word(r, at, "role", true, &gy_role_words, &in.role));
    if (in.role == GY_ROLE_ACCUMULATOR)
        GY_TRY(gy_file_word(r, at, "op", true, &gy_reduction_words, &in.op));
    else
        GY_TRY(gy_file_absent(r, at, "op", "instances of the role \"accumulator\""));
    GY_TRY(read_extent(r, at, &in));
    if (!gy_vec_push(&r->s->instances, in))
        GY_TRY(no_memory(r));
    return GANTRY_OK;
}

gantry_status gy_file_lists(gy_schedule_reader *r, const gy_json_at *root)
{
    static const struct {
        const char *key;
        gantry_status (*read)(gy_schedule_reader *, const gy_json_at *);
    } lists[] = {
        { "nodes", read_node }, { "values", read_value }, { "lanes", read_lane }, { "instances", read_instance }
    };
    for (size_t i = 0; i < GY_COUNT_OF(lists); i++)
        GY_TRY(gy_file_each(r, root, lists[i].key, lists[i].read));
    return GANTRY_OK;
}
