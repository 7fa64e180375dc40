/* SPDX-License-Identifier: Apache-2.0 */
/* Writing nodes. Functions of a program have no name in a file: such nodes are written as work, with their cost. */
#include "graph/json/json_write.h"

#include "maths/maths.h"

#include <inttypes.h>

static const gantry_kernel *manifest_of(const gantry_graph *g, const gy_node *n)
{
    return n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].manifest;
}

static void write_reference(gy_text *to, const gantry_graph *g, const gy_access *a)
{
    gy_text text = { 0 };
    gy_access_text(&text, g, a);
    to->failed = to->failed || text.failed;
    gy_text_json(to, text.at ? text.at : "");
    gy_text_free(&text);
}

/* The same for a list of tiles; how many accesses it is made of. */
static uint32_t write_references(gy_text *to, const gantry_graph *g, const gy_access *a, uint32_t count)
{
    gy_text text = { 0 };
    uint32_t used = gy_access_list_text(&text, g, a, count);
    to->failed = to->failed || text.failed;
    gy_text_json(to, text.at ? text.at : "");
    gy_text_free(&text);
    return used;
}

/* ---- accesses in lists ---- */

static void write_listed(gy_text *to, const gantry_graph *g, const gy_node *n, uint32_t first, bool reads)
{
    const char *before = "[";
    for (uint32_t i = first, used = 1; i < gy_node_regions(n); i += used) {
        const gy_access *a = &g->access.at[n->access + i];
        gy_text skipped = { 0 };
        gantry_access mode = gy_access_given(a);
        if ((mode == GANTRY_READ) != reads) {
            used = gy_access_list_text(&skipped, g, a, gy_node_regions(n) - i);
            gy_text_free(&skipped);
            continue;
        }
        gy_text_add(to, before);
        before = ", ";
        bool plain = mode == GANTRY_READ || mode == GANTRY_WRITE;
        if (!plain)
            gy_text_printf(to, "{ \"%s\": ", gantry_access_name(mode));
        used = write_references(to, g, a, gy_node_regions(n) - i);
        gy_text_add(to, plain ? "" : " }");
    }
    gy_text_add(to, "]");
}

/* `reads` and `writes` of the accesses from `first` on. */
static void write_accesses(gy_text *to, const gantry_graph *g, const gy_node *n, uint32_t first)
{
    bool reads = false, writes = false;
    for (uint32_t i = first; i < gy_node_regions(n); i++) {
        bool read = g->access.at[n->access + i].mode == GANTRY_READ;
        reads = reads || read;
        writes = writes || !read;
    }
    if (reads) {
        gy_write_key(to, "reads");
        write_listed(to, g, n, first, true);
    }
    if (writes) {
        gy_write_key(to, "writes");
        write_listed(to, g, n, first, false);
    }
}

/* ---- arguments of kernels ---- */

static void write_scalar(gy_text *to, const gy_scalar *s)
{
    gy_text_add(to, s->dynamic ? "{ \"dynamic\": " : "");
    if (s->expr)
        gy_write_expr(to, s->expr);
    else
        gy_write_constant(to, s->number);
    gy_text_add(to, s->dynamic ? " }" : "");
}

/* In the order of the manifest, in which both are sorted. Returns the first access that is no argument. */
static uint32_t write_args(gy_text *to, const gantry_graph *g, const gy_node *n, const gantry_kernel *k)
{
    uint32_t a = 0, s = 0;
    gy_write_key(to, "args");
    gy_text_add(to, "{");
    for (int32_t i = 0; i < k->args; i++) {
        if (s < n->scalars && g->scalar.at[n->scalar + s].arg == (uint32_t)i) {
            gy_write_key(to, k->arg[i].name);
            write_scalar(to, &g->scalar.at[n->scalar + s++]);
        } else if (a < gy_node_regions(n) && g->access.at[n->access + a].arg == (uint32_t)i) {
            gy_write_key(to, k->arg[i].name);
            a += write_references(to, g, &g->access.at[n->access + a], gy_node_regions(n) - a);
        }
    }
    gy_text_add(to, " }");
    return a;
}

