/* SPDX-License-Identifier: Apache-2.0 */
/* Building: arguments of kernels, by name. */
#include "graph/build/build_state.h"
#include "graph/nest.h"
#include "maths/maths.h"
#include <string.h>

/* ---- finding ---- */

/* The thing that has arguments: the kernel, or the node where the graph has made the kernel. */
static const char *owner_of(const gantry_graph *g, const gy_node *node, const char **sort)
{
    bool is_made = g->kernels.at[node->kernel].maths;
    *sort = is_made ? "node" : "kernel";
    return is_made ? node->id : g->kernels.at[node->kernel].manifest->name;
}

static void say_unknown(gantry_graph *g, const gy_node *node, const char *name)
{
    const gantry_kernel *k = g->kernels.at[node->kernel].manifest;
    const char *sort, *owner = owner_of(g, node, &sort);
    gy_near near = { 0 };
    gy_text all = { 0 };
    for (int i = 0; i < k->args; i++) {
        gy_near_offer(&near, name, k->arg[i].name);
        gy_text_printf(&all, "%s%s", i ? ", " : "", k->arg[i].name);
    }
    if (near.best) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s \"%s\" has no argument \"%s\" (did you mean \"%s\"?)", sort, owner,
                         name, near.best);
    } else {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s \"%s\" has no argument \"%s\"; it has %s", sort, owner, name,
                         all.at ? all.at : "none");
    }
    gy_text_free(&all);
}

/* Index of the argument, or -1 with the mistake noted. */
static int find_arg(gantry_graph *g, const gy_node *node, const char *name, bool scalar)
{
    if (node->kernel == GY_NONE) {
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "node \"%s\" has no kernel, so it has no argument \"%s\"; use gantry_node_read and the like",
                         node->id, name ? name : "");
        return -1;
    }
    const gantry_kernel *k = g->kernels.at[node->kernel].manifest;
    int arg = name ? gy_kernel_find_arg(k, name) : -1;
    if (arg < 0) {
        say_unknown(g, node, name ? name : "");
        return -1;
    }
    const gy_maths *maths = g->kernels.at[node->kernel].maths;
    if (maths && scalar && maths->is_written[arg]) {
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "argument \"%s\" of node \"%s\" is given by a formula, so it is a region of a buffer, not a "
                         "number",
                         name, node->id);
        return -1;
    }
    if (!maths && !k->arg[arg].scalar != !scalar) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "argument \"%s\" of kernel \"%s\" is %s, not %s", name, k->name,
                         scalar ? "a region of a buffer" : "a number", scalar ? "a number" : "a region of a buffer");
        return -1;
    }
    return arg;
}

static bool is_given(const gantry_graph *g, const gy_node *node, uint32_t arg)
{
    for (uint32_t i = 0; i < node->accesses; i++)
        if (g->access.at[node->access + i].arg == arg)
            return true;
    for (uint32_t i = 0; i < node->scalars; i++)
        if (g->scalar.at[node->scalar + i].arg == arg)
            return true;
    uint64_t ignored;
    return gy_map_get(&g->build_->late_args, (uint64_t)(node - g->nodes.at) << 32 | arg, &ignored);
}

/* Notes that the argument is given now; a mistake if it was already. */
static bool give_arg(gantry_graph *g, const gy_node *node, uint32_t arg)
{
    if (is_given(g, node, arg)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "argument \"%s\" of node \"%s\" is given twice",
                         g->kernels.at[node->kernel].manifest->arg[arg].name, node->id);
        return false;
    }
    bool late = &g->nodes.at[g->nodes.count - 1] != node;
    if (late && !gy_map_put(&g->build_->late_args, (uint64_t)(node - g->nodes.at) << 32 | arg, 1)) {
        gy_build_nomem(g);
        return false;
    }
    return true;
}

/* ---- regions ---- */

/* The reduction that a result of formulas would have to be to take the access; "" where no formula makes it one. */
static const char *reduction_of(const gantry_graph *g, const gy_node *node, gantry_access access)
{
    if (!g->kernels.at[node->kernel].maths)
        return "";
    return access == GANTRY_SUM   ? ", which is for a result that is sum(...) of a \"reduce\" node"
           : access == GANTRY_MIN ? ", which is for a result that is min(...) or all(...) of a \"reduce\" node"
           : access == GANTRY_MAX ? ", which is for a result that is max(...) or any(...) of a \"reduce\" node"
                                  : "";
}

