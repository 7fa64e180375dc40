/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Times of nodes on devices. In order: a time given with the node for the device's id, for its kind, for everywhere;
 * what the machine says was measured of the node's kernel with its very arguments; the machine's measured table of the
 * kernel, by its flops or bytes, where a table by flops is no less than what the bytes take, on GPUs a product moves
 * what it has beyond square matrices on top of its table, and no table is less than what steps take that wait for each
 * other; else the roofline, max(flops / peak, bytes / bandwidth). The device's launch cost is added to a given time and
 * to the roofline; in what was measured it is contained. Formulas go through memory as a kernel of the library does,
 * whose measured time replaces the bandwidth, and blocks of a reduction on a GPU wait for memory several times in turn.
 * A copy node takes the local route of the device's memory. A fill of a GPU that the host makes takes the route from
 * there. On a GPU a node with `when` takes longer by what asking its flag takes.
 */
#include "scheduler/cost/cost.h"

#include "base/error.h"
#include "graph/contents.h"
#include "scheduler/cost/tables.h"
#include <math.h>
#include <string.h>

/* Of the speed of computing, that ops of a batch reach, and what each takes beside that: eight sizes of f32, f64 and
 * bf16 on H200s, from 33 MFLOP on, are within a quarter of it. */
#define BATCHED_RATE 0.9
#define BATCHED_US   0.1
#define SECTOR       32.0 /* bytes that memory of a GPU moves where one of them is wanted */
#define WAIT_US      0.6  /* a load that finds nothing near the processor; H100 and H200 */

static uint32_t given_share(const gy_node_extra *x)
{
    return x->share > 0.001 ? (uint32_t)(x->share * GY_WHOLE_DEVICE) : 1;
}

/* The time that was given with the node, in us; false without one that speaks of this device. */
static bool given_time(const gy_node_extra *x, const gy_device *d, double *us)
{
    int best = 0;
    for (size_t i = 0; x && i < x->time.count; i++) {
        const char *name = x->time.at[i].device;
        int weight = !name ? 1 : !strcmp(name, d->id) ? 3 : !strcmp(name, d->kind) ? 2 : 0;
        if (weight > best) {
            best = weight;
            *us = x->time.at[i].us;
        }
    }
    return best > 0;
}

/* The speed that formulas were measured to reach there; 0: another node, or not known. */
static double formula_gflops(const gantry_graph *g, const gy_node *n, const gy_device *d)
{
    return d->gpu && gy_node_is_formula(g, n) ? gy_formula_gflops(d->formulas, gy_node_dtype(g, n)) : 0;
}

/* Peaks of f64 are those of products, which tensor cores may make; formulas have the ordinary units, and no GPU has
 * more than half as many for f64 as for f32. */
static double gflops_of(const gantry_graph *g, const gy_node *n, const gy_device *d)
{
    gantry_dtype dtype = gy_node_dtype(g, n);
    double gflops = gy_device_gflops(d, dtype), most = gy_device_gflops(d, GANTRY_F32) / 2;
    double measured = formula_gflops(g, n, d);
    if (measured > 0)
        return measured;
    return gy_node_is_formula(g, n) && d->gpu && dtype == GANTRY_F64 && most > 0 && most < gflops ? most : gflops;
}

double gy_plan_gflops(const gy_plan *p, uint32_t node, uint32_t device)
{
    return gflops_of(p->graph, &p->graph->nodes.at[node], &p->machine->device[device]);
}

static double overhead_us(const gantry_graph *g, const gy_node *n, const gy_device *d)
{
    double gflops = gy_device_gflops(d, GANTRY_F32), measured = formula_gflops(g, n, d);
    if (measured > 0)
        return (gy_formula_work(g, n) - n->flops) / (measured * 1e3);
    return d->gpu && n->overhead > 0 && gflops > 0 ? n->overhead / (gflops * 1e3) : 0;
}

double gy_plan_overhead(const gy_plan *p, uint32_t node, uint32_t device)
{
    return overhead_us(p->graph, &p->graph->nodes.at[node], &p->machine->device[device]);
}

double gy_plan_moved(const gy_node *n, const gy_device *d)
{
    bool is_strided = d->gpu && n->contiguous > 0 && n->contiguous < SECTOR;
    return is_strided ? n->bytes * (1 + SECTOR / n->contiguous) / 2 : n->bytes;
}

