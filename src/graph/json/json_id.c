/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids. Inside [...] of an id, items between commas that use an index are replaced by their value: "gemm[i,k+1]". What
 * is written is the name of the whole family of nodes, which `after` may use where the index has no meaning.
 */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

/* Text as it is, then perhaps a value. */
typedef struct piece {
    const char *text;
    size_t length;
    const gy_expr *expr;
} piece;

typedef struct pattern {
    bool varies;
    GY_VEC(piece) pieces;
    piece *at; /* the same in the arena */
    size_t count;
} pattern;

static bool is_no_index(void *reader, const char *name)
{
    return !gy_read_is_index(reader, name);
}

/* *expr is set if the item uses an index. */
static gantry_status read_item(gy_reader *r, const gy_json_at *at, const char *text, size_t length,
                               const gy_expr **expr)
{
    const gy_expr *e;
    gantry_error ignored;
    *expr = NULL;
    gantry_status status = gy_expr_parse(&e, &r->graph->arena, text, length, GANTRY_E_GRAPH, NULL, &ignored);
    if (status == GANTRY_E_NOMEM)
        return gy_read_nomem(r);
    if (status || gy_expr_names(e, is_no_index, r))
        return GANTRY_OK;
    return gy_read_compile(r, at, text, length, NULL, expr);
}

static gantry_status add_piece(gy_reader *r, pattern *p, const char *text, size_t length, const gy_expr *expr)
{
    piece made = { text, length, expr };
    p->varies = p->varies || expr;
    return gy_vec_push(&p->pieces, made) ? GANTRY_OK : gy_read_nomem(r);
}

/* Cuts the text at the items that vary. */
static gantry_status cut(gy_reader *r, const gy_json_at *at, pattern *p)
{
    const char *start = json_string_value(at->value), *c = start + strcspn(start, "[");
    gantry_status status = GANTRY_OK;
    while (*c && !status) {
        const char *item = c + 1;
        size_t length = strcspn(item, "[],");
        const gy_expr *expr = NULL;
        if (length > 0 && item[length] != '[' && item[length] != '\0')
            status = read_item(r, at, item, length, &expr);
        if (!status && expr) {
            status = add_piece(r, p, start, (size_t)(item - start), expr);
            start = item + length;
        }
        c = item + length;
        c += *c == ']' ? strcspn(c, "[") : 0;
    }
    return status ? status : add_piece(r, p, start, strlen(start), NULL);
}

static gantry_status make_pattern(gy_reader *r, const gy_json_at *at, const pattern **out)
{
    pattern made = { 0 };
    gantry_status status = cut(r, at, &made);
    size_t bytes = made.pieces.count * sizeof(piece);
    pattern *kept = gy_arena_alloc(&r->graph->arena, sizeof *kept);
    made.at = gy_arena_alloc(&r->graph->arena, bytes);
    made.count = made.pieces.count;
    if (!status && kept && made.at) {
        memcpy(made.at, made.pieces.at, bytes);
        *kept = made;
        *out = kept;
        status = gy_read_remember(r, at->value, kept);
    } else if (!status) {
        status = gy_read_nomem(r);
    }
    gy_vec_free(&made.pieces);
    return status;
}

gantry_status gy_read_id(gy_reader *r, const gy_json_at *at, bool *varied)
{
    const char *text = NULL;
    gantry_status status = gy_read_string(r, at, "the id of a node", &text);
    r->id.length = 0;
    gy_text_add(&r->id, r->scope ? r->scope->prefix : "");
    *varied = false;
    if (status || r->index.count == 0) {
        gy_text_add(&r->id, status ? "" : text);
        return status ? status : r->id.failed ? gy_read_nomem(r) : GANTRY_OK;
    }
    const pattern *p = gy_read_known(r, at->value);
    if (!p)
        status = make_pattern(r, at, &p);
    for (size_t i = 0; !status && i < p->count; i++) {
        int64_t value = 0;
        gy_text_add_n(&r->id, p->at[i].text, p->at[i].length);
        if (p->at[i].expr) {
            status = gy_read_evaluate(r, at, p->at[i].expr, &value);
            gy_text_printf(&r->id, "%" PRId64, value);
            *varied = true;
        }
    }
    return status ? status : r->id.failed ? gy_read_nomem(r) : GANTRY_OK;
}