static bool is_access_allowed(gantry_graph *g, const gy_node *node, const gantry_kernel_arg *a, gantry_access access)
{
    const char *sort, *owner = owner_of(g, node, &sort);
    uint32_t allowed = a->accesses ? a->accesses : GANTRY_ACCESS_BIT(a->access);
    if (gantry_access_name(access) && (allowed & GANTRY_ACCESS_BIT(access)))
        return true;
    gy_text all = { 0 };
    for (int i = GANTRY_READ; i <= GANTRY_PROD; i++)
        if (allowed & GANTRY_ACCESS_BIT(i))
            gy_text_printf(&all, "%s%s", all.length ? ", " : "", gantry_access_name((gantry_access)i));
    const char *name = gantry_access_name(access);
    gy_graph_mistake(g, GANTRY_E_GRAPH, "argument \"%s\" of %s \"%s\" does not take access \"%s\"%s; allowed: %s",
                     a->name, sort, owner, name ? name : "?", reduction_of(g, node, access), all.at ? all.at : "");
    gy_text_free(&all);
    return false;
}

static bool is_dtype_allowed(gantry_graph *g, const gy_node *node, const gantry_kernel_arg *a, const gy_buffer *b)
{
    const char *sort, *owner = owner_of(g, node, &sort);
    uint32_t allowed = a->dtypes ? a->dtypes : GY_USUAL_DTYPES;
    if (allowed & GANTRY_DTYPE_BIT(b->dtype))
        return true;
    gy_text all = { 0 };
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++)
        if (allowed & GANTRY_DTYPE_BIT(i))
            gy_text_printf(&all, "%s%s", all.length ? ", " : "", gantry_dtype_name((gantry_dtype)i));
    gy_graph_mistake(g, GANTRY_E_GRAPH, "argument \"%s\" of %s \"%s\" cannot be \"%s\", which is %s; allowed: %s",
                     a->name, sort, owner, b->name, gantry_dtype_name(b->dtype), all.at ? all.at : "");
    gy_text_free(&all);
    return false;
}

static void set_region(gantry_graph *g, gantry_node handle, const char *name, gantry_region region,
                       gantry_access access)
{
    gy_node *node = gy_building(g) ? gy_build_node(g, handle) : NULL;
    int arg = node ? find_arg(g, node, name, false) : -1;
    const gy_buffer *b = arg < 0 ? NULL : gy_build_buffer(g, region.buffer);
    if (!b)
        return;
    const gantry_kernel_arg *a = &g->kernels.at[node->kernel].manifest->arg[arg];
    access = access ? access : a->access;
    if (is_access_allowed(g, node, a, access) && is_dtype_allowed(g, node, a, b) && give_arg(g, node, (uint32_t)arg))
        gy_build_access(g, node, region, access, (uint32_t)arg, a->list && b->tiles[0]);
}

void gantry_node_arg(gantry_graph *graph, gantry_node node, const char *name, gantry_region region)
{
    set_region(graph, node, name, region, (gantry_access)0);
}

void gantry_node_arg_as(gantry_graph *graph, gantry_node node, const char *name, gantry_region region,
                        gantry_access access)
{
    if (gy_building(graph) && !gantry_access_name(access))
        gy_graph_mistake(graph, GANTRY_E_INVALID, "access %d is none; use GANTRY_READ to GANTRY_PROD", (int)access);
    set_region(graph, node, name, region, access);
}

/* ---- scalars ---- */

static void push_scalar(gantry_graph *g, gy_node *node, gy_scalar scalar)
{
    gy_build *b = g->build_;
    bool ok;
    if (node->scalars == 0 || node->scalar + node->scalars == g->scalar.count) {
        if (node->scalars == 0)
            node->scalar = (uint32_t)g->scalar.count;
        ok = g->scalar.count < UINT32_MAX - 1 && gy_vec_push(&g->scalar, scalar);
        node->scalars += ok;
    } else {
        gy_late_scalar late = { (uint32_t)(node - g->nodes.at), scalar };
        ok = gy_vec_push(&b->late_scalar, late);
    }
    if (!ok)
        gy_build_nomem(g);
}

