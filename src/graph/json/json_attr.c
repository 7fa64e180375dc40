/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that every kind of node can have: order, device, cost. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- on ---- */

static bool is_word(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")] == '\0';
}

typedef struct names {
    const gy_reader *reader;
    bool devices, others;
} names;

static bool note_name(void *context, const char *name)
{
    names *n = context;
    int64_t integer;
    double real;
    bool is_real;
    if (strcmp(name, "devices") == 0)
        n->devices = true;
    else if (!gy_read_lookup((void *)(uintptr_t)n->reader, name, &integer, &real, &is_real))
        n->others = true;
    return true;
}

/* "gpu0" is a device, "i % devices" an expression; "i" is one too where i is an index. */
static gantry_status compile_on(gy_reader *r, const gy_json_at *at, const gy_expr **out)
{
    const char *text = json_string_value(at->value);
    size_t length = json_string_length(at->value);
    names n = { r, false, false };
    gantry_error ignored;
    if (is_word(text)) {
        gantry_status status = gy_expr_parse(out, &r->graph->arena, text, length, GANTRY_E_GRAPH, NULL, &ignored);
        if (!status)
            gy_expr_names(*out, note_name, &n);
        if (status || n.others)
            *out = NULL;
        return status == GANTRY_E_NOMEM ? gy_read_nomem(r) : GANTRY_OK;
    }
    return gy_read_compile(r, at, text, length, "devices", out);
}

static gantry_status set_index(gy_reader *r, const gy_json_at *at, gantry_node node, int64_t index)
{
    char digits[24];
    if (index < 0 || index > INT32_MAX)
        return gy_read_fail(r, at, "the index of a device must be from 0 to %d, not %" PRId64, INT32_MAX, index);
    snprintf(digits, sizeof digits, "%" PRId64, index);
    gantry_node_on(r->graph, node, digits);
    return gy_read_built(r, at);
}

/* Over `devices` it stays an expression: how many there are is not known yet. */
static gantry_status set_expr(gy_reader *r, const gy_json_at *at, gantry_node node, const gy_expr *e)
{
    names n = { r, false, false };
    int64_t index = 0;
    gy_expr_names(e, note_name, &n);
    if (!n.devices) {
        gantry_status status = gy_read_evaluate(r, at, e, &index);
        return status ? status : set_index(r, at, node, index);
    }
    const gy_expr *bound = gy_expr_bind(e, &r->graph->arena, gy_read_lookup_own, r);
    if (!bound)
        return gy_read_nomem(r);
    gy_node_on_expr(r->graph, node, bound);
    return gy_read_built(r, at);
}

static gantry_status read_place(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    static const char device[] = ""; /* stands for "no expression" among what is remembered */
    const gy_expr *e = NULL;
    const char *text = NULL;
    if (json_is_integer(at->value))
        return set_index(r, at, node, json_integer_value(at->value));
    gantry_status status = gy_read_string(r, at, "a device, a kind of device, or an expression", &text);
    if (status)
        return status;
    const void *known = gy_read_known(r, at->value);
    if (!known) {
        status = compile_on(r, at, &e);
        known = e ? (const void *)e : device;
        status = status ? status : gy_read_remember(r, at->value, (void *)(uintptr_t)known);
    }
    if (status)
        return status;
    if (known != device)
        return set_expr(r, at, node, known);
    gantry_node_on(r->graph, node, text);
    return gy_read_built(r, at);
}

typedef struct rank_entry {
    gantry_node node;
    const json_t *where;
} rank_entry;

static gantry_status read_rank(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    GY_TRY(read_place(r, at, node));
    gy_node_on_rank(r->graph, node);
    return gy_read_built(r, at);
}

static gantry_status rank_turn(gy_reader *r, const gy_json_at *up, void *context)
{
    const rank_entry *e = context;
    gy_json_at at = gy_read_at(up, "on", e->where);
    return read_rank(r, &at, e->node);
}

/* {"for": ..., "on": "i"} stands for several ranks. */
static gantry_status read_ranks(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    enum { FOR, IF, ON, KEYS };
    static const char *const keys[KEYS] = { "for", "if", "on" };
    const json_t *value[KEYS];
    GY_TRY(gy_read_members(r, at, keys, KEYS, value));
    if (!value[ON])
        return gy_read_fail(r, at, "missing key \"on\": give the place of a rank such as \"i\"");
    rank_entry e = { node, value[ON] };
    return gy_read_turns(r, at, value[FOR], value[IF], rank_turn, &e);
}

