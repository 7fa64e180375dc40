/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of `nodes`: nodes, blocks of nodes with `for` and `if`, and `repeat`. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

const char *const gy_node_keys[GY_KEYS] = {
    "id",         "kernel",  "args",  "map",   "reduce", "work",      "reads", "writes", "cost",
    "for",        "if",      "when",  "after", "access", "on",        "copy",  "fill",   "host",
    "collective", "op",      "in",    "out",   "root",   "algorithm", "with",  "apart",  "priority",
    "share",      "scratch", "nodes", "use",   "repeat", "index",     "carry", "until",
};

enum { TURNS_PER_NODE = 64 }; /* beyond as many as nodes are allowed */

int64_t gy_read_limit(const gy_reader *r)
{
    return gy_graph_limit(r->graph);
}

int64_t gy_read_most_turns(const gy_reader *r)
{
    int64_t limit = gy_read_limit(r);
    return limit < INT64_MAX / TURNS_PER_NODE ? limit * TURNS_PER_NODE : INT64_MAX;
}

/* ---- for and if ---- */

typedef struct range {
    int64_t first, last, step;
} range;

/* "a:b" and "a:b:step" in pieces; a single expression gives one piece. */
typedef struct bounds {
    size_t count;
    const gy_expr *expr[3];
} bounds;

static gantry_status compile_bounds(gy_reader *r, const gy_json_at *at, bounds *out)
{
    const char *text = json_string_value(at->value), *start = text;
    int depth = 0;
    memset(out, 0, sizeof *out);
    for (const char *c = text;; c++) {
        depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
        if (*c != '\0' && (*c != ':' || depth > 0))
            continue;
        if (out->count == 3)
            return gy_read_fail(r, at, "a range is n, a:b or a:b:step, not \"%s\"", text);
        gantry_status status = gy_read_compile(r, at, start, (size_t)(c - start), NULL, &out->expr[out->count++]);
        if (status || *c == '\0')
            return status;
        start = c + 1;
    }
}

static gantry_status get_bounds(gy_reader *r, const gy_json_at *at, const bounds **out)
{
    *out = gy_read_known(r, at->value);
    if (*out)
        return GANTRY_OK;
    bounds *made = gy_arena_alloc(&r->graph->arena, sizeof *made);
    if (!made)
        return gy_read_nomem(r);
    gantry_status status = compile_bounds(r, at, made);
    *out = made;
    return status ? status : gy_read_remember(r, at->value, made);
}

static gantry_status read_range(gy_reader *r, const gy_json_at *at, range *out)
{
    const bounds *b;
    int64_t value[3] = { 0, 0, 1 };
    if (!json_is_string(at->value) && !json_is_number(at->value))
        return gy_read_kind(r, at, "a range: n, \"a:b\" or \"a:b:step\"");
    if (json_is_string(at->value) && strstr(json_string_value(at->value), ".."))
        return gy_read_fail(r, at, "a range is written n, \"a:b\" or \"a:b:step\", without b itself; \"%.60s\" is none",
                            json_string_value(at->value));
    if (!json_is_string(at->value)) {
        *out = (range){ 0, 0, 1 };
        return gy_read_bounded(r, at, "the end of a range", 0, INT64_MAX, &out->last);
    }
    gantry_status status = get_bounds(r, at, &b);
    for (size_t i = 0; i < 3 && !status && i < b->count; i++)
        status = gy_read_evaluate(r, at, b->expr[i], &value[i]);
    if (status)
        return status;
    *out = b->count == 1 ? (range){ 0, value[0], 1 } : (range){ value[0], value[1], value[2] };
    if (b->count == 1 && value[0] < 0)
        return gy_read_fail(r, at, "the end of a range must be at least 0, not %" PRId64, value[0]);
    return out->step != 0 ? GANTRY_OK : gy_read_fail(r, at, "the step of a range must not be 0");
}