static double stream_rate(const gy_device *d) /* bytes in a us */
{
    return d->bandwidth_gbs * 1e3;
}

gy_ticks gy_like_time(const gy_kernel_table *like, double bytes, const gy_device *d)
{
    return like ? gy_table_time(like, bytes, stream_rate(d), d) : 0;
}

static gy_ticks known_time(const gantry_graph *g, const gy_kernel_table *t, const gy_node *n, const gy_device *d)
{
    return gy_table_time(t, gy_plan_work(n, t), t->by_flops ? gflops_of(g, n, d) * 1e3 : stream_rate(d), d);
}

gy_ticks gy_plan_table_time(const gy_plan *p, uint32_t node, uint32_t device, const gy_kernel_table *table)
{
    return known_time(p->graph, table, &p->graph->nodes.at[node], &p->machine->device[device]);
}

/* With its launch. `like`: of the kernel that goes through memory in the same way, or NULL. */
static gy_ticks roofline(const gantry_graph *g, const gy_node *n, const gy_device *d, const gy_kernel_table *like)
{
    double gflops = gflops_of(g, n, d), us = overhead_us(g, n, d), bytes = gy_plan_moved(n, d);
    if (n->flops > 0 && gflops > 0)
        us += n->flops / (gflops * 1e3);
    if (!like && bytes > 0 && d->bandwidth_gbs > 0 && bytes / stream_rate(d) > us)
        us = bytes / stream_rate(d);
    gy_ticks time = gy_ticks_from_us(us) + d->launch, memory = gy_like_time(like, bytes, d);
    return time > memory ? time : memory;
}

/* Of moving so many bytes, without the launch; `like`: measured of a kernel that does nothing else, or NULL. */
static gy_ticks stream_time(const gy_kernel_table *like, double bytes, const gy_device *d)
{
    gy_ticks stream = gy_like_time(like, bytes, d);
    if (like)
        return stream > d->launch ? stream - d->launch : 0;
    return d->bandwidth_gbs > 0 ? gy_ticks_from_us(bytes / stream_rate(d)) : 0;
}

/* A table by flops was measured of square products; a row times a matrix has one operation for each two bytes of it,
 * and takes as long as reading them. Without the launch. */
static gy_ticks memory_time(const gy_kernel_table *t, const gy_kernel_table *like, const gy_node *n, const gy_device *d)
{
    return t->arguments || !t->by_flops || !(n->bytes > 0) ? 0 : stream_time(like, n->bytes, d);
}

/* A product of two matrices, of m k and k n elements. */
typedef struct product {
    double products; /* m k n; 0: the node is none */
    double depth;    /* k */
    double narrow;   /* the lesser of m and n */
    double elements; /* of the three matrices */
} product;

/* The sizes of its matrices, m k, k n and m n, say how much it computes: 2 m k n, and little more. */
static product product_of(const gantry_graph *g, const gy_node *n)
{
    enum { MATRICES = 3 };
    double size[MATRICES] = { 0 }, volume = 1, products = n->flops / 2;
    for (uint32_t i = 0; i < MATRICES && n->accesses == MATRICES; i++) {
        const gy_access *a = &g->access.at[n->access + i];
        size[i] = (double)gy_buffer_span(&g->buffers.at[a->buffer], a->first, a->last) /
                  (double)gantry_dtype_size(g->buffers.at[a->buffer].dtype);
        volume *= size[i];
    }
    if (n->accesses != MATRICES || !(volume > 0) || fabs(sqrt(volume) - products) > 0.01 * products)
        return (product){ 0 };
    double root = sqrt(volume);
    return (product){ products, root / size[2], root / fmax(size[0], size[1]), size[0] + size[1] + size[2] };
}

/* Bytes of a product of square matrices that computes as much. */
static double square_bytes(const gy_node *n, const product *p)
{
    return p->products > 0 ? n->bytes / p->elements * 3 * pow(p->products, 2.0 / 3) : 0;
}

/* A product of few results still adds up k products for each, one after the other: it takes as long as the square one
 * of that depth, whose results do not fill the GPU either. Deeper ones than DEEPEST are shared out among blocks, and so
 * are those of a matrix and hardly more than a vector. */
