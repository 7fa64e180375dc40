/* SPDX-License-Identifier: Apache-2.0 */
/* One node: which kind it is, and what only that kind has. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

#define KEY(k) (UINT64_C(1) << GY_KEY_##k) /* there are more than 32 keys */

/* The kinds by the key that makes them, and the keys beyond those of all nodes that go with it. */
static const struct kind {
    gy_node_key key;
    uint64_t with;
} kinds[] = {
    { GY_KEY_KERNEL, KEY(ARGS) | KEY(ACCESS) | KEY(READS) | KEY(WRITES) },
    { GY_KEY_HOST, KEY(ARGS) | KEY(ACCESS) | KEY(READS) | KEY(WRITES) },
    { GY_KEY_MAP, KEY(ARGS) },
    { GY_KEY_REDUCE, KEY(ARGS) | KEY(ACCESS) },
    { GY_KEY_WORK, KEY(READS) | KEY(WRITES) },
    { GY_KEY_COPY, 0 },
    { GY_KEY_FILL, 0 },
    { GY_KEY_COLLECTIVE, KEY(OP) | KEY(IN) | KEY(OUT) | KEY(ROOT) | KEY(ALGORITHM) },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const uint64_t some =
    KEY(ARGS) | KEY(ACCESS) | KEY(READS) | KEY(WRITES) | KEY(OP) | KEY(IN) | KEY(OUT) | KEY(ROOT) | KEY(ALGORITHM);

static gantry_status refuse_key(gy_reader *r, const gy_json_at *at, const struct kind *kind, unsigned key,
                                const json_t *value)
{
    gy_json_at member = gy_read_at(at, gy_node_keys[key], value);
    gy_text takes = { 0 };
    for (unsigned k = 0; k < GY_KEYS; k++)
        if (UINT64_C(1) << k & kind->with)
            gy_text_printf(&takes, "%s%s", takes.length ? ", " : "it takes ", gy_node_keys[k]);
    gantry_status status =
        takes.failed ? gy_read_nomem(r)
                     : gy_read_fail(r, &member, "a \"%s\" node has no \"%s\"; %s", gy_node_keys[kind->key],
                                    gy_node_keys[key], takes.at ? takes.at : "all that it takes is in that key");
    gy_text_free(&takes);
    return status;
}

static gantry_status find_kind(gy_reader *r, const gy_json_at *at, const json_t *const *value, const struct kind **out)
{
    const struct kind *found = NULL;
    for (size_t i = 0; i < KINDS; i++) {
        if (value[kinds[i].key] && found) {
            gy_json_at second = gy_read_at(at, gy_node_keys[kinds[i].key], value[kinds[i].key]);
            return gy_read_fail(r, &second, "a node is either \"%s\" or \"%s\": make two nodes",
                                gy_node_keys[found->key], gy_node_keys[kinds[i].key]);
        }
        found = value[kinds[i].key] ? &kinds[i] : found;
    }
    if (!found)
        return gy_read_fail(
            r, at, "the node does nothing: give one of kernel, host, map, reduce, work, copy, fill, collective");
    for (unsigned k = 0; k < GY_KEYS; k++)
        if (value[k] && (UINT64_C(1) << k & some) && !(UINT64_C(1) << k & found->with))
            return refuse_key(r, at, found, k, value[k]);
    *out = found;
    return GANTRY_OK;
}

/* ---- the kinds ---- */

typedef gantry_node (*kernel_call)(gantry_graph *, const char *, const char *);

static gantry_status add_kernel(gy_reader *r, const gy_json_at *at, kernel_call call, gantry_node *node)
{
    const char *name = NULL;
    GY_TRY(gy_read_string(r, at, "the name of a kernel", &name));
    *node = call(r->graph, r->id.at, name);
    return gy_read_built(r, at);
}

/* {"y": "sqrt(x) * s + 1", ...}: the same for all turns of a block. */
static gantry_status read_formulas(gy_reader *r, const gy_json_at *at, bool reduces, const gy_maths **out)
{
    gantry_error inner;
    const char *wanted = reduces ? "an object of formulas such as {\"s\": \"sum(x)\"}"
                                 : "an object of formulas such as {\"y\": \"sqrt(x) + 1\"}";
    gy_maths *maths = gy_read_known(r, at->value);
    *out = maths;
    if (maths)
        return GANTRY_OK;
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, wanted);
    if (json_object_size(at->value) == 0)
        return gy_read_fail(r, at, "has no formula: give one or several such as {\"y\": \"sqrt(x) + 1\"}");
    *out = maths = gy_arena_calloc(&r->graph->arena, 1, sizeof *maths);
    if (!maths)
        return gy_read_nomem(r);
    maths->reduces = reduces;
    json_t *object = gy_read_open(at->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gy_json_at member = gy_read_at(at, json_object_iter_key(i), json_object_iter_value(i));
        const char *text;
        GY_TRY(gy_read_string(r, &member, "a formula such as \"sqrt(x) + 1\"", &text));
        gantry_status status = gy_maths_add(maths, &r->graph->arena, member.key, text, GANTRY_E_GRAPH, NULL, &inner);
        if (status)
            return status == GANTRY_E_NOMEM ? gy_read_nomem(r) : gy_read_fail(r, &member, "%s", inner.text);
    }
    return gy_read_remember(r, at->value, maths);
}