/* ---- families ---- */

gantry_status gy_read_family(gy_reader *r, const char *written, gantry_node node)
{
    bool isnew = false;
    uint32_t f = gy_names_add(&r->families, written, &isnew);
    gy_id_family empty = { GY_NONE, GY_NONE };
    if (f == GY_NO_NAME || (isnew && !gy_vec_push(&r->family, empty)))
        return gy_read_nomem(r);
    while (r->sibling.count <= node.id)
        if (!gy_vec_push(&r->sibling, GY_NONE))
            return gy_read_nomem(r);
    gy_id_family *family = &r->family.at[f];
    if (family->first == GY_NONE)
        family->first = node.id;
    else
        r->sibling.at[family->last] = node.id;
    family->last = node.id;
    return GANTRY_OK;
}

/* ---- after, with, apart ---- */

static gantry_status postpone(gy_reader *r, const gy_json_at *at, const gy_pending *wait)
{
    char pointer[1024];
    gy_pending kept = *wait;
    kept.id = gy_arena_strdup(&r->graph->arena, wait->id);
    kept.pointer = gy_arena_strdup(&r->graph->arena, gy_json_pointer(at, pointer, sizeof pointer));
    return kept.id && kept.pointer && gy_vec_push(&r->pending, kept) ? GANTRY_OK : gy_read_nomem(r);
}

static gantry_status read_tie(gy_reader *r, const gy_json_at *at, gy_pending *wait)
{
    GY_TRY(gy_read_id(r, at, &wait->varied));
    gantry_node other = gantry_graph_find_node(r->graph, r->id.at);
    if (other.id != GANTRY_NONE) {
        wait->tie(r->graph, wait->node, other);
        return gy_read_built(r, at);
    }
    wait->id = r->id.at;
    return postpone(r, at, wait);
}

gantry_status gy_read_ties(gy_reader *r, const gy_json_at *at, gantry_node node,
                           void (*tie)(gantry_graph *, gantry_node, gantry_node))
{
    gantry_status status = GANTRY_OK;
    gy_pending wait = { .node = node, .tie = tie };
    if (!json_is_array(at->value))
        return json_is_string(at->value) ? read_tie(r, at, &wait) : gy_read_kind(r, at, "an id or an array of ids");
    for (size_t i = 0; i < json_array_size(at->value) && !status; i++) {
        gy_json_at item = gy_read_item(at, i);
        status = read_tie(r, &item, &wait);
    }
    return status;
}

/* All ids as they are written in `nodes`, also of nodes that a `for` or `if` makes none of. */
static bool collect_written(gy_reader *r, const json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *element = json_array_get(nodes, i);
        const char *id = json_string_value(json_object_get(element, "id"));
        if ((id && gy_names_add(&r->written, id, NULL) == GY_NO_NAME) ||
            !collect_written(r, json_object_get(element, "nodes")))
            return false;
    }
    return true;
}

/* Naming a family of none is no mistake. */
static gantry_status find_written(gy_reader *r, const gy_json_at *root, const char *id, bool *found)
{
    if (r->written.count == 0 && !collect_written(r, json_object_get(root->value, "nodes")))
        return gy_read_nomem(r);
    *found = gy_names_find(&r->written, id) != GY_NO_NAME;
    return GANTRY_OK;
}

static gantry_status place_pending(gy_reader *r, const gy_pending *wait)
{
    int line, column;
    gy_json_locate(r->text, r->length, wait->pointer, &line, &column);
    gy_error_locate(&r->error, r->name, line, column);
    return r->error.status;
}