static gy_ticks deep_time(const gy_kernel_table *t, const gy_node *n, const product *p, const gy_device *d)
{
    enum { DEEPEST = 256, NARROW = 8 };
    double depth = p->depth < DEEPEST ? p->depth : DEEPEST, flops = 2 * depth * depth * depth;
    bool is_known = p->narrow >= NARROW && flops <= (double)t->point[t->points - 1].bytes;
    return is_known && flops > n->flops ? gy_kernel_time(t, flops, d->launch) : 0;
}

/* Bytes beyond that come on top on a GPU: while some blocks wait for memory, others do not compute for two. */
static gy_ticks beyond_square(const gy_kernel_table *like, const gy_node *n, const product *p, const gy_device *d)
{
    double square = square_bytes(n, p);
    if (square <= 0 || n->bytes <= square)
        return 0;
    gy_ticks all = stream_time(like, n->bytes, d), known = stream_time(like, square, d);
    return all > known ? all - known : 0;
}

static gy_ticks waits_of(const gy_node *n, const gy_device *d)
{
    return d->gpu ? gy_ticks_from_us(WAIT_US * n->waits) : 0;
}

gy_ticks gy_plan_waits(const gy_plan *p, uint32_t node, uint32_t device)
{
    return waits_of(&p->graph->nodes.at[node], &p->machine->device[device]);
}

/* The product that a node is where its table is of square ones; else none. */
static product beside_square(const gantry_graph *g, const gy_kernel_table *t, const gy_node *n, const gy_device *d)
{
    return d->gpu && t->by_flops && !t->arguments ? product_of(g, n) : (product){ 0 };
}

gy_ticks gy_plan_deep(const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    const gy_kernel_table *t = gy_plan_table(p, node, device);
    product of = t ? beside_square(p->graph, t, n, d) : (product){ 0 };
    return t ? deep_time(t, n, &of, d) : 0;
}

/* Waits of the kernels of the library are known of few GPUs, so they mend tables alone. */
static gy_ticks formula_waits(const gy_plan *p, uint32_t node, uint32_t device)
{
    bool is_formula = gy_node_is_formula(p->graph, &p->graph->nodes.at[node]);
    return is_formula ? gy_plan_waits(p, node, device) : 0;
}

static gy_ticks table_time(const gantry_graph *g, const gy_kernel_table *t, const gy_kernel_table *like,
                           const gy_node *n, const gy_device *d)
{
    gy_ticks time = t->arguments ? t->point[0].time : known_time(g, t, n, d);
    gy_ticks memory = memory_time(t, like, n, d), waits = t->arguments ? 0 : waits_of(n, d);
    product p = beside_square(g, t, n, d);
    gy_ticks deep = deep_time(t, n, &p, d);
    time = gy_ticks_both(time, beyond_square(like, n, &p, d));
    time = memory > time ? memory : time;
    time = deep > time ? deep : time;
    return waits > time ? waits : time;
}

/* ---- all kinds of nodes ---- */

static int64_t node_bytes(const gy_plan *p, const gy_node *n, uint32_t k)
{
    const gy_access *a = &p->graph->access.at[n->access + k];
    return gy_buffer_span(&p->graph->buffers.at[a->buffer], a->first, a->last);
}

/* The memory of CPUs of a rank; memory 0 where it has none. */
static uint32_t host_memory_of(const gantry_machine *m, uint32_t rank)
{
    for (uint32_t i = 0; i < m->devices && rank; i++)
        if (!m->device[i].gpu && gy_device_rank(m, i) == rank)
            return m->device[i].memory;
    return 0;
}

const gy_route *gy_plan_upload(const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_device *d = &p->machine->device[device];
    if (p->graph->nodes.at[node].kind != GY_NODE_FILL || !d->gpu ||
        gy_init_is_for_gpus(&gy_node_extra_of(p->graph, node)->fill))
        return NULL;
    uint32_t host = host_memory_of(p->machine, gy_device_rank(p->machine, device));
    return host == d->memory ? NULL : gy_machine_route(p->machine, host, d->memory);
}