static gantry_status add_map(gy_reader *r, const gy_json_at *at, bool reduces, gantry_node *node)
{
    const gy_maths *maths;
    GY_TRY(read_formulas(r, at, reduces, &maths));
    *node = gy_graph_map_with(r->graph, r->id.at, maths);
    return gy_read_built(r, at);
}

static gantry_status add_work(gy_reader *r, const gy_json_at *at, gantry_node *node)
{
    if (!json_is_object(at->value))
        return gy_read_kind(r, at, "{}");
    if (json_object_size(at->value) > 0)
        return gy_read_fail(
            r, at,
            "\"work\" is {}, and has no keys: what it takes is the node's, \"cost\": {\"time_us\": 10} or "
            "{\"flops\": 1e9, \"bytes\": 1e6}");
    *node = gantry_graph_work(r->graph, r->id.at);
    return gy_read_built(r, at);
}

static gantry_status add_copy(gy_reader *r, const gy_json_at *at, gantry_node *node)
{
    static const char *const names[] = { "from", "to" };
    const json_t *value[2];
    gantry_region region[2];
    gantry_status status = gy_read_members(r, at, names, 2, value);
    for (size_t i = 0; i < 2 && !status; i++) {
        gy_json_at member = gy_read_at(at, names[i], value[i]);
        status = gy_read_region(r, &member, &region[i]);
    }
    if (status)
        return status;
    *node = gantry_graph_copy(r->graph, r->id.at, region[0], region[1]);
    return gy_read_built(r, at);
}

enum { TO, VALUE, RANDOM, NORMAL, IOTA, FILL_KEYS };
static const char *const fill_keys[] = { "to", "value", "random", "normal", "iota" };

static gantry_status read_fill(gy_reader *r, const gy_json_at *at, const json_t *const *value, gy_init *out)
{
    size_t which = 0;
    for (size_t i = VALUE; i < FILL_KEYS; i++) {
        if (value[i] && which) {
            gy_json_at second = gy_read_at(at, fill_keys[i], value[i]);
            return gy_read_fail(r, &second, "a fill has either \"%s\" or \"%s\"", fill_keys[which], fill_keys[i]);
        }
        which = value[i] ? i : which;
    }
    if (!which)
        return gy_read_fail(r, at, "does not say with what: give one of value, random, normal, iota");
    gy_json_at member = gy_read_at(at, fill_keys[which], value[which]);
    if (which == VALUE) {
        *out = (gy_init){ .kind = GY_INIT_VALUE };
        return gy_read_constant(r, &member, &out->a);
    }
    return gy_read_generator(r, &member, out);
}

