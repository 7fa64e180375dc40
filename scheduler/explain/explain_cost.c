/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/explain/explain.h"

#include "scheduler/cost/cost.h"

/* "2.000 us launch + 10.526 us, the longer of ...": the figures of cost.c. */
static void add_roofline(gy_text *to, const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    const gy_kernel_table *like = gy_plan_like(p, node, device);
    gy_ticks waits = gy_node_is_formula(p->graph, n) ? gy_plan_waits(p, node, device) : 0;
    double gflops = gy_plan_gflops(p, node, device), overhead = gy_plan_overhead(p, node, device);
    double bytes = gy_plan_moved(n, d);
    gy_text_printf(to, "roofline: %.3f us launch", gy_ticks_to_us(d->launch));
    if (n->flops > 0 && gflops > 0)
        gy_text_printf(to, "%s %g flops / %g GFLOP/s = %.3f us",
                       n->bytes > 0 && !like ? ", then the longer of" : ", then", n->flops, gflops,
                       n->flops / (gflops * 1e3));
    if (overhead >= 0.001)
        gy_text_printf(to, " and %.3f us to load, convert and join elements", overhead);
    if (like)
        gy_text_printf(to, "; no less than %s (%s) takes for %g bytes, %.3f us", like->kernel,
                       gantry_dtype_name(like->dtype), bytes, gy_ticks_to_us(gy_like_time(like, bytes, d)));
    else if (n->bytes > 0 && d->bandwidth_gbs > 0)
        gy_text_printf(to, "%s %g bytes / %g GB/s = %.3f us", n->flops > 0 && gflops > 0 ? " and" : ", then", bytes,
                       d->bandwidth_gbs, bytes / (d->bandwidth_gbs * 1e3));
    if (bytes > n->bytes)
        gy_text_printf(to, "; its own %g lie in pieces of %g", n->bytes, n->contiguous);
    if (waits)
        gy_text_printf(to, "; %u waits for memory in turn, %.3f us", n->waits, gy_ticks_to_us(waits));
    if (n->flops > 0 && gflops <= 0)
        gy_text_printf(to, "; %g flops count as nothing: the machine gives no GFLOP/s", n->flops);
    if (n->bytes > 0 && d->bandwidth_gbs <= 0)
        gy_text_printf(to, "; %g bytes count as nothing: the machine gives no bandwidth", n->bytes);
}

/* How far beyond its points a table of all arguments is asked. Half of the first still is on the way to it. */
static void add_beyond(gy_text *to, const gy_kernel_table *t, double work)
{
    double first = (double)t->point[0].bytes, last = (double)t->point[t->points - 1].bytes;
    if (work > last)
        gy_text_printf(to, "; extrapolated: the table ends at %g", last);
    else if (2 * work < first)
        gy_text_printf(to, "; extrapolated: the table begins at %g", first);
}

static void add_table(gy_text *to, const gy_kernel_table *t, const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    gy_ticks time = p->cost.time[(size_t)node * p->devices + device]; /* without a pace */
    gy_ticks waits = gy_plan_waits(p, node, device), deep = gy_plan_deep(p, node, device);
    const char *dtype = gantry_dtype_name(t->dtype);
    if (t->arguments) {
        gy_text_printf(to, "measured for these arguments: %s (%s) of %s on %s", t->kernel, dtype, t->arguments,
                       t->kind);
        return;
    }
    gy_text_printf(to, "measured: the machine's table of %s (%s) on %s, at %g %s", t->kernel, dtype, t->kind,
                   gy_plan_work(n, t), t->by_flops ? "flops" : "bytes");
    if (!t->by_flops && gy_plan_work(n, t) > n->bytes)
        gy_text_printf(to, ", as which count its own %g in pieces of %g", n->bytes, n->contiguous);
    add_beyond(to, t, gy_plan_work(n, t));
    if (waits && time == waits)
        gy_text_printf(to, "; its steps wait for memory in turn, %u times, and take longer", n->waits);
    else if (deep && time == deep)
        gy_text_add(to, "; the square product of its depth takes longer");
    else if (time > gy_plan_table_time(p, node, device, t))
        gy_text_printf(to, "; its %g bytes take longer", n->bytes);
}

static void add_measured(gy_text *to, const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    const gy_kernel_table *t = gy_plan_table(p, node, device);
    bool paced = p->machine->pace && node < p->machine->paces;
    if (gy_plan_upload(p, node, device) && !paced && !t)
        gy_text_printf(to, "made by the host once, and uploaded at each start: the machine's table for copies to %s",
                       p->machine->memory[d->memory].id);
    else if (n->kind == GY_NODE_COPY)
        gy_text_printf(to, "measured: the machine's table for copies within %s", p->machine->memory[d->memory].id);
    else if (paced)
        gy_text_printf(to, "measured: %.3g times what the model says, in the starts before",
                       p->machine->pace[(size_t)node * p->devices + device]);
    else if (t)
        add_table(to, t, p, node, device);
}

static void add_provenance(gy_text *to, const gy_plan *p, uint32_t node, uint32_t device)
{
    const gy_node *n = &p->graph->nodes.at[node];
    const gy_device *d = &p->machine->device[device];
    const char *memory = p->machine->memory[d->memory].id;
    switch ((gy_provenance)p->cost.provenance[(size_t)node * p->devices + device]) {
    case GY_COST_GIVEN:
        gy_text_add(to, "given with the node");
        if (d->launch)
            gy_text_printf(to, ", and %.3f us launch", gy_ticks_to_us(d->launch));
        return;
    case GY_COST_MEASURED:
        add_measured(to, p, node, device);
        return;
    case GY_COST_ROOFLINE:
        break;
    }
    if (gy_plan_upload(p, node, device))
        gy_text_printf(
            to, "made by the host once, and uploaded at each start: the machine has no table for copies to %s", memory);
    else if (n->kind == GY_NODE_COPY)
        gy_text_printf(to, "roofline: the machine has no table for copies within %s", memory);
    else
        add_roofline(to, p, node, device);
}

void gy_explain_cost(gy_text *to, const gy_plan *p, uint32_t node)
{
    gy_table t = { .align = "lrl" };
    if (p->graph->nodes.at[node].kind == GY_NODE_COLLECTIVE)
        return;
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_ticks time = gy_plan_time(p, node, d);
        gy_text why = { 0 };
        if (time < GY_TICKS_MAX)
            add_provenance(&why, p, node, d);
        else
            gy_text_add(&why, "cannot run it");
        to->failed = to->failed || why.failed;
        gy_table_cell(&t, "%s", p->machine->device[d].id);
        if (time < GY_TICKS_MAX)
            gy_table_cell(&t, "%.3f us", gy_ticks_to_us(time));
        else
            gy_table_cell(&t, "%s", "");
        gy_table_cell(&t, "%s", why.failed ? "" : why.at);
        gy_text_free(&why);
    }
    gy_text_add(to, "\ncompute\n");
    gy_table_print(&t, to);
}
