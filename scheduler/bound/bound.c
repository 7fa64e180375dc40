/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lower bounds of the time of every schedule on this machine; the largest counts:
 *
 *   path    the longest chain of tasks that must follow each other, each on its fastest device. Transfers between tasks
 *           are left out, since one device could run them all; what comes up from inputs and goes down to outputs
 *           counts where no device in host memory can run the task
 *   area    all work on its fastest devices, spread evenly; and that of each device which no other can do. Launches
 *           that may overlap with others are no work, but count against all lanes together. Work that may be done in
 *           batches counts as what one more adds to one. Where devices are of several kinds, the work is shared out
 *           among these so that it ends first, chains of tasks included (bound_kinds.c)
 *   links   all bytes that must leave host memory, or come back to it, or both, over what a cut of its links carries
 *   memory  the same with states and constants for which the memories of devices have no room
 *
 * Only dependencies that hold whatever memories are used count: reading what was written, and `after`. (A write after a
 * read needs no waiting when they are in different memories, nor does a contribution to a reduction need the value
 * before it.)
 */
#include "scheduler/bound/bound.h"

#include "base/error.h"
#include "scheduler/bound/bound_kinds.h"
#include "scheduler/cost/cost.h"

/* The least time on any device; `alone`: of it what keeps others off the device, launches of small nodes left out. */
static gy_ticks fastest(const gy_plan *p, uint32_t node, bool alone)
{
    gy_ticks best = GY_TICKS_MAX;
    if (p->graph->nodes.at[node].kind == GY_NODE_COLLECTIVE)
        return 0; /* depends on where its ranks are */
    for (uint32_t d = 0; d < p->devices; d++) {
        gy_ticks time = gy_plan_time(p, node, d);
        time -= alone ? gy_device_overlap(&p->machine->device[d], time) : 0;
        best = time < best ? time : best;
    }
    return best;
}

gy_ticks gy_bound_fastest(const gy_plan *p, uint32_t node)
{
    return fastest(p, node, false);
}

/* The same for one among many: in a batch it may take less than alone. */
static gy_ticks least_work(const gy_plan *p, uint32_t node, bool alone, bool batches)
{
    gy_ticks best = fastest(p, node, alone);
    for (uint32_t d = 0; d < p->devices && batches; d++) {
        gy_ticks added = gy_plan_batched(p, node, d);
        best = added < best ? added : best;
    }
    return best;
}

/* Thousandths of a worker that the node takes, where it takes least. */
static uint32_t least_share(const gy_plan *p, uint32_t node)
{
    uint32_t most = 0;
    for (uint32_t d = 0; d < p->workers; d++)
        most = gy_plan_spare(p, node, d) > most ? gy_plan_spare(p, node, d) : most;
    return GY_WHOLE_DEVICE - most;
}

/* Its part of the work that the workers share; copies and collectives have lanes of their own, and what a device for
 * host calls may take is left out. */
static gy_ticks shared_work(const gy_plan *p, uint32_t node, gy_ticks time)
{
    uint32_t share = least_share(p, node);
    if (p->graph->nodes.at[node].kind == GY_NODE_COPY)
        return 0;
    for (uint32_t d = p->workers; d < p->devices; d++)
        if (gy_plan_time(p, node, d) < GY_TICKS_MAX)
            return 0;
    return share < GY_WHOLE_DEVICE ? time / GY_WHOLE_DEVICE * share : time;
}

/* ---- transfers that no placement avoids ---- */

typedef struct bound {
    const gy_plan *p;
    gy_bound_bytes bytes;
    int64_t *rate;     /* per memory: bytes per second that can come in */
    gy_ticks *latency; /* per memory: of what comes in */
    gy_ticks *end;     /* per task: when it can have ended */
} bound;

static void free_bound(bound *b)
{
    gy_bound_bytes_free(&b->bytes);
    gy_free(b->rate);
    gy_free(b->latency);
    gy_free(b->end);
}

static gantry_status make_bound(bound *b, gantry_error *err)
{
    const gantry_machine *m = b->p->machine;
    b->rate = gy_calloc(m->memories, sizeof *b->rate);
    b->latency = gy_calloc(m->memories, sizeof *b->latency);
    b->end = gy_calloc((size_t)b->p->flow->tasks + 1, sizeof *b->end);
    if (!b->rate || !b->latency || !b->end)
        return gy_fail_nomem(err);
    gantry_status status = gy_bound_bytes_find(&b->bytes, b->p, false, err);
    for (uint32_t i = 0; i < m->memories && !status; i++) {
        b->latency[i] = gy_cut_latency(m, i, GY_GO_IN);
        status = gy_cut_rate(&b->rate[i], m, i, GY_GO_IN, err);
    }
    return status;
}