/* The one member of a `for`. */
static gantry_status read_variable(gy_reader *r, const gy_json_at *at, gy_json_at *variable)
{
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, "an object such as {\"i\": \"parts\"}");
    if (json_object_size(at->value) != 1) {
        return gy_read_fail(r, at, "must have exactly one variable, not %zu: put blocks into one another",
                            json_object_size(at->value));
    }
    void *i = json_object_iter(gy_read_open(at->value));
    *variable = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
    GY_TRY(gy_read_name(r, variable, "an index", variable->key));
    if (gy_read_is_loop_index(r, variable->key))
        return gy_read_fail(r, variable, "\"%s\" is the index of a repeat around this already", variable->key);
    if (gy_read_is_index(r, variable->key))
        return gy_read_fail(r, variable, "\"%s\" is the index of an outer for already", variable->key);
    if (gy_names_find(&r->params, variable->key) != GY_NO_NAME)
        return gy_read_fail(r, variable, "\"%s\" is a param already: give the index another name", variable->key);
    return GANTRY_OK;
}

/* Turns that make nothing take time all the same. */
static gantry_status count_turn(gy_reader *r, const gy_json_at *at)
{
    int64_t made = (int64_t)r->graph->nodes.count + r->references, free_turns = gy_read_limit(r);
    if (++r->turns - free_turns <= TURNS_PER_NODE * made)
        return GANTRY_OK;
    return gy_read_fail(r, at,
                        "has taken %" PRId64 " turns and made %" PRId64 " nodes and references; %" PRId64
                        " turns are allowed, and %d more for each of these: use smaller ranges, or raise the limit "
                        "(--limits)",
                        r->turns, made, free_turns, TURNS_PER_NODE);
}

static gantry_status turn(gy_reader *r, const gy_json_at *at, const json_t *condition, gy_turn_fn each, void *context)
{
    int64_t yes = 1;
    GY_TRY(count_turn(r, at));
    if (condition) {
        gy_json_at member = gy_read_at(at, "if", condition);
        gantry_status status = gy_read_integer(r, &member, &yes);
        if (status)
            return status;
    }
    return yes ? each(r, at, context) : GANTRY_OK;
}

gantry_status gy_read_turn_count(gy_reader *r, const gy_json_at *at, const json_t *span, int64_t *turns)
{
    gy_json_at variable, member = gy_read_at(at, "for", span);
    range limits;
    GY_TRY(read_variable(r, &member, &variable));
    GY_TRY(read_range(r, &variable, &limits));
    bool up = limits.step > 0;
    if (up ? limits.first >= limits.last : limits.first <= limits.last) {
        *turns = 0;
        return GANTRY_OK;
    }
    uint64_t length =
        up ? (uint64_t)limits.last - (uint64_t)limits.first : (uint64_t)limits.first - (uint64_t)limits.last;
    uint64_t step = up ? (uint64_t)limits.step : 0 - (uint64_t)limits.step, count = (length - 1) / step + 1;
    *turns = count < INT64_MAX ? (int64_t)count : INT64_MAX;
    return GANTRY_OK;
}

gantry_status gy_read_turns(gy_reader *r, const gy_json_at *at, const json_t *span, const json_t *condition,
                            gy_turn_fn each, void *context)
{
    gy_json_at variable, member = gy_read_at(at, "for", span);
    range limits;
    if (!span)
        return turn(r, at, condition, each, context);
    gantry_status status = read_variable(r, &member, &variable);
    if (!status)
        status = read_range(r, &variable, &limits);
    if (status)
        return status;
    gy_index index = { variable.key, limits.first };
    if (!gy_vec_push(&r->index, index))
        return gy_read_nomem(r);
    size_t mine = r->index.count - 1;
    int64_t i = limits.first;
    while (!status && (limits.step > 0 ? i < limits.last : i > limits.last)) {
        r->index.at[mine].value = i;
        status = turn(r, at, condition, each, context);
        if (__builtin_add_overflow(i, limits.step, &i))
            break;
    }
    r->index.count--;
    return status;
}

/* ---- elements ---- */

static gantry_status read_elements(gy_reader *r, const gy_json_at *at);

