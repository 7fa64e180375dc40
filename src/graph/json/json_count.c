/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Counts the nodes that a block expands to at least, before any is made: a range with a few zeros too many is then
 * refused at once, instead of when the memory is full. A block whose index no range and no `if` inside mentions is
 * walked for one turn and multiplied, and so are innermost blocks. Other blocks are walked, all together for some
 * thousand turns at most. What `if` leaves out is not known, so nodes under an `if` are not counted. The exact limit
 * holds while nodes are made (json_node.c, json_block.c).
 */
#include "graph/json/json_read.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_WALKED = 100000 };

typedef struct tally {
    int64_t nodes, turns; /* INT64_MAX: that or more */
    int64_t walked;
} tally;

static void add(int64_t *sum, int64_t count, int64_t each)
{
    int64_t product;
    if (__builtin_mul_overflow(count, each, &product) || __builtin_add_overflow(*sum, product, sum))
        *sum = INT64_MAX;
}

static bool has(const json_t *element, const char *key)
{
    return json_object_get(element, key) != NULL;
}

/* Nodes only, one for each element. */
static bool is_flat(const json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *e = json_array_get(nodes, i);
        if (!json_is_object(e) || has(e, "for") || has(e, "if") || has(e, "nodes"))
            return false;
    }
    return true;
}

static gantry_status count_element(gy_reader *r, const gy_json_at *at, tally *t);

/* One turn of a block; the status ends the walk: a mistake, or enough is known. */
static gantry_status count_turn(gy_reader *r, const gy_json_at *at, void *context)
{
    tally *t = context;
    gy_json_at nodes = gy_json_key(at, "nodes");
    gantry_status status = t->walked++ < MOST_WALKED ? GANTRY_OK : GANTRY_E_INVALID;
    for (size_t i = 0; i < json_array_size(nodes.value) && !status; i++) {
        gy_json_at item = gy_read_item(&nodes, i);
        status = count_element(r, &item, t);
    }
    return status;
}

/* True if the text has the name anywhere, also within a longer name: then a block is only walked where it could be
 * multiplied. */
static bool mentions(const json_t *value, const char *name)
{
    const char *key;
    json_t *member;
    if (json_is_string(value))
        return strstr(json_string_value(value), name) != NULL;
    json_object_foreach(gy_read_open(value), key, member) if (mentions(member, name)) return true;
    return false;
}

/* Some range or `if` inside depends on the index, so that its turns differ. */
static bool depends_on(const json_t *nodes, const char *name)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *e = json_array_get(nodes, i), *inner = json_object_get(e, "nodes");
        if (mentions(json_object_get(e, "for"), name) || mentions(json_object_get(e, "if"), name) ||
            (inner && depends_on(inner, name)))
            return true;
    }
    return false;
}

typedef struct first_turn {
    tally inside;
    gantry_status status;
} first_turn;

static gantry_status count_first_turn(gy_reader *r, const gy_json_at *at, void *context)
{
    first_turn *f = context;
    f->status = count_turn(r, at, &f->inside);
    return GANTRY_E_INVALID; /* ends the range after its first turn */
}

static gantry_status count_alike(gy_reader *r, const gy_json_at *at, const json_t *span, int64_t turns, tally *t)
{
    first_turn f = { .inside = { .walked = t->walked } };
    gantry_status status = gy_read_turns(r, at, span, NULL, count_first_turn, &f);
    t->walked = f.inside.walked;
    add(&t->nodes, turns, f.inside.nodes);
    add(&t->turns, turns, f.inside.turns);
    return status == GANTRY_E_NOMEM ? status : f.status;
}

static gantry_status count_block(gy_reader *r, const gy_json_at *at, const json_t *span, int64_t turns, tally *t)
{
    const char *index = span ? json_object_iter_key(json_object_iter(gy_read_open(span))) : "";
    add(&t->turns, turns, 1);
    if (turns < 2 || depends_on(json_object_get(at->value, "nodes"), index))
        return gy_read_turns(r, at, span, NULL, count_turn, t);
    return count_alike(r, at, span, turns, t);
}

static gantry_status count_element(gy_reader *r, const gy_json_at *at, tally *t)
{
    const json_t *e = at->value, *nodes = json_object_get(e, "nodes"), *span = json_object_get(e, "for");
    bool certain = !has(e, "if");
    int64_t turns = 1;
    gantry_status status = t->walked++ < MOST_WALKED ? GANTRY_OK : GANTRY_E_INVALID;
    if (!status && span)
        status = gy_read_turn_count(r, at, span, &turns);
    if (status)
        return status;
    if (nodes && certain && !is_flat(nodes))
        return count_block(r, at, span, turns, t);
    add(&t->turns, turns, 1);
    add(&t->nodes, certain ? turns : 0, nodes ? (int64_t)json_array_size(nodes) : 1);
    return GANTRY_OK;
}

gantry_status gy_read_count(gy_reader *r, const gy_json_at *element)
{
    int64_t most = gy_read_limit(r), most_turns = gy_read_most_turns(r);
    gantry_error before = r->error;
    int64_t turns = r->turns;
    size_t indices = r->index.count;
    tally t = { .nodes = (int64_t)r->graph->nodes.count };
    gantry_status status = count_element(r, element, &t);
    bool full = status == GANTRY_E_NOMEM;
    r->index.count = indices; /* mistakes are found again when the block is read */
    r->turns = turns;
    r->error = before;
    if (full)
        return gy_read_nomem(r);
    if (t.nodes > most) {
        return gy_read_fail(r, element,
                            "expands to more than %" PRId64
                            " nodes, the limit of a graph: use smaller ranges, or raise "
                            "the limit (--limits)",
                            most);
    }
    if (t.turns > most_turns) {
        return gy_read_fail(r, element,
                            "takes more than %" PRId64
                            " turns, 64 for each node that is allowed: use smaller ranges, or "
                            "raise the limit (--limits)",
                            most_turns);
    }
    return GANTRY_OK;
}