static void cost_node(gy_plan *p, const gy_tables *tables, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    size_t at = (size_t)node * p->devices + device;
    const gy_kernel_table *t = gy_tables_find(tables, n, device);
    const gy_route *upload = gy_plan_upload(p, node, device);
    double us = 0;
    if (n->kind == GY_NODE_COLLECTIVE) {
        p->cost.time[at] = 0; /* depends on all ranks: see place.c */
        p->cost.provenance[at] = GY_COST_ROOFLINE;
    } else if (n->kind == GY_NODE_COPY) {
        const gy_route *r = gy_machine_route(p->machine, d->memory, d->memory);
        p->cost.time[at] = gy_route_time(p->machine, r, node_bytes(p, n, 0));
        p->cost.provenance[at] = r->given ? GY_COST_MEASURED : GY_COST_ROOFLINE;
    } else if (given_time(gy_plan_extra(p, node), d, &us)) {
        p->cost.time[at] = gy_ticks_from_us(us) + d->launch;
        p->cost.provenance[at] = GY_COST_GIVEN;
    } else if (t) {
        p->cost.time[at] = table_time(p->graph, t, gy_tables_like(tables, n, device), n, d);
        p->cost.provenance[at] = GY_COST_MEASURED;
    } else if (upload) {
        p->cost.time[at] = gy_route_time(p->machine, upload, node_bytes(p, n, 0)) + d->launch;
        p->cost.provenance[at] = upload->given ? GY_COST_MEASURED : GY_COST_ROOFLINE;
    } else {
        p->cost.time[at] = roofline(p->graph, n, d, gy_tables_like(tables, n, device)) + formula_waits(p, node, device);
        p->cost.provenance[at] = GY_COST_ROOFLINE;
    }
    if (n->has_when)
        p->cost.time[at] = gy_ticks_both(p->cost.time[at], gy_device_when(p->machine, device, true));
    if (p->machine->pace && node < p->machine->paces && n->kind != GY_NODE_COLLECTIVE && n->kind != GY_NODE_COPY) {
        p->cost.time[at] = gy_ticks_from_us(gy_ticks_to_us(p->cost.time[at]) * p->machine->pace[at]);
        p->cost.provenance[at] = GY_COST_MEASURED;
    }
}

/* A launch of few blocks leaves multiprocessors to others. */
static uint32_t share_of_blocks(const gy_node *n, const gy_device *d)
{
    if (!n->blocks || n->blocks >= d->multiprocessors)
        return GY_WHOLE_DEVICE;
    return (n->blocks * GY_WHOLE_DEVICE + d->multiprocessors - 1) / d->multiprocessors;
}

/* Thousandths of the device that the node takes: as the graph says, else as was measured with its very arguments, else
 * of its kernel, else as many as the multiprocessors that its blocks can be on. */
static uint32_t share_on(const gy_plan *p, const gy_tables *tables, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_kernel_table *exact = gy_tables_find(tables, n, device);
    const gy_kernel_table *t = exact && exact->share ? exact : gy_tables_of_kernel(tables, n, device);
    const gy_node_extra *x = gy_plan_extra(p, node);
    if (x && x->share < 1)
        return given_share(x);
    if (t && t->share)
        return gy_kernel_share(t, gy_plan_work(n, t));
    return share_of_blocks(n, &p->machine->device[device]);
}

/* The array is made for the first node that leaves something of a device. */
static bool spare_node(gy_plan *p, const gy_tables *tables, uint32_t node, uint32_t device)
{
    uint32_t share = share_on(p, tables, node, device);
    if (share < GY_WHOLE_DEVICE && !p->cost.spare)
        p->cost.spare = gy_calloc(p->graph->nodes.count * p->devices + 1, sizeof *p->cost.spare);
    if (p->cost.spare)
        p->cost.spare[(size_t)node * p->devices + device] = (uint16_t)(GY_WHOLE_DEVICE - share);
    return p->cost.spare || share == GY_WHOLE_DEVICE;
}

/* Matrices that are read once go through memory in a batch as they do alone. */
static gy_ticks guess_batched(const gantry_graph *g, const gy_node *n, const gy_device *d)
{
    double gflops = gflops_of(g, n, d), compute = gflops > 0 ? n->flops / (gflops * 1e3) / BATCHED_RATE : 0;
    double move = d->bandwidth_gbs > 0 ? n->bytes / stream_rate(d) : 0;
    return gy_ticks_from_us((compute > move ? compute : move) + BATCHED_US);
}