typedef struct element {
    const json_t *value[GY_KEYS];
} element;

static gantry_status node_turn(gy_reader *r, const gy_json_at *at, void *context)
{
    const element *e = context;
    return gy_read_node(r, at, e->value);
}

/* A use or a block, whose nodes all have its `when`. */
static gantry_status group_turn(gy_reader *r, const gy_json_at *at, void *context)
{
    const element *e = context;
    const gantry_region *around = r->when;
    gantry_region flag;
    if (e->value[GY_KEY_WHEN]) {
        GY_TRY(gy_read_when(r, at, e->value[GY_KEY_WHEN], NULL, &flag));
        r->when = &flag;
    }
    gy_json_at nodes = gy_read_at(at, "nodes", e->value[GY_KEY_NODES]);
    gantry_status status = e->value[GY_KEY_USE] ? gy_read_use(r, at, e->value) : read_elements(r, &nodes);
    r->when = around;
    return status;
}

static gantry_status read_block(gy_reader *r, const gy_json_at *at, element *e)
{
    static const char *const allowed[] = { "for", "if", "when", "nodes" };
    GY_TRY(gy_read_keys(r, at, allowed, COUNT(allowed)));
    return gy_read_turns(r, at, e->value[GY_KEY_FOR], e->value[GY_KEY_IF], group_turn, e);
}

/* ---- repeat ---- */

static gantry_status read_carry(gy_reader *r, const gy_json_at *at)
{
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, "an object such as {\"prev\": \"next\"}");
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gantry_buffer prev, next;
        const char *name = NULL;
        gy_json_at pair = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
        gantry_status status = gy_read_buffer_named(r, &pair, pair.key, strlen(pair.key), &prev);
        if (!status)
            status = gy_read_string(r, &pair, "the name of a buffer", &name);
        if (!status)
            status = gy_read_buffer_named(r, &pair, name, strlen(name), &next);
        if (status)
            return status;
        gantry_graph_carry(r->graph, prev, next);
        status = gy_read_built(r, &pair);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

static gantry_status read_until(gy_reader *r, const gy_json_at *at)
{
    static const char *const names[] = { "buffer", "every" };
    const json_t *value[2];
    const char *name = NULL;
    gantry_buffer flag;
    int64_t every = 1;
    GY_TRY(gy_read_members(r, at, names, 2, value));
    gy_json_at buffer = gy_read_at(at, "buffer", value[0]), count = gy_read_at(at, "every", value[1]);
    GY_TRY(gy_read_string(r, &buffer, "the name of a buffer", &name));
    GY_TRY(gy_read_buffer_named(r, &buffer, name, strlen(name), &flag));
    if (value[1])
        GY_TRY(gy_read_bounded(r, &count, "\"every\"", 1, INT64_MAX, &every));
    gantry_graph_until(r->graph, flag, every);
    return gy_read_built(r, at);
}

/* The name that scalar arguments have for the iteration of the loop: "it", also where that is written. */
static gantry_status read_loop_index(gy_reader *r, const gy_json_at *at)
{
    const char *name = "it";
    if (at->value)
        GY_TRY(gy_read_string(r, at, "a name for the iteration", &name));
    if (strcmp(name, "it") != 0) {
        GY_TRY(gy_read_name(r, at, "an index", name));
        if (gy_read_is_index(r, name) || gy_read_is_loop_index(r, name))
            return gy_read_fail(r, at, "\"%s\" is the index of a for or repeat around this already", name);
        if (gy_names_find(&r->params, name) != GY_NO_NAME)
            return gy_read_fail(r, at, "\"%s\" is a param already: give the index another name", name);
        gantry_graph_index(r->graph, name);
        GY_TRY(gy_read_built(r, at));
    }
    return gy_vec_push(&r->loop, name) ? GANTRY_OK : gy_read_nomem(r);
}