static void write_chosen(gy_text *to, const gantry_graph *g, const gy_node *n, const gantry_kernel *k, uint32_t count)
{
    bool any = false;
    uint32_t last = GY_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        if (gy_access_given(a) == k->arg[a->arg].access || a->arg == last)
            continue;
        if (!any) {
            gy_write_key(to, "access");
            gy_text_add(to, "{");
        }
        any = true;
        last = a->arg; /* a list of tiles says it once */
        gy_write_key(to, k->arg[a->arg].name);
        gy_text_json(to, gantry_access_name(gy_access_given(a)));
    }
    gy_text_add(to, any ? " }" : "");
}

void gy_write_formulas(gy_text *to, const gy_maths *m)
{
    gy_write_key(to, m->reduces ? "reduce" : "map");
    gy_text_add(to, "{");
    for (uint32_t i = 0; i < m->results; i++) {
        gy_write_key(to, m->arg[m->result[i].arg]);
        gy_text_json(to, m->result[i].text);
    }
    gy_text_add(to, " }");
}

static void write_kernel(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = manifest_of(g, n);
    const gy_maths *maths = g->kernels.at[n->kernel].maths;
    if (maths) {
        gy_write_formulas(to, maths);
    } else {
        gy_write_key(to, n->kind == GY_NODE_HOST ? "host" : "kernel");
        gy_text_json(to, k->name);
    }
    uint32_t args = write_args(to, g, n, k);
    write_chosen(to, g, n, k, args);
    write_accesses(to, g, n, args);
}

/* ---- the other kinds ---- */

static void write_work(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    gy_write_key(to, "work");
    gy_text_add(to, "{}");
    write_accesses(to, g, n, 0);
}

static void write_copy(gy_text *to, const gantry_graph *g, const gy_node *n)
{
    gy_write_key(to, "copy");
    gy_text_add(to, "{ \"from\": ");
    write_reference(to, g, &g->access.at[n->access]);
    gy_text_add(to, ", \"to\": ");
    write_reference(to, g, &g->access.at[n->access + 1]);
    gy_text_add(to, " }");
}

static void write_fill(gy_text *to, const gantry_graph *g, const gy_node *n, const gy_node_extra *x)
{
    gy_write_key(to, "fill");
    gy_text_add(to, "{ \"to\": ");
    write_reference(to, g, &g->access.at[n->access]);
    gy_write_generator(to, g, &x->fill);
    gy_text_add(to, " }");
}

static void write_ranks(gy_text *to, const gantry_graph *g, const char *key, const gy_access *a, uint32_t count)
{
    gy_write_key(to, key);
    gy_text_add(to, "[");
    for (uint32_t i = 0; i < count; i++) {
        gy_text_add(to, i ? ", " : "");
        write_reference(to, g, &a[i]);
    }
    gy_text_add(to, "]");
}

static void write_collective(gy_text *to, const gantry_graph *g, const gy_node *n, const gy_node_extra *x)
{
    const gy_access *a = gy_vec_from(&g->access, n->access);
    gy_write_key(to, "collective");
    gy_text_json(to, gantry_collective_name(x->collective));
    if (x->op) {
        gy_write_key(to, "op");
        gy_text_json(to, gantry_access_name(x->op));
    }
    write_ranks(to, g, "in", a, x->ins);
    write_ranks(to, g, "out", a + x->ins, x->outs);
    if (x->root != 0) {
        gy_write_key(to, "root");
        gy_text_printf(to, "%" PRId32, x->root);
    }
    if (x->algorithm) {
        gy_write_key(to, "algorithm");
        gy_text_json(to, x->algorithm);
    }
}

/* True if the node is written as work although it is a function of a program. */
static bool is_function(const gy_node *n)
{
    return n->kind == GY_NODE_LAUNCH || (n->kind == GY_NODE_HOST && n->kernel == GY_NONE);
}

static void write_kind(gy_text *to, const gantry_graph *g, const gy_node *n, const gy_node_extra *x)
{
    switch ((gy_node_kind)n->kind) {
    case GY_NODE_COPY:
        write_copy(to, g, n);
        break;
    case GY_NODE_FILL:
        write_fill(to, g, n, x);
        break;
    case GY_NODE_COLLECTIVE:
        write_collective(to, g, n, x);
        break;
    case GY_NODE_KERNEL:
    case GY_NODE_HOST:
    case GY_NODE_LAUNCH:
    case GY_NODE_WORK:
        if (n->kernel == GY_NONE)
            write_work(to, g, n);
        else
            write_kernel(to, g, n);
    }
}