static gantry_status read_on(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    gantry_status status = GANTRY_OK;
    if (!json_is_array(at->value))
        return read_place(r, at, node);
    if (!json_array_size(at->value))
        return gy_read_fail(r, at, "is an empty list; give a place for each rank, or leave `on` out");
    for (size_t i = 0; i < json_array_size(at->value) && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = json_is_object(item.value) ? read_ranks(r, &item, node) : read_rank(r, &item, node);
    }
    return status;
}

/* ---- cost ---- */

static gantry_status read_amount(gy_reader *r, const gy_json_at *at, const char *what, double *out)
{
    gantry_status status = gy_read_real(r, at, out);
    if (!status && !(*out >= 0))
        return gy_read_fail(r, at, "%s must be at least 0, not %g", what, *out);
    return status;
}

static gantry_status read_time(gy_reader *r, const gy_json_at *at, const char *device, gantry_node node)
{
    double us = 0;
    GY_TRY(read_amount(r, at, "a time in us", &us));
    gantry_node_time(r->graph, node, device, us);
    return gy_read_built(r, at);
}

static gantry_status read_times(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    gantry_status status = GANTRY_OK;
    if (!json_is_object(at->value))
        return read_time(r, at, NULL, node);
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at member = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
        status = read_time(r, &member, strcmp(member.key, "*") == 0 ? NULL : member.key, node); /* *: everywhere */
    }
    return status;
}

static gantry_status read_cost(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    static const char *const keys[] = { "time_us", "flops", "bytes" };
    const json_t *value[3];
    double amount[3] = { 0, 0, 0 };
    gantry_status status = gy_read_members(r, at, keys, 3, value);
    for (size_t i = 1; i < 3 && !status; i++) {
        gy_json_at member = gy_read_at(at, keys[i], value[i]);
        status = value[i] ? read_amount(r, &member, i == 1 ? "a count of operations" : "a count of bytes", &amount[i])
                          : GANTRY_OK;
    }
    if (status)
        return status;
    if (value[1] || value[2])
        gantry_node_cost(r->graph, node, amount[1], amount[2]);
    gy_json_at times = gy_read_at(at, "time_us", value[0]);
    status = gy_read_built(r, at);
    return status || !value[0] ? status : read_times(r, &times, node);
}

/* ---- the others ---- */

static gantry_status read_priority(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    int64_t priority = 0;
    GY_TRY(gy_read_bounded(r, at, "a priority", INT32_MIN, INT32_MAX, &priority));
    gantry_node_priority(r->graph, node, (int)priority);
    return gy_read_built(r, at);
}

static gantry_status read_share(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    double share = 0;
    GY_TRY(gy_read_real(r, at, &share));
    gantry_node_share(r->graph, node, share);
    return gy_read_built(r, at);
}

static gantry_status read_scratch(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    int64_t bytes = 0;
    GY_TRY(gy_read_bounded(r, at, "the bytes of scratch", 0, INT64_MAX, &bytes));
    gantry_node_scratch(r->graph, node, bytes);
    return gy_read_built(r, at);
}

static gantry_status read_after(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    return gy_read_ties(r, at, node, gantry_node_after);
}

static gantry_status read_with(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    return gy_read_ties(r, at, node, gantry_node_with);
}

static gantry_status read_apart(gy_reader *r, const gy_json_at *at, gantry_node node)
{
    return gy_read_ties(r, at, node, gantry_node_apart);
}

gantry_status gy_read_attributes(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_node node)
{
    static const struct attribute {
        gy_node_key key;
        gantry_status (*read)(gy_reader *, const gy_json_at *, gantry_node);
    } attributes[] = {
        { GY_KEY_COST, read_cost },   { GY_KEY_AFTER, read_after },     { GY_KEY_ON, read_on },
        { GY_KEY_WITH, read_with },   { GY_KEY_APART, read_apart },     { GY_KEY_PRIORITY, read_priority },
        { GY_KEY_SHARE, read_share }, { GY_KEY_SCRATCH, read_scratch },
    };
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < COUNT(attributes) && !status; i++) {
        const json_t *given = value[attributes[i].key];
        gy_json_at member = gy_read_at(at, gy_node_keys[attributes[i].key], given);
        status = given ? attributes[i].read(r, &member, node) : GANTRY_OK;
    }
    return status;
}
