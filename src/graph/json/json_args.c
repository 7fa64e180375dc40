/* SPDX-License-Identifier: Apache-2.0 */
/* `args` and `access` of kernel and host nodes. */
#include "graph/json/json_read.h"

#include "base/error.h"

#include <string.h>

typedef struct call {
    gantry_node node;
    const gantry_kernel *kernel;
    const gy_maths *maths;    /* of a map node: its arguments are regions or numbers, as they are given */
    const gy_json_at *access; /* the member `access`; its value is NULL without one */
} call;

gantry_status gy_read_access(gy_reader *r, const gy_json_at *at, gantry_access *out)
{
    static const char *const words[] = { "read", "write", "readwrite", "sum", "min", "max", "prod" };
    size_t i = 0;
    gantry_status status = gy_read_word(r, at, "access", words, COUNT(words), &i);
    *out = (gantry_access)(GANTRY_READ + i);
    return status;
}

/* The building call knows how to say what the kernel does take. */
static gantry_status fail_arg(gy_reader *r, const gy_json_at *at, const call *c)
{
    gantry_node_scalar(r->graph, c->node, at->key, 0);
    return gy_read_built(r, at);
}

/* {"dynamic": number}: may be changed between starts. */
static gantry_status read_dynamic(gy_reader *r, const gy_json_at *at, const call *c)
{
    static const char *const names[] = { "dynamic" };
    const json_t *value[1];
    gy_constant number = { 0 };
    gantry_status status = gy_read_members(r, at, names, 1, value);
    if (status)
        return status;
    gy_json_at member = gy_read_at(at, "dynamic", value[0]);
    status =
        member.value ? gy_read_constant(r, &member, &number) : gy_read_kind(r, &member, "the number it begins with");
    if (status)
        return status;
    gy_node_scalar_constant(r->graph, c->node, at->key, number, true);
    return gy_read_built(r, at);
}

static gantry_status read_scalar(gy_reader *r, const gy_json_at *at, const call *c)
{
    gy_constant number = { 0 };
    const gy_expr *expr = NULL;
    if (json_is_object(at->value))
        return read_dynamic(r, at, c);
    GY_TRY(gy_read_scalar(r, at, &number, &expr));
    if (expr)
        gy_node_scalar_expr(r->graph, c->node, at->key, expr, false);
    else
        gy_node_scalar_constant(r->graph, c->node, at->key, number, false);
    return gy_read_built(r, at);
}

static gantry_status read_region(gy_reader *r, const gy_json_at *at, const call *c)
{
    gantry_region region;
    gantry_access access;
    gantry_status status = gy_read_region(r, at, &region);
    if (status)
        return status;
    gy_json_at chosen = gy_json_key(c->access, at->key);
    if (!chosen.value) {
        gantry_node_arg(r->graph, c->node, at->key, region);
        return gy_read_built(r, at);
    }
    status = gy_read_access(r, &chosen, &access);
    if (status)
        return status;
    gantry_node_arg_as(r->graph, c->node, at->key, region, access);
    return gy_read_built(r, r->graph->error.status ? &chosen : at);
}

/* The name that a text begins with is that of a buffer, or has behind it what only references have. */
static gantry_status find_reference(gy_reader *r, const json_t *value, bool *is_reference)
{
    gantry_buffer found;
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    text += strspn(text, " ");
    text += strncmp(text, "clamp(", 6) == 0 ? 6 : 0;
    size_t length = gy_name_length(text);
    const char *behind = text + length + strspn(text + length, " ");
    *is_reference = length > 0 && *behind && strchr("[{~", *behind);
    if (*is_reference || (*behind != '\0' && *behind != ')'))
        return GANTRY_OK;
    GY_TRY(gy_read_find_buffer(r, text, length, &found));
    *is_reference = found.id != GANTRY_NONE;
    return GANTRY_OK;
}

static gantry_status read_arg(gy_reader *r, const gy_json_at *at, const call *c)
{
    int i = gy_kernel_find_arg(c->kernel, at->key);
    if (i < 0)
        return fail_arg(r, at, c);
    bool is_number = c->kernel->arg[i].scalar, is_reference = false;
    if (c->maths) {
        GY_TRY(find_reference(r, at->value, &is_reference));
        is_number = !c->maths->is_written[i] && !is_reference;
    }
    return is_number ? read_scalar(r, at, c) : read_region(r, at, c);
}

/* Every entry of `access` must be about an argument that is given as a region. */
static gantry_status check_access(gy_reader *r, const gy_json_at *args, const call *c)
{
    if (!json_is_object(c->access->value))
        return gy_read_kind(r, c->access, "an object such as {\"c\": \"sum\"}");
    json_t *object = gy_read_open(c->access->value);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gy_json_at at = gy_read_at(c->access, json_object_iter_key(i), json_object_iter_value(i));
        int arg = gy_kernel_find_arg(c->kernel, at.key);
        if (arg < 0)
            return fail_arg(r, &at, c);
        if (c->kernel->arg[arg].scalar)
            return gy_read_fail(r, &at, "\"%s\" is a number: only buffers are accessed", at.key);
        if (!args->value || !json_object_get(args->value, at.key))
            return gy_read_fail(r, &at, "\"%s\" is not among the args of this node", at.key);
    }
    return GANTRY_OK;
}

gantry_status gy_read_args(gy_reader *r, const gy_json_at *at, const json_t *const *value, gantry_node node)
{
    gy_json_at args = gy_read_at(at, "args", value[GY_KEY_ARGS]),
               access = gy_read_at(at, "access", value[GY_KEY_ACCESS]);
    const gy_kernel *kernel = &r->graph->kernels.at[r->graph->nodes.at[node.id].kernel];
    call c = { node, kernel->manifest, kernel->maths, &access };
    if (args.value && !json_is_object(args.value))
        return gy_read_kind(r, &args, "an object of arguments such as {\"x\": \"x[i]\"}");
    gantry_status status = access.value ? check_access(r, &args, &c) : GANTRY_OK;
    json_t *object = gy_read_open(args.value);
    for (void *i = json_object_iter(object); i && !status; i = json_object_iter_next(object, i)) {
        gy_json_at arg = gy_read_at(&args, json_object_iter_key(i), json_object_iter_value(i));
        status = read_arg(r, &arg, &c);
    }
    return status;
}