static gantry_status fail_pending(gy_reader *r, const gy_pending *wait)
{
    gy_near near = { 0 };
    const gy_names *names = &r->graph->node_names;
    for (uint32_t i = 0; i < names->count && names->count < 100000; i++)
        gy_near_offer(&near, wait->id, gy_names_at(names, i));
    for (uint32_t i = 0; i < r->families.count; i++)
        gy_near_offer(&near, wait->id, gy_names_at(&r->families, i));
    if (near.best) {
        (void)gy_fail(&r->error, GANTRY_E_GRAPH, wait->pointer, "no node \"%s\" (did you mean \"%s\"?)", wait->id,
                      near.best);
    } else {
        (void)gy_fail(&r->error, GANTRY_E_GRAPH, wait->pointer, "no node \"%s\"", wait->id);
    }
    return place_pending(r, wait);
}

static void tie_one(gy_reader *r, const gy_pending *wait, uint32_t node)
{
    int64_t most = gy_graph_most_uses(r->graph, r->graph->nodes.count);
    if (++r->ties > most) {
        gy_graph_mistake(r->graph, GANTRY_E_GRAPH,
                         "with all \"%s\", the nodes name others in more than %" PRId64
                         " places, the limit of a graph: name fewer, or raise the limit (--limits)",
                         wait->id, most);
    } else {
        wait->tie(r->graph, wait->node, (gantry_node){ .id = node });
    }
}

static void tie_family(gy_reader *r, const gy_pending *wait, uint32_t family)
{
    for (uint32_t n = r->family.at[family].first; n != GY_NONE && !r->graph->error.status; n = r->sibling.at[n])
        tie_one(r, wait, n);
}

/* All nodes of the uses of that id. */
static void tie_used(gy_reader *r, const gy_pending *wait, uint32_t used)
{
    for (uint32_t i = r->use_of.at[used].first; i != GY_NONE; i = r->use_span.at[i].next)
        for (uint32_t n = r->use_span.at[i].first; n < r->use_span.at[i].last && !r->graph->error.status; n++)
            tie_one(r, wait, n);
}

/* Ids that are written, of families, have no prefix. */
static const char *written_id(const gy_reader *r, const gy_pending *wait)
{
    return wait->id + (r->scope ? strlen(r->scope->prefix) : 0);
}

static gantry_status settle(gy_reader *r, const gy_json_at *root, const gy_pending *wait)
{
    gantry_node other = gantry_graph_find_node(r->graph, wait->id);
    uint32_t family = wait->varied ? GY_NO_NAME : gy_names_find(&r->families, written_id(r, wait));
    uint32_t used = gy_names_find(&r->used, wait->id);
    used = used == GY_NO_NAME && !wait->varied ? gy_names_find(&r->used, written_id(r, wait)) : used;
    if (other.id != GANTRY_NONE) {
        wait->tie(r->graph, wait->node, other);
    } else if (family != GY_NO_NAME) {
        tie_family(r, wait, family);
    } else if (used != GY_NO_NAME) {
        tie_used(r, wait, used);
    } else {
        bool found = false;
        gantry_status status = wait->varied ? GANTRY_OK : find_written(r, root, written_id(r, wait), &found);
        return status || found ? status : fail_pending(r, wait);
    }
    if (!r->graph->error.status)
        return GANTRY_OK;
    gy_read_mistake(r);
    return place_pending(r, wait);
}

gantry_status gy_read_pending(gy_reader *r, const gy_json_at *root)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; i < r->pending.count && !status; i++) {
        gy_graph_set_use(r->graph, r->scope ? r->scope->use : NULL);
        gy_graph_set_origin(r->graph, r->pending.at[i].pointer);
        status = settle(r, root, &r->pending.at[i]);
    }
    return status;
}
