/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the path is formulas, a kernel with a row in the table, a copy; else it has no adjoint. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

const gy_access *gy_primal_access(const gy_adjoint *a, const gy_primal *p, const char *arg)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[p->node];
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &g->access.at[n->access + i];
        if (p->manifest && x->arg < (uint32_t)p->manifest->args && strcmp(p->manifest->arg[x->arg].name, arg) == 0)
            return x;
    }
    return NULL;
}

const gy_scalar *gy_primal_scalar(const gy_adjoint *a, const gy_primal *p, const char *name)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[p->node];
    for (uint32_t i = 0; i < n->scalars; i++)
        if (strcmp(p->manifest->arg[g->scalar.at[n->scalar + i].arg].name, name) == 0)
            return &g->scalar.at[n->scalar + i];
    return NULL;
}

static const char *const kinds[] = {
    [GY_NODE_KERNEL] = "a kernel", [GY_NODE_LAUNCH] = "a function", [GY_NODE_HOST] = "a function",
    [GY_NODE_COPY] = "a copy",     [GY_NODE_FILL] = "a fill",       [GY_NODE_COLLECTIVE] = "a collective",
    [GY_NODE_WORK] = "work",
};

static gantry_status fail_kind(gy_adjoint *a, uint32_t node)
{
    return gy_node_fail(a->graph, a->err, node,
                        "lies between weights and loss and is %s, which has no adjoint; maps, reductions, copies and "
                        "kernels of the library have one",
                        kinds[a->graph->nodes.at[node].kind]);
}

void gy_kernels_text(gy_text *to, bool (*fits)(const gantry_kernel *kernel))
{
    const gantry_kernel *k;
    for (size_t i = 0; (k = gantry_kernel_at(i)); i++)
        if (fits(k))
            gy_text_printf(to, "%s%s", to->length ? ", " : "", k->name);
}

/* Kernels of the library that have none, by a part of their name, and what to do without them. */
static const struct {
    const char *part, *instead;
} without[] = {
    { "_append", "it is for decoding: use attention" },
    { "_cached", "it is for decoding: use attention" },
    { "_grad", "it is an adjoint itself: write what it computes as maps, reductions and products" },
    { "merge", "use sort or sort_pairs on one buffer with both" },
    { "select", "use a map that multiplies rows by zeros and ones" },
    { "sobel", "use filter2d for each direction, and a map of both" },
};
enum { WITHOUT = sizeof without / sizeof *without };

static gantry_status fail_kernel(gy_adjoint *a, uint32_t node, const gy_kernel *kernel)
{
    const char *instead =
        "give it a formula (\"map\" or \"reduce\"), or use maps, reductions, copies and kernels of the "
        "library";
    for (size_t i = 0; i < WITHOUT && !kernel->code; i++)
        if (strstr(kernel->manifest->name, without[i].part))
            instead = without[i].instead;
    return gy_node_fail(a->graph, a->err, node, "lies between weights and loss, and kernel \"%s\" has no adjoint; %s",
                        kernel->manifest->name, instead);
}

/* ---- formulas of manifests ---- */

/* The shape without the extents of 1 that it begins with is the end of the model's. */
static bool is_end_of(const gy_maths_shape *shape, const gy_maths_shape *model)
{
    uint32_t skip = 0;
    while (skip < shape->rank && shape->extent[skip] == 1)
        skip++;
    uint32_t rest = shape->rank - skip, from = model->rank - rest;
    bool fits = rest <= model->rank;
    for (uint32_t k = 0; k < rest && fits; k++)
        fits = shape->extent[skip + k] == model->extent[from + k];
    return fits;
}

const gy_maths *gy_node_formulas(const gantry_graph *g, const gy_node *n, const char **unfit)
{
    const gy_kernel *kernel = n->kind == GY_NODE_KERNEL && n->kernel != GY_NONE ? &g->kernels.at[n->kernel] : NULL;
    *unfit = NULL;
    if (!kernel || !kernel->formula || kernel->maths)
        return kernel ? kernel->maths : NULL;
    gy_maths_shape model = { 0 };
    const gy_maths *m = kernel->formula;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++) {
        gy_maths_shape one = gy_access_shape(g, &g->access.at[i]);
        if (g->access.at[i].arg < m->args && m->is_read[g->access.at[i].arg])
            gy_shape_join(&model, &one);
    }
    for (uint32_t i = n->access; i < n->access + n->accesses && !*unfit; i++) {
        const gy_access *x = &g->access.at[i];
        gy_maths_shape one = gy_access_shape(g, x);
        const gy_maths_result *r = gy_maths_result_of(m, x->arg);
        if (x->arg >= m->args)
            *unfit = g->buffers.at[x->buffer].name;
        else if (r && r->reduction ? gy_maths_shape_elements(&one) != 1 : !is_end_of(&one, &model))
            *unfit = m->arg[x->arg];
    }
    return *unfit ? NULL : m;
}