/* When the task has ended at the earliest, if all it waits for has by `ready`. */
static gy_ticks earliest_end(const bound *b, uint32_t task, gy_ticks ready)
{
    const gy_plan *p = b->p;
    uint32_t node = p->flow->task[task].node;
    if (!(b->bytes.waits[task] & GY_WAITS_UP))
        return ready + gy_bound_fastest(p, node);
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t d = 0; d < p->devices; d++) {
        uint32_t memory = p->machine->device[d].memory;
        gy_ticks begin = b->latency[memory] + gy_cut_time(b->bytes.up[task], b->rate[memory]);
        gy_ticks time = gy_plan_time(p, node, d);
        begin = begin > ready ? begin : ready;
        if (time < GY_TICKS_MAX && begin + time < best)
            best = begin + time;
    }
    return best;
}

static gy_ticks fetch(const bound *b, uint32_t task)
{
    bool waits = b->bytes.waits[task] & GY_WAITS_DOWN;
    return waits ? b->latency[0] + gy_cut_time(b->bytes.down[task], b->rate[0]) : 0;
}

static gy_ticks longest_chain(bound *b)
{
    const gy_flow *f = b->p->flow;
    gy_ticks chain = 0;
    for (uint32_t t = 0; t < f->tasks; t++) {
        gy_ticks ready = 0;
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            if (b->end[d->from] > ready && gy_plan_holds(b->p, d, t))
                ready = b->end[d->from];
        b->end[t] = earliest_end(b, t, ready);
        gy_ticks last = b->end[t] + fetch(b, t);
        chain = last > chain ? last : chain;
    }
    return chain;
}

/* The only device that can run the node; GY_NONE: there are several. */
static uint32_t only_device(const gy_plan *p, uint32_t node)
{
    uint32_t only = GY_NONE;
    for (uint32_t d = 0; d < p->workers; d++)
        if (gy_plan_time(p, node, d) < GY_TICKS_MAX) {
            if (only != GY_NONE)
                return GY_NONE;
            only = d;
        }
    return only;
}

/* How many ops can be under way at a time, launches included. */
static int64_t compute_lanes(const gy_plan *p)
{
    int64_t count = 0;
    for (uint32_t d = 0; d < p->workers; d++)
        count += p->machine->device[d].gpu ? p->machine->device[d].lanes : 1;
    return count;
}

/* Sums stop at GY_TICKS_MAX: less is still a bound. */
static gantry_status area(const gy_plan *p, gy_ticks *most, gantry_error *err)
{
    gy_ticks *sum = gy_calloc((size_t)p->workers + 1, sizeof *sum), all = 0, whole = 0;
    bool batches = gy_plan_may_batch(p);
    if (!sum)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < p->flow->tasks && whole < GY_TICKS_MAX; t++) {
        uint32_t node = p->flow->task[t].node;
        gy_ticks work = shared_work(p, node, least_work(p, node, true, batches));
        uint32_t device = work ? only_device(p, node) : GY_NONE;
        all += work;
        whole += shared_work(p, node, least_work(p, node, false, batches));
        if (device != GY_NONE)
            sum[device] += work;
    }
    *most = all / p->workers;
    *most = whole / compute_lanes(p) > *most ? whole / compute_lanes(p) : *most;
    for (uint32_t d = 0; d < p->workers; d++)
        *most = sum[d] > *most ? sum[d] : *most;
    gy_free(sum);
    return GANTRY_OK;
}

/* Bytes of states and constants for which the memories of devices have no room: they come up in every start. */
static int64_t overflow(const bound *b)
{
    const gy_plan *p = b->p;
    uint64_t room = 0, kept = (uint64_t)b->bytes.kept;
    for (uint32_t i = 1; i < p->machine->memories && room < kept; i++)
        room += p->capacity[i];
    return room < kept ? (int64_t)(kept - room) : 0;
}