/* The array is made for the first node that may be in a batch. */
static bool batch_node(gy_plan *p, const gy_tables *tables, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    size_t nodes = p->graph->nodes.count, at = (size_t)node * p->devices + device;
    gy_ticks added;
    if (n->kernel == GY_NONE)
        return true;
    const gy_kernel_table *t = gy_tables_find(tables, n, device);
    gy_ticks memory = t ? memory_time(t, gy_tables_like(tables, n, device), n, d) : 0;
    if (!gy_tables_batched(tables, n, device, &added))
        added = guess_batched(p->graph, n, d);
    else if (memory > added)
        added = memory;
    if (added >= p->cost.time[at])
        return true;
    if (!p->cost.batched) {
        p->cost.batched = gy_alloc((nodes * p->devices + 1) * sizeof *p->cost.batched);
        for (size_t i = 0; p->cost.batched && i < nodes * p->devices; i++)
            p->cost.batched[i] = GY_TICKS_MAX;
    }
    if (p->cost.batched)
        p->cost.batched[at] = added;
    return p->cost.batched != NULL;
}

static void find_scratch(gy_plan *p, const gy_tables *tables, uint32_t node)
{
    uint64_t *scratch = p->cost.scratch;
    for (uint32_t d = 0; d < p->devices && scratch; d++) {
        const gy_kernel_table *t = gy_tables_of_kernel(tables, &p->graph->nodes.at[node], d);
        if (t && t->scratch > scratch[node])
            scratch[node] = t->scratch;
    }
}

/* Room for the scratch of nodes, where a kernel of the machine has more than its nodes say. */
static bool begin_scratch(gy_plan *p)
{
    size_t nodes = p->graph->nodes.count;
    if (!gy_machine_has_workspace(p->machine))
        return true;
    p->cost.scratch = gy_calloc(nodes + 1, sizeof *p->cost.scratch);
    for (size_t n = 0; n < nodes && p->cost.scratch; n++)
        p->cost.scratch[n] = (uint64_t)p->graph->nodes.at[n].scratch;
    return p->cost.scratch != NULL;
}

static bool cost_nodes(gy_plan *p)
{
    gy_tables tables = { 0 };
    bool ok = begin_scratch(p) && gy_tables_begin(&tables, p);
    for (uint32_t n = 0; n < p->graph->nodes.count && ok; n++) {
        ok = gy_tables_turn(&tables, &p->graph->nodes.at[n]);
        for (uint32_t d = 0; d < p->devices && ok; d++) {
            cost_node(p, &tables, n, d);
            ok = spare_node(p, &tables, n, d) && batch_node(p, &tables, n, d);
        }
        if (ok)
            find_scratch(p, &tables, n);
    }
    gy_tables_end(&tables);
    return ok;
}

gantry_status gy_plan_cost(gy_plan *p, gantry_error *err)
{
    size_t nodes = p->graph->nodes.count;
    p->cost.time = gy_calloc(nodes * p->devices + 1, sizeof *p->cost.time);
    p->cost.provenance = gy_calloc(nodes * p->devices + 1, sizeof *p->cost.provenance);
    if (!p->cost.time || !p->cost.provenance || !cost_nodes(p))
        return gy_fail_nomem(err);
    return gy_plan_eligible(p, err);
}

gy_ticks gy_transfer_time(const gy_plan *p, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from == to || bytes == 0)
        return 0;
    return gy_ticks_both(gy_route_time(p->machine, gy_machine_route(p->machine, from, to), bytes),
                         gy_machine_signals(p->machine, from, to));
}

uint32_t gy_plan_nearest(const gy_plan *p, uint32_t task, uint32_t memory, int64_t bytes)
{
    const gy_team *team = gy_plan_team(p, task);
    uint32_t best = p->machine->device[p->placed.device[task]].memory;
    for (uint32_t i = 0; team && i < team->ranks; i++) {
        uint32_t m = p->machine->device[team->device[i]].memory;
        if (gy_transfer_time(p, m, memory, bytes) < gy_transfer_time(p, best, memory, bytes))
            best = m;
    }
    return best;
}