gantry_status gy_adjoint_look(gy_adjoint *a, uint32_t node, gy_primal *out)
{
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[node];
    const char *unfit;
    *out = (gy_primal){ .node = node, .id = n->id };
    if (n->kind == GY_NODE_COPY)
        return GANTRY_OK;
    if (n->kernel == GY_NONE)
        return fail_kind(a, node);
    const gy_kernel *kernel = &g->kernels.at[n->kernel];
    out->manifest = kernel->manifest;
    out->maths = gy_node_formulas(g, n, &unfit);
    if (out->maths)
        return GANTRY_OK;
    if (unfit)
        return gy_node_fail(g, a->err, node,
                            "gives kernel \"%s\" regions of several shapes (argument \"%s\"), which has no adjoint; "
                            "give them one shape",
                            kernel->manifest->name, unfit);
    out->rule = kernel->code ? NULL : gy_adjoint_rule(kernel->manifest->name);
    return out->rule ? GANTRY_OK : fail_kernel(a, node, kernel);
}

/* ---- what gives something ---- */

bool gy_adjoint_has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

static bool formulas_give(const gy_adjoint *a, const gy_primal *p, const char *name)
{
    for (uint32_t arg = 0; arg < p->maths->args; arg++) {
        if (strcmp(p->maths->arg[arg], name) != 0)
            continue;
        for (uint32_t i = 0; i < p->maths->results; i++) {
            const gy_maths_result *r = &p->maths->result[i];
            const gy_access *y = gy_primal_access(a, p, p->maths->arg[r->arg]);
            if (y && gy_adjoint_is_given(a, y->buffer) && gy_maths_leads(p->maths, r->root, arg))
                return true;
        }
    }
    return false;
}

bool gy_adjoint_gives(const gy_adjoint *a, const gy_primal *p, const gy_access *access)
{
    if (!p->manifest) /* a copy */
        return true;
    if (access->arg >= (uint32_t)p->manifest->args)
        return false;
    const char *name = p->manifest->arg[access->arg].name;
    return p->maths ? formulas_give(a, p, name) : gy_adjoint_has_word(p->rule->args, name);
}

/* ---- going back ---- */

void gy_adjoint_place(gy_adjoint *a, gantry_node node, uint32_t like)
{
    const gy_node_extra *x = gy_node_extra_of(a->graph, like);
    const char *on = x->on;
    const gy_expr *expr = x->on_expr; /* adding attributes moves *x */
    int priority = x->priority - x->back_delay;
    if (on)
        gantry_node_on(a->graph, node, on);
    else if (expr)
        gy_node_on_expr(a->graph, node, expr);
    if (priority)
        gantry_node_priority(a->graph, node, priority);
}

static gantry_status go_back_copy(gy_adjoint *a, const gy_primal *p)
{
    const gy_node *n = &a->graph->nodes.at[p->node];
    gy_access x = a->graph->access.at[n->access], y = a->graph->access.at[n->access + 1];
    gy_destination target;
    gantry_region from = gy_adjoint_of(a, &y), to = gy_adjoint_written(a, &x, &target);
    gantry_node node = gantry_graph_copy(a->graph, gy_adjoint_id(a, p, "from"), from, to);
    gy_adjoint_place(a, node, p->node);
    gy_adjoint_add_rows(a, p, "from", to, &target);
    return gy_adjoint_built(a);
}

gantry_status gy_adjoint_go_back(gy_adjoint *a, const gy_primal *p)
{
    if (!p->manifest)
        return go_back_copy(a, p);
    return p->maths ? gy_adjoint_formulas(a, p) : p->rule->go_back(a, p);
}
