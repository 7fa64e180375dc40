/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a node as far as the time of its kernel depends on them, as a text. */
#include "graph/graph.h"
#include <string.h>

/* ---- regions ---- */

/* "66x64~1": rows and everything below them, halo included; "0" where there is nothing. */
static void add_shape(gy_text *to, const gy_buffer *b, const gy_access *a)
{
    const int64_t *shape = b->tiles[0] ? NULL : b->shape;
    if (a->first == a->last) {
        gy_text_add(to, "0");
    } else if (!shape) {
        const int64_t *tile = gy_tile_shape(b, a->first);
        for (int32_t i = 0; i < b->rank; i++)
            gy_text_printf(to, "%s%lld", i ? "x" : "", (long long)tile[i]);
    } else {
        gy_text_printf(to, "%lld", (long long)(a->last - a->first));
        for (int32_t i = 1; i < b->rank; i++)
            gy_text_printf(to, "x%lld", (long long)shape[i]);
    }
    if (a->before || a->after)
        gy_text_printf(to, a->before == a->after ? "~%d" : "~%d:%d", a->before, a->after);
}

static bool looks_like(const gantry_graph *g, const gy_access *a, const gy_access *b)
{
    const gy_buffer *x = &g->buffers.at[a->buffer], *y = &g->buffers.at[b->buffer];
    if (!a->is_list || !b->is_list || a->arg != b->arg || a->first == a->last || b->first == b->last)
        return false;
    return x->tiles[0] && y->tiles[0] && x->dtype == y->dtype && gy_tiles_alike(x, a->first, y, b->first);
}

/* The shape, and behind it the name of an argument that the node need not give, an element type that is not the node's,
 * and an access that is not the manifest's. */
static void add_region(gy_text *to, const gantry_graph *g, const gy_node *n, const gy_access *a)
{
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    const gy_buffer *b = &g->buffers.at[a->buffer];
    gantry_access usual = a->arg < (uint32_t)k->args ? k->arg[a->arg].access : GANTRY_READ;
    add_shape(to, b, a);
    if (a->arg < (uint32_t)k->args && k->arg[a->arg].optional)
        gy_text_printf(to, ":%s", k->arg[a->arg].name);
    if (b->dtype != gy_node_dtype(g, n))
        gy_text_printf(to, ":%s", gantry_dtype_name(b->dtype));
    if (gy_access_given(a) != usual)
        gy_text_printf(to, ":%s", gantry_access_name(gy_access_given(a)));
}

/* Tiles of one shape that follow each other in a list are written once, with their number. */
static void add_regions(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    const gy_access *a = gy_vec_from(&g->access, n->access);
    for (uint32_t i = 0, next; i < gy_node_regions(n) && to->length <= GY_CASE_MOST; i = next) {
        next = i + 1;
        while (next < gy_node_regions(n) && looks_like(g, &a[i], &a[next]))
            next++;
        gy_text_add(to, i ? " " : "");
        add_region(to, g, n, &a[i]);
        if (next > i + 1)
            gy_text_printf(to, "*%u", next - i);
    }
}

/* ---- scalars ---- */

static bool differs(void *context, const char *name)
{
    return strcmp(name, context) != 0;
}

static bool has_name(const gy_expr *e, const char *name)
{
    return e && !gy_expr_names(e, differs, (void *)(uintptr_t)name);
}

/* The kernel's costs, or the shape of its launch, follow from it. */
static bool shapes_work(const gy_kernel *k, const char *name)
{
    bool found = has_name(k->flops, name) || has_name(k->bytes, name) || has_name(k->scratch, name);
    for (int i = 0; i < 3 && k->code && !found; i++)
        found = has_name(k->code->grid[i], name) || has_name(k->code->block[i], name);
    return found;
}

/* Does the time depend on the scalar? Not on factors: what elements are multiplied by. */
static bool counts(const gantry_graph *g, const gy_node *n, const gy_scalar *s)
{
    const gy_kernel *k = &g->kernels.at[n->kernel];
    const gantry_kernel_arg *arg = &k->manifest->arg[s->arg];
    if (s->dynamic || s->expr || (arg->optional && s->number.real == arg->fallback))
        return false;
    if (shapes_work(k, arg->name))
        return true;
    if (k->code && k->code->types)
        return !gy_dtype_is_float(k->code->types[s->arg]);
    return arg->scalar != GANTRY_FACTOR && !arg->same;
}

static void add_scalars(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    char number[GY_CONSTANT_TEXT];
    for (uint32_t i = 0; i < n->scalars && to->length <= GY_CASE_MOST; i++) {
        const gy_scalar *s = &g->scalar.at[n->scalar + i];
        if (counts(g, n, s))
            gy_text_printf(to, "%s%s=%s", to->length ? " " : "", g->kernels.at[n->kernel].manifest->arg[s->arg].name,
                           gy_constant_text(number, s->number));
    }
}

bool gy_node_case(gy_text *to, const gantry_graph *graph, const gy_node *node)
{
    to->length = 0;
    if (node->kernel == GY_NONE)
        return false;
    add_regions(to, graph, node);
    add_scalars(to, graph, node);
    return !to->failed && to->length > 0 && to->length <= GY_CASE_MOST;
}