static gantry_status add_fill(gy_reader *r, const gy_json_at *at, gantry_node *node)
{
    const json_t *value[FILL_KEYS];
    gantry_region region;
    gy_init what;
    GY_TRY(gy_read_members(r, at, fill_keys, FILL_KEYS, value));
    gy_json_at to = gy_read_at(at, fill_keys[TO], value[TO]);
    GY_TRY(gy_read_region(r, &to, &region));
    GY_TRY(read_fill(r, at, value, &what));
    *node = gy_graph_fill_with(r->graph, r->id.at, region, &what);
    return gy_read_built(r, at);
}

/* ---- collectives ---- */

static gantry_status read_collective_kind(gy_reader *r, const gy_json_at *at, gantry_collective *kind)
{
    const char *words[GANTRY_ALL_TO_ALL];
    size_t i = 0;
    for (size_t k = 0; k < COUNT(words); k++)
        words[k] = gantry_collective_name((gantry_collective)(GANTRY_ALL_REDUCE + k));
    gantry_status status = gy_read_word(r, at, "collective", words, COUNT(words), &i);
    *kind = (gantry_collective)(GANTRY_ALL_REDUCE + i);
    return status;
}

static gantry_status read_op(gy_reader *r, const gy_json_at *at, gantry_access *op)
{
    static const char *const words[] = { "sum", "min", "max", "prod" };
    size_t i = 0;
    gantry_status status = gy_read_word(r, at, "reduction", words, COUNT(words), &i);
    *op = (gantry_access)(GANTRY_SUM + i);
    return status;
}

static gantry_status read_ranks(gy_reader *r, const gy_json_at *up, const json_t *const *value, gy_node_key key,
                                gy_list *list)
{
    gy_json_at at = gy_read_at(up, gy_node_keys[key], value[key]);
    list->count = 0;
    return gy_read_list(r, &at, GANTRY_READ, false, list);
}

/* The regions of a list as the building calls want them; the list keeps room for its count of them. */
static gantry_region *regions_of(gy_reader *r, const gy_list *list)
{
    gantry_region *region = gy_alloc((list->count + 1) * sizeof *region);
    for (size_t i = 0; region && i < list->count; i++)
        region[i] = list->at[i].region;
    if (!region)
        (void)gy_read_nomem(r);
    return region;
}

