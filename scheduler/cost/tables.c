/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cost/tables.h"

#include "base/memory.h"
#include "scheduler/cost/cost.h"
#include <string.h>

/* ---- one node ---- */

double gy_plan_work(const gy_node *n, const gy_kernel_table *t)
{
    return t->by_flops ? n->flops : n->bytes * gy_kernel_strided(t, n->contiguous);
}

/* The last two figures say that most of the last one is work. */
static bool ends_in_work(const gy_kernel_table *t)
{
    if (t->points < 2)
        return false;
    gy_point a = t->point[t->points - 2], b = t->point[t->points - 1];
    return (double)(b.time - a.time) / (double)(b.bytes - a.bytes) * (double)b.bytes >= (double)b.time / 2;
}

gy_ticks gy_table_time(const gy_kernel_table *t, double work, double rate, const gy_device *d)
{
    gy_ticks time = gy_kernel_time(t, work, d->launch);
    double last = (double)t->point[t->points - 1].bytes, launch = gy_ticks_to_us(d->launch);
    if (!d->gpu || !(rate > 0) || work <= last || last / rate >= launch || ends_in_work(t))
        return time;
    double paces = gy_ticks_to_us(t->point[t->points - 1].time) / (launch + last / rate);
    gy_ticks modelled = gy_ticks_from_us((launch + work / rate) * paces);
    return modelled < time ? modelled : time;
}

/* Kernels move whole numbers of one size alike, signed or not; that is as good as measured where only one is. The best
 * guess of f8e4m3, which not all calibrations have, is bf16; products of f8e5m2 have no tensor cores. */
static gantry_dtype sibling_of(gantry_dtype dtype)
{
    switch (dtype) {
    case GANTRY_I8:
        return GANTRY_U8;
    case GANTRY_U8:
        return GANTRY_I8;
    case GANTRY_I32:
        return GANTRY_U32;
    case GANTRY_U32:
        return GANTRY_I32;
    case GANTRY_I64:
        return GANTRY_U64;
    case GANTRY_U64:
        return GANTRY_I64;
    case GANTRY_F8E4M3:
        return GANTRY_BF16;
    case GANTRY_F8E5M2:
        return GANTRY_F32;
    default:
        return dtype;
    }
}

static const gy_kernel_table *table_of(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                       const char *kind)
{
    const gy_kernel_table *t = gy_machine_kernel(m, kernel, dtype, kind);
    return t ? t : gy_machine_kernel(m, kernel, sibling_of(dtype), kind);
}

/* Of the form of a call, where that was measured by itself. */
static const gy_kernel_table *table_of_form(const gantry_machine *m, const char *form, const char *kernel,
                                            gantry_dtype dtype, const char *kind)
{
    const gy_kernel_table *t = form ? table_of(m, form, dtype, kind) : NULL;
    return t ? t : table_of(m, kernel, dtype, kind);
}

/* A node that has nothing of a table's work is not what the table speaks of. */
static const gy_kernel_table *usable(const gy_kernel_table *t, const gy_node *n)
{
    return t && (t->arguments || gy_plan_work(n, t) > 0) ? t : NULL;
}

const gy_kernel_table *gy_plan_table(const gy_plan *p, uint32_t node, uint32_t device)
{
    const gantry_graph *g = p->graph;
    const gy_node *n = &g->nodes.at[node];
    if (n->kernel == GY_NONE || !p->machine->kernels)
        return NULL;
    const char *kernel = g->kernels.at[n->kernel].manifest->name, *kind = p->machine->device[device].kind;
    const gy_kernel_table *t = NULL;
    gantry_dtype dtype = gy_node_dtype(g, n);
    gy_text arguments = { 0 };
    if (gy_node_case(&arguments, g, n))
        t = gy_machine_case(p->machine, kernel, dtype, kind, arguments.at);
    gy_text_free(&arguments);
    return t ? t : usable(table_of_form(p->machine, n->form, kernel, dtype, kind), n);
}

/* Of the kernel that shows how fast a device goes through memory. */
static const gy_kernel_table *stream_of(const gy_plan *p, gantry_dtype dtype, const gy_device *d)
{
    const gy_kernel_table *t = d->gpu ? table_of(p->machine, "axpby", dtype, d->kind) : NULL;
    return t && !t->by_flops ? t : NULL;
}

static const gy_kernel_table *like_of(const gy_plan *p, uint32_t kernel, gantry_dtype dtype, const gy_device *d)
{
    const char *like = kernel == GY_NONE || !d->gpu ? NULL : p->graph->kernels.at[kernel].like;
    const gy_kernel_table *t = like ? table_of(p->machine, like, dtype, d->kind) : NULL;
    return t && !t->by_flops ? t : NULL;
}

const gy_kernel_table *gy_plan_like(const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    return n->bytes > 0 ? like_of(p, n->kernel, gy_node_dtype(p->graph, n), &p->machine->device[device]) : NULL;
}

/* ---- node after node ---- */

static uint64_t hash_of(const char *kernel, gantry_dtype dtype, const char *kind, const char *arguments)
{
    uint64_t hash = gy_hash_bytes(kernel, strlen(kernel), (uint64_t)dtype);
    hash = gy_hash_bytes(kind, strlen(kind), hash);
    return gy_hash_bytes(arguments, strlen(arguments), hash);
}