static void set_scalar(gantry_graph *g, gantry_node handle, const char *name, gy_scalar scalar)
{
    gy_node *node = gy_building(g) ? gy_build_node(g, handle) : NULL;
    int arg = node ? find_arg(g, node, name, true) : -1;
    if (arg >= 0 && give_arg(g, node, (uint32_t)arg)) {
        scalar.arg = (uint32_t)arg;
        push_scalar(g, node, scalar);
    }
}

void gy_node_scalar_constant(gantry_graph *graph, gantry_node node, const char *name, gy_constant value, bool dynamic)
{
    set_scalar(graph, node, name, (gy_scalar){ .number = value, .dynamic = dynamic });
}

void gantry_node_scalar(gantry_graph *graph, gantry_node node, const char *name, double value)
{
    gy_node_scalar_constant(graph, node, name, (gy_constant){ .real = value }, false);
}

void gantry_node_scalar_dynamic(gantry_graph *graph, gantry_node node, const char *name, double value)
{
    gy_node_scalar_constant(graph, node, name, (gy_constant){ .real = value }, true);
}

void gantry_node_scalar_expr(gantry_graph *graph, gantry_node node, const char *name, const char *expr)
{
    const gy_expr *parsed = NULL;
    gantry_error err;
    if (!gy_building(graph) || !gy_build_node(graph, node))
        return;
    if (!name || !expr) {
        gy_graph_mistake(graph, GANTRY_E_INVALID, "argument \"%s\" has no %s; pass a text", name ? name : "",
                         name ? "expression" : "name");
        return;
    }
    gantry_status status = gy_expr_parse(&parsed, &graph->arena, expr, strlen(expr), GANTRY_E_GRAPH, NULL, &err);
    if (status == GANTRY_E_NOMEM)
        gy_build_nomem(graph);
    else if (status)
        gy_graph_mistake(graph, status, "argument \"%s\": %s", name, err.text);
    else
        gy_node_scalar_expr(graph, node, name, parsed, false);
}

typedef struct loop_names {
    const gantry_graph *graph;
    const gy_node *node;
    const char *other; /* a name that is none */
} loop_names;

static bool is_iteration(void *context, const char *name)
{
    loop_names *n = context;
    return n->node && gy_node_index(n->graph, n->node, 0, name, NULL);
}

static bool is_like_iteration(void *context, const char *name)
{
    loop_names *n = context;
    bool known = strcmp(name, "it") == 0 || is_iteration(context, name);
    n->other = known ? n->other : name;
    return known;
}

static bool no_names(void *context, const char *name)
{
    (void)context;
    (void)name;
    return false;
}

bool gy_build_no_name(void *context, const char *name, int64_t *integer, double *real, bool *is_real)
{
    (void)context;
    (void)name;
    (void)integer;
    (void)real;
    (void)is_real;
    return false;
}

void gy_node_scalar_expr(gantry_graph *graph, gantry_node node, const char *name, const gy_expr *expr, bool dynamic)
{
    if (!gy_building(graph))
        return;
    loop_names names = { graph, node.id < graph->nodes.count ? &graph->nodes.at[node.id] : NULL, NULL };
    gantry_error err;
    gy_scalar scalar = { .dynamic = dynamic, .expr = expr };
    if (!gy_expr_names(expr, is_like_iteration, &names)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "argument \"%s\" uses \"%s\"; params, indices and `it` are known here",
                         name, names.other);
        return;
    }
    if (gy_expr_names(expr, no_names, NULL)) {
        scalar.expr = NULL;
        gantry_status status = gy_constant_evaluate(&scalar.number, expr, gy_build_no_name, NULL, GANTRY_E_GRAPH, &err);
        if (status) {
            gy_graph_mistake(graph, status, "argument \"%s\": %s", name, err.text);
            return;
        }
    } else if (names.node && !gy_expr_names(expr, is_iteration, &names)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "argument \"%s\" uses `it`, but node \"%s\" is not inside a repeat%s",
                         name, names.node->id,
                         names.node->loop == GY_NONE ? "" : " that calls its index so; use the name that it has");
        return;
    }
    set_scalar(graph, node, name, scalar);
}