static gantry_status build_collective(gy_reader *r, gantry_collective kind, gantry_access op, int root,
                                      gantry_node *node)
{
    gantry_region *in = regions_of(r, &r->in), *out = in ? regions_of(r, &r->out) : NULL;
    if (out)
        *node = gantry_graph_collective(r->graph, r->id.at, kind, op, r->in.count, in, r->out.count, out, root);
    bool built = out != NULL;
    gy_free(in);
    gy_free(out);
    return built ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status add_collective(gy_reader *r, const gy_json_at *up, const json_t *const *value, gantry_node *node)
{
    gantry_collective kind;
    gantry_access op = (gantry_access)0;
    int64_t root = 0;
    gy_json_at at = gy_read_at(up, "collective", value[GY_KEY_COLLECTIVE]),
               op_at = gy_read_at(up, "op", value[GY_KEY_OP]), root_at = gy_read_at(up, "root", value[GY_KEY_ROOT]);
    gantry_status status = read_collective_kind(r, &at, &kind);
    if (!status && value[GY_KEY_OP]) {
        status = read_op(r, &op_at, &op);
    } else if (!status && (kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE || kind == GANTRY_REDUCE_SCATTER)) {
        status = gy_read_fail(r, up, "missing key \"op\": %s takes one of sum, min, max, prod",
                              gantry_collective_name(kind));
    }
    if (!status && value[GY_KEY_ROOT])
        status = gy_read_bounded(r, &root_at, "the rank of the root", 0, INT32_MAX, &root);
    if (!status)
        status = read_ranks(r, up, value, GY_KEY_IN, &r->in);
    if (!status)
        status = read_ranks(r, up, value, GY_KEY_OUT, &r->out);
    if (!status)
        status = build_collective(r, kind, op, (int)root, node);
    return status ? status : gy_read_built(r, &at);
}

static gantry_status read_algorithm(gy_reader *r, const gy_json_at *up, const json_t *value, gantry_node node)
{
    const char *name = NULL;
    gy_json_at at = gy_read_at(up, "algorithm", value);
    GY_TRY(gy_read_string(r, &at, "the name of an algorithm, such as \"auto\"", &name));
    gantry_node_algorithm(r->graph, node, name);
    return gy_read_built(r, &at);
}

/* ---- all of it ---- */

static gantry_status add_node(gy_reader *r, const gy_json_at *up, const json_t *const *value, gy_node_key key,
                              gantry_node *node)
{
    gy_json_at at = gy_read_at(up, gy_node_keys[key], value[key]);
    switch (key) {
    case GY_KEY_KERNEL:
        return add_kernel(r, &at, gantry_graph_kernel, node);
    case GY_KEY_HOST:
        return add_kernel(r, &at, gy_graph_host_kernel, node);
    case GY_KEY_MAP:
    case GY_KEY_REDUCE:
        return add_map(r, &at, key == GY_KEY_REDUCE, node);
    case GY_KEY_WORK:
        return add_work(r, &at, node);
    case GY_KEY_COPY:
        return add_copy(r, &at, node);
    case GY_KEY_FILL:
        return add_fill(r, &at, node);
    default:
        return add_collective(r, up, value, node);
    }
}

static gantry_status read_rest(gy_reader *r, const gy_json_at *at, const json_t *const *value, gy_node_key key,
                               gantry_node node)
{
    gantry_status status = GANTRY_OK;
    if (key == GY_KEY_KERNEL || key == GY_KEY_HOST || key == GY_KEY_MAP || key == GY_KEY_REDUCE)
        status = gy_read_args(r, at, value, node);
    if (!status && (value[GY_KEY_READS] || value[GY_KEY_WRITES]))
        status = gy_read_accesses(r, at, value, node);
    if (!status && value[GY_KEY_ALGORITHM])
        status = read_algorithm(r, at, value[GY_KEY_ALGORITHM], node);
    status = status ? status : gy_read_attributes(r, at, value, node);
    return status ? status : gy_read_node_when(r, at, value[GY_KEY_WHEN], node);
}

static gantry_status read_kind(gy_reader *r, const gy_json_at *at, const json_t *const *value, gy_node_key key)
{
    gantry_node node = { .id = GANTRY_NONE };
    gy_read_origin(r, at);
    GY_TRY(add_node(r, at, value, key, &node));
    if (r->index.count > 0)
        GY_TRY(gy_read_family(r, json_string_value(value[GY_KEY_ID]), node));
    return read_rest(r, at, value, key, node);
}

gantry_status gy_read_node(gy_reader *r, const gy_json_at *at, const json_t *const *value)
{
    const struct kind *kind = NULL;
    bool varied = false;
    gy_json_at id = gy_read_at(at, "id", value[GY_KEY_ID]);
    GY_TRY(find_kind(r, at, value, &kind));
    GY_TRY(gy_read_id(r, &id, &varied));
    if (gy_names_find(&r->graph->node_names, r->id.at) != GY_NO_NAME) {
        return gy_read_fail(r, &id, "the id \"%s\" is taken by an earlier node: ids are unique%s", r->id.at,
                            r->index.count > 0 ? ", so write the index into it: \"name[i]\"" : "");
    }
    if (r->graph->nodes.count >= (uint64_t)gy_read_limit(r)) {
        return gy_read_fail(r, at,
                            "is beyond the limit of %" PRId64 " nodes: make fewer, or raise the limit (--limits)",
                            gy_read_limit(r));
    }
    const gantry_region *around = r->when;
    gantry_region flag;
    if (value[GY_KEY_WHEN]) { /* ahead of the node, since it may add some */
        GY_TRY(gy_read_when(r, at, value[GY_KEY_WHEN], r->id.at, &flag));
        r->when = &flag;
    }
    gantry_status status = read_kind(r, at, value, kind->key);
    r->when = around;
    return status;
}