bool gy_tables_begin(gy_tables *t, const gy_plan *p)
{
    const gantry_machine *m = p->machine;
    *t = (gy_tables){ .plan = p, .kernel = GY_NONE };
    t->of = gy_calloc(p->devices + 1, sizeof *t->of);
    t->like = gy_calloc(p->devices + 1, sizeof *t->like);
    t->unknown = gy_calloc(p->devices + 1, sizeof *t->unknown);
    bool ok = t->of && t->like && t->unknown;
    for (uint32_t i = 0; i < m->kernels && ok; i++) {
        const gy_kernel_table *k = &m->kernel[i];
        uint64_t hash = k->arguments ? hash_of(k->kernel, k->dtype, k->kind, k->arguments) : 0, other;
        ok = !k->arguments || gy_map_get(&t->index, hash, &other) || gy_map_put(&t->index, hash, i);
    }
    return ok;
}

void gy_tables_end(gy_tables *t)
{
    gy_free((void *)t->of);
    gy_free((void *)t->like);
    gy_free(t->unknown);
    gy_map_free(&t->index);
    gy_text_free(&t->arguments);
}

static const char *name_of(const gy_tables *t)
{
    return t->plan->graph->kernels.at[t->kernel].manifest->name;
}

static bool has_cases(const gy_tables *t)
{
    const gantry_machine *m = t->plan->machine;
    for (uint32_t i = 0; i < m->kernels && t->index.count; i++)
        if (m->kernel[i].arguments && m->kernel[i].dtype == t->dtype && !strcmp(m->kernel[i].kernel, name_of(t)))
            return true;
    return false;
}

/* Of another kernel, form of it, or element type than the node before. */
static void change(gy_tables *t, uint32_t kernel, const char *form, gantry_dtype dtype)
{
    const gy_plan *p = t->plan;
    t->kernel = kernel;
    t->form = form;
    t->dtype = dtype;
    t->cases = kernel != GY_NONE && has_cases(t);
    bool batches = kernel != GY_NONE && gy_kernel_batches(p->graph->kernels.at[kernel].manifest);
    for (uint32_t d = 0; d < p->devices; d++) {
        const gy_device *device = &p->machine->device[d];
        const gy_kernel_table *of =
            kernel == GY_NONE ? NULL : table_of_form(p->machine, form, name_of(t), dtype, device->kind);
        t->of[d] = of;
        t->like[d] = !of ? like_of(p, kernel, dtype, device) : of->by_flops ? stream_of(p, dtype, device) : NULL;
        t->unknown[d] = batches && device->gpu && (!of || gy_kernel_of_cases(p->machine, of));
    }
}

bool gy_tables_turn(gy_tables *t, const gy_node *n)
{
    gantry_dtype dtype = gy_node_dtype(t->plan->graph, n);
    if (n->kernel != t->kernel || n->form != t->form || dtype != t->dtype)
        change(t, n->kernel, n->form, dtype);
    t->named = t->cases && gy_node_case(&t->arguments, t->plan->graph, n);
    return !t->arguments.failed;
}

static bool is_case(const gy_tables *t, const gy_kernel_table *k, const char *kind)
{
    return k->dtype == t->dtype && !strcmp(k->arguments, t->arguments.at) && !strcmp(k->kernel, name_of(t)) &&
           !strcmp(k->kind, kind);
}

/* Two cases may have one hash, of which the index knows the first: then all are looked at. */
static const gy_kernel_table *find_case(const gy_tables *t, const char *kind)
{
    const gantry_machine *m = t->plan->machine;
    uint64_t at;
    if (!gy_map_get(&t->index, hash_of(name_of(t), t->dtype, kind, t->arguments.at), &at))
        return NULL;
    if (is_case(t, &m->kernel[at], kind))
        return &m->kernel[at];
    return gy_machine_case(m, name_of(t), t->dtype, kind, t->arguments.at);
}

const gy_kernel_table *gy_tables_find(const gy_tables *t, const gy_node *n, uint32_t device)
{
    const gy_kernel_table *exact = t->named ? find_case(t, t->plan->machine->device[device].kind) : NULL;
    return exact ? exact : gy_tables_of_kernel(t, n, device);
}

const gy_kernel_table *gy_tables_of_kernel(const gy_tables *t, const gy_node *n, uint32_t device)
{
    return usable(t->of[device], n);
}

const gy_kernel_table *gy_tables_like(const gy_tables *t, const gy_node *n, uint32_t device)
{
    return t->like[device] && n->bytes > 0 ? t->like[device] : NULL;
}

bool gy_tables_batched(const gy_tables *t, const gy_node *n, uint32_t device, gy_ticks *added)
{
    const gy_kernel_table *exact = gy_tables_find(t, n, device), *of = gy_tables_of_kernel(t, n, device);
    const gy_kernel_table *says = exact && exact->batched_points ? exact : of && of->batched_points ? of : NULL;
    *added = says ? gy_kernel_batched(says, gy_plan_work(n, says)) : GY_TICKS_MAX;
    return says || !t->unknown[device];
}