static gantry_status cross(const bound *b, gy_direction which, int64_t bytes, gy_ticks *most, gantry_error *err)
{
    int64_t rate = 0;
    gantry_status status = gy_cut_rate(&rate, b->p->machine, 0, which, err);
    gy_ticks t = status ? 0 : gy_cut_time(bytes, rate);
    *most = t > *most ? t : *most;
    return status;
}

/* All that goes up and comes down in one start. */
static gantry_status cross_links(const bound *b, gy_ticks *most, gantry_error *err)
{
    GY_TRY(cross(b, GY_GO_OUT, b->bytes.ups, most, err));
    GY_TRY(cross(b, GY_GO_IN, b->bytes.downs, most, err));
    return cross(b, GY_GO_BOTH, b->bytes.ups + b->bytes.downs, most, err);
}

typedef struct least {
    gy_ticks time;
    const char *by;
} least;

static void raise_bound(least *to, gy_ticks time, const char *by)
{
    if (!to->by || time > to->time)
        *to = (least){ time, by };
}

static gantry_status find(const gy_plan *p, least *to, gantry_error *err)
{
    bound b = { .p = p };
    gy_ticks work = 0, links = 0, memory = 0;
    gantry_status status = make_bound(&b, err);
    if (!status)
        status = area(p, &work, err);
    if (!status)
        status = gy_bound_kinds(p, true, &work, err);
    if (!status)
        status = cross_links(&b, &links, err);
    if (!status)
        status = cross(&b, GY_GO_OUT, b.bytes.ups + overflow(&b), &memory, err);
    if (!status) {
        *to = (least){ 0 };
        raise_bound(to, longest_chain(&b), "path");
        raise_bound(to, work, "area");
        raise_bound(to, links, "links");
        raise_bound(to, memory, "memory");
        if (to->time > 0) /* there is an op, and it comes after that */
            to->time = gy_ticks_both(to->time, p->machine->start);
    }
    free_bound(&b);
    return status;
}

/* The same of a start in which no node with a `when` runs. A schedule is for all starts: what such a node reads is
 * brought all the same, and who waits for it waits until its flag was asked. So it is the bound of the same graph with
 * what that takes in place of what the node takes. */
static gantry_status find_without(const gy_plan *p, least *to, gantry_error *err)
{
    size_t nodes = p->graph->nodes.count;
    gy_plan unset = *p;
    unset.cost.time = gy_calloc(nodes * p->devices + 1, sizeof *unset.cost.time);
    if (!unset.cost.time)
        return gy_fail_nomem(err);
    for (size_t at = 0; at < nodes * p->devices; at++) {
        bool asks = p->graph->nodes.at[at / p->devices].has_when && p->cost.time[at] < GY_TICKS_MAX;
        unset.cost.time[at] = asks ? gy_device_when(p->machine, (uint32_t)(at % p->devices), false) : p->cost.time[at];
    }
    gantry_status status = find(&unset, to, err);
    gy_free(unset.cost.time);
    return status;
}

static bool has_when(const gantry_graph *g)
{
    for (size_t i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i].has_when)
            return true;
    return false;
}

gantry_status gy_plan_bound(gy_plan *p, gantry_error *err)
{
    least all, none;
    int64_t bytes = 0;
    GY_TRY(find(p, &all, err));
    none = all;
    GY_TRY(has_when(p->graph) ? find_without(p, &none, err) : GANTRY_OK);
    GY_TRY(gy_bound_moved(p, &bytes, err));
    p->bound =
        (gy_bound){ .time = all.time, .bytes = bytes, .by = all.by, .without = none.time, .without_by = none.by };
    return GANTRY_OK;
}

void gy_bound_tell(gantry_schedule *s, const gy_bound *b)
{
    s->bound = b->time;
    s->bound_by = b->by;
    s->bound_without = b->without;
    s->bound_without_by = b->without_by;
    s->bytes_needed = (uint64_t)b->bytes;
}

gantry_status gy_bound_throughput(const gy_plan *p, gy_ticks *time, gantry_error *err)
{
    bound b = { .p = p };
    gy_ticks work = 0, links = 0;
    gantry_status status = make_bound(&b, err);
    if (!status)
        status = area(p, &work, err);
    if (!status)
        status = gy_bound_kinds(p, false, &work, err);
    if (!status)
        status = cross_links(&b, &links, err);
    if (!status)
        *time = links > work ? links : work;
    free_bound(&b);
    return status;
}