/* `repeat`, `index`, `carry` and `until` are those of `at`; so is `nodes`. */
static gantry_status read_repeat(gy_reader *r, const gy_json_at *at)
{
    gy_json_at index = gy_json_key(at, "index");
    gy_json_at repeat = gy_json_key(at, "repeat"), carry = gy_json_key(at, "carry"), until = gy_json_key(at, "until"),
               nodes = gy_json_key(at, "nodes");
    int64_t count = 0;
    gantry_status status = gy_read_bounded(r, &repeat, "the count of iterations", 0, INT64_MAX, &count);
    if (status)
        return status;
    gy_read_origin(r, at);
    gantry_graph_repeat(r->graph, count);
    status = gy_read_built(r, &repeat);
    if (!status && carry.value)
        status = read_carry(r, &carry);
    if (!status && until.value)
        status = read_until(r, &until);
    status = status ? status : read_loop_index(r, &index);
    if (status)
        return status;
    GY_TRY(read_elements(r, &nodes));
    r->loop.count--;
    gy_read_origin(r, at);
    gantry_graph_repeat_end(r->graph);
    return gy_read_built(r, until.value ? &until : at);
}

static gantry_status read_repeat_block(gy_reader *r, const gy_json_at *at, const element *e)
{
    static const char *const allowed[] = { "repeat", "index", "carry", "until", "nodes" };
    if (!e->value[GY_KEY_REPEAT]) {
        const char *key = e->value[GY_KEY_CARRY] ? "carry" : e->value[GY_KEY_UNTIL] ? "until" : "index";
        gy_json_at member = gy_json_key(at, key);
        return gy_read_fail(r, &member, "\"%s\" needs a \"repeat\" beside it", key);
    }
    GY_TRY(gy_read_keys(r, at, allowed, COUNT(allowed)));
    return read_repeat(r, at);
}

static gantry_status read_element(gy_reader *r, const gy_json_at *at, bool *plain)
{
    element e = { 0 };
    GY_TRY(gy_read_members(r, at, gy_node_keys, GY_KEYS, e.value));
    *plain = !e.value[GY_KEY_FOR] && !e.value[GY_KEY_IF] && !e.value[GY_KEY_NODES];
    if (e.value[GY_KEY_REPEAT] || e.value[GY_KEY_INDEX] || e.value[GY_KEY_CARRY] || e.value[GY_KEY_UNTIL])
        return read_repeat_block(r, at, &e);
    if (e.value[GY_KEY_USE])
        return gy_read_turns(r, at, e.value[GY_KEY_FOR], e.value[GY_KEY_IF], group_turn, &e);
    if (e.value[GY_KEY_NODES])
        return read_block(r, at, &e);
    return gy_read_turns(r, at, e.value[GY_KEY_FOR], e.value[GY_KEY_IF], node_turn, &e);
}

static gantry_status read_elements(gy_reader *r, const gy_json_at *at)
{
    if (!json_is_array(at->value))
        return gy_read_kind(r, at, "an array of nodes");
    size_t count = json_array_size(at->value);
    for (size_t i = 0; i < count; i++) {
        bool plain = false;
        gy_json_at item = gy_read_item(at, i);
        gantry_status status = r->index.count == 0 ? gy_read_count(r, &item) : GANTRY_OK;
        if (!status)
            status = read_element(r, &item, &plain);
        if (status)
            return status;
        if (r->index.count == 0 && plain && !r->scope)
            (void)json_array_set_new(gy_read_open(at->value), i, json_null()); /* big files: give memory back at once */
        else if (r->index.count == 0)
            gy_map_free(&r->compiled);
    }
    return GANTRY_OK;
}

gantry_status gy_read_nodes(gy_reader *r, const gy_json_at *root)
{
    gy_json_at nodes = gy_json_key(root, "nodes");
    static const char *const ends[] = { "index", "carry", "until" };
    if (json_object_get(root->value, "repeat"))
        return read_repeat(r, root);
    for (size_t i = 0; i < COUNT(ends); i++) {
        gy_json_at member = gy_json_key(root, ends[i]);
        if (member.value)
            return gy_read_fail(r, &member, "\"%s\" needs a \"repeat\" beside it", ends[i]);
    }
    return read_elements(r, &nodes);
}