/* ---- what any node can have ---- */

static void write_ids(gy_text *to, const gantry_graph *g, const char *key, const uint32_t *node, size_t count)
{
    if (count == 0)
        return;
    gy_write_key(to, key);
    for (size_t i = 0; i < count; i++) {
        gy_text_add(to, i ? ", " : "[");
        gy_text_json(to, g->nodes.at[node[i]].id);
    }
    gy_text_add(to, "]");
}

static void write_times(gy_text *to, const gy_node_extra *x)
{
    gy_write_key(to, "time_us");
    if (x->time.count == 1 && !x->time.at[0].device) {
        gy_write_number(to, x->time.at[0].us);
        return;
    }
    gy_text_add(to, "{");
    for (size_t i = 0; i < x->time.count; i++) {
        gy_write_key(to, x->time.at[i].device ? x->time.at[i].device : "*");
        gy_write_number(to, x->time.at[i].us);
    }
    gy_text_add(to, " }");
}

static void write_cost(gy_text *to, const gy_node *n, const gy_node_extra *x)
{
    bool amounts = n->cost_given || is_function(n);
    if (!amounts && x->time.count == 0)
        return;
    gy_write_key(to, "cost");
    gy_text_add(to, "{");
    if (amounts) {
        gy_write_key(to, "flops");
        gy_write_number(to, n->flops);
        gy_write_key(to, "bytes");
        gy_write_number(to, n->bytes);
    }
    if (x->time.count > 0)
        write_times(to, x);
    gy_text_add(to, " }");
}

static void write_on(gy_text *to, const char *on, const gy_expr *expr)
{
    if (expr)
        gy_write_expr(to, expr);
    else if (on)
        gy_text_json(to, on);
}

static void write_place(gy_text *to, const gantry_graph *g, const gy_node_extra *x)
{
    if (x->on || x->on_expr)
        gy_write_key(to, "on");
    write_on(to, x->on, x->on_expr);
    if (x->rank_on.count)
        gy_write_key(to, "on");
    for (size_t i = 0; i < x->rank_on.count; i++) {
        gy_text_add(to, i ? ", " : "[");
        write_on(to, x->rank_on.at[i].on, x->rank_on.at[i].on_expr);
    }
    if (x->rank_on.count)
        gy_text_add(to, "]");
    write_ids(to, g, "with", x->with.at, x->with.count);
    write_ids(to, g, "apart", x->apart.at, x->apart.count);
}

static void write_extras(gy_text *to, const gantry_graph *g, const gy_node *n, const gy_node_extra *x)
{
    if (n->has_when || x->meets) {
        gy_write_key(to, "when");
        gy_text_add(to, "{ \"buffer\": ");
        write_reference(to, g, x->meets ? &x->flag : &g->access.at[n->access + gy_node_regions(n)]);
        gy_text_add(to, " }");
    }
    write_ids(to, g, "after", gy_vec_from(&g->after, n->after), n->afters);
    write_place(to, g, x);
    if (x->priority != 0) {
        gy_write_key(to, "priority");
        gy_text_printf(to, "%" PRId32, x->priority);
    }
    write_cost(to, n, x);
    if (x->share < 1) {
        gy_write_key(to, "share");
        gy_write_number(to, x->share);
    }
    if (n->scratch_given) {
        gy_write_key(to, "scratch");
        gy_text_printf(to, "%" PRId64, n->scratch);
    }
}

void gy_write_node(gy_text *to, const gantry_graph *graph, uint32_t node)
{
    const gy_node *n = &graph->nodes.at[node];
    const gy_node_extra *x = gy_node_extra_of(graph, node);
    gy_text_add(to, "{");
    gy_write_key(to, "id");
    gy_text_json(to, n->id);
    write_kind(to, graph, n, x);
    write_extras(to, graph, n, x);
    gy_text_add(to, " }");
}
