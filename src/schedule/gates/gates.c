/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/gates/gates.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernel/registry.h"
#include "machine/gpus.h"

typedef struct row {
    uint32_t from, next; /* next: of the same op; GY_NONE */
} row;

typedef struct walk {
    const gantry_schedule *s;
    uint32_t gpus;
    uint32_t *gpu;   /* per device: the GPU whose graph has its lanes, by the lowest device that is it */
    uint32_t *first; /* per op: its first row; GY_NONE */
    row *row;
    gy_gate_waiters waiters;
    gy_ticks *awaited; /* per op: as gy_gate_awaited has it */
    uint32_t *alone;   /* per op: as gy_gate_told has it */
    uint32_t *waits;   /* per op: its GPU, if it waits for another; GY_NONE */
    gy_ticks *end;     /* per op */
    gy_ticks *lane;    /* per lane: the end of its last op so far */
    gy_ticks *passed;  /* per op and GPU: when a gate there has let it through; 0: none has it yet */
    gy_ticks *gate;    /* per GPU: the end of its last gate */
    gy_ticks *told;    /* per GPU: the end of the last op of it that another waits for */
} walk;

static gy_ticks later(gy_ticks a, gy_ticks b)
{
    return a > b ? a : b;
}

bool gy_gates_known(const gantry_machine *m)
{
    return m->edge > 0 && m->gate > 0;
}

/* ---- copies that tell ---- */

static uint32_t told_gpu(const gantry_schedule *s, uint32_t op)
{
    return gy_gates_gpu(s->machine, gy_op_device(s, &s->ops.at[op], 0));
}

void gy_gate_told(uint32_t *to, const gantry_schedule *s)
{
    const uint32_t several = GY_NONE - 1;
    for (size_t i = 0; i < s->ops.count; i++)
        to[i] = GY_NONE;
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *y = &s->sync.at[i];
        if (y->distance > 0 || y->carrier == GY_CARRIER_LANE)
            continue;
        uint32_t other = told_gpu(s, y->to);
        if (other != told_gpu(s, y->from))
            to[y->from] = to[y->from] == GY_NONE || to[y->from] == other ? other : several;
    }
    for (size_t i = 0; i < s->ops.count; i++)
        to[i] = to[i] == several ? GY_NONE : to[i];
}

/* Is the op a copy that a kernel makes, which tells by itself? */
static bool tells(const gantry_schedule *s, uint32_t op, uint32_t to)
{
    const gy_op *o = &s->ops.at[op];
    bool may = gy_op_is_copy(o) && !gy_op_has_flag(o) && s->lanes.at[s->op_lane.at[o->lane]].kind == GY_LANE_COPY;
    if (!may || gy_op_by_engine(s, op))
        return false;
    gy_gate_copies c = { .pairs = o->uses / 2, .told = to != GY_NONE };
    for (uint32_t k = 0; k < c.pairs; k++)
        c.bytes += gy_use_bytes(s, &s->use.at[o->use + k]);
    return gy_gate_tells(&c);
}

gy_ticks gy_gate_cost(const gantry_schedule *s, uint32_t from, uint32_t to)
{
    gy_ticks gate = s->machine->gate, launch = s->machine->device[gy_op_device(s, &s->ops.at[from], 0)].launch;
    if (!tells(s, from, to))
        return gate;
    return gate > launch ? gate - launch : 0;
}

/* ---- ops that wait for another GPU ---- */

void gy_gate_awaited(gy_ticks *end, const gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++)
        end[i] = 0;
    for (size_t i = 0; i < s->sync.count; i++) {
        const gy_sync *y = &s->sync.at[i];
        if (y->distance == 0 && y->carrier != GY_CARRIER_LANE)
            end[y->to] = later(end[y->to], s->ops.at[y->from].end);
    }
}

void gy_gate_waiters_fill(gy_gate_waiters *w, const uint32_t *gpu, size_t ops, uint32_t gpus)
{
    for (uint32_t g = 0; g <= gpus; g++)
        w->first[g] = 0;
    for (size_t i = 0; i < ops; i++)
        if (gpu[i] != GY_NONE)
            w->first[gpu[i] + 1]++;
    for (uint32_t g = 0; g < gpus; g++)
        w->first[g + 1] += w->first[g];
    for (size_t i = 0; i < ops; i++)
        if (gpu[i] != GY_NONE)
            w->op[w->first[gpu[i]]++] = (uint32_t)i;
    for (uint32_t g = gpus; g > 0; g--) /* each is at the end of its GPU by now */
        w->first[g] = w->first[g - 1];
    w->first[0] = 0;
}

/* The first of the GPU that is not ahead of the op. */
static const uint32_t *find_waiter(const gy_gate_waiters *w, uint32_t gpu, uint64_t op)
{
    uint32_t low = w->first[gpu], high = w->first[gpu + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->op[middle] < op)
            low = middle + 1;
        else
            high = middle;
    }
    return &w->op[low];
}

const uint32_t *gy_gate_waiters_from(const gy_gate_waiters *w, uint32_t gpu, uint32_t op)
{
    return find_waiter(w, gpu, op);
}

const uint32_t *gy_gate_waiters_to(const gy_gate_waiters *w, uint32_t gpu, uint32_t op)
{
    return find_waiter(w, gpu, (uint64_t)op + GY_GATE_AHEAD);
}

/* ---- the GPU of each op ---- */

uint32_t gy_gates_gpu(const gantry_machine *m, uint32_t device)
{
    uint32_t found = 0;
    if (!m->device[device].gpu) {
        while (found < m->devices && !m->device[found].gpu)
            found++;
        return found < m->devices ? found : device;
    }
    while (found < device && !(m->device[found].gpu && gy_device_same_gpu(m, found, device)))
        found++;
    return found;
}

static void find_gpus(walk *w)
{
    for (uint32_t i = 0; i < w->s->machine->devices; i++)
        w->gpu[i] = gy_gates_gpu(w->s->machine, i);
}

static uint32_t gpu_of(const walk *w, uint32_t op)
{
    return w->gpu[gy_op_device(w->s, &w->s->ops.at[op], 0)];
}

static bool crosses(const walk *w, uint32_t from, uint32_t to)
{
    return gpu_of(w, from) != gpu_of(w, to);
}

static bool has_graph(const gantry_schedule *s, uint32_t device)
{
    bool has = false;
    for (size_t k = 0; k < s->lanes.count && s->machine->device[device].gpu && !has; k++)
        has = gy_gates_gpu(s->machine, s->lanes.at[k].device) == device;
    return has;
}

/* Devices of a process follow each other. */
static uint32_t count_gpus(const gantry_schedule *s)
{
    uint32_t most = 0, count = 0;
    for (uint32_t i = 0; i < s->machine->devices; i++) {
        bool same = i > 0 && gy_device_rank(s->machine, i) == gy_device_rank(s->machine, i - 1);
        count = (same ? count : 0) + has_graph(s, i);
        most = count > most ? count : most;
    }
    return most;
}

gy_ticks gy_gates_given_out(const gantry_schedule *s, bool each)
{
    const gantry_machine *m = s->machine;
    gy_ticks more = each ? gy_ticks_both(m->another, m->submit) : m->another;
    uint32_t gpus = more ? count_gpus(s) : 0;
    return gpus > 1 ? gy_ticks_repeated(more, gpus - 1) : 0;
}

/* ---- making ---- */

static void close_walk(walk *w)
{
    void *all[] = { w->gpu,  w->first,  w->row,  w->waiters.op, w->waiters.first, w->waits, w->end,
                    w->lane, w->passed, w->gate, w->told,       w->awaited,       w->alone };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gy_free(all[i]);
}

static bool open_walk(walk *w)
{
    const gantry_schedule *s = w->s;
    size_t ops = s->ops.count + 1, devices = s->machine->devices;
    w->gpu = gy_calloc(devices, sizeof *w->gpu);
    w->first = gy_calloc(ops, sizeof *w->first);
    w->row = gy_calloc(s->sync.count + 1, sizeof *w->row);
    w->waiters.op = gy_calloc(ops, sizeof *w->waiters.op);
    w->waiters.first = gy_calloc(devices + 1, sizeof *w->waiters.first);
    w->waits = gy_calloc(ops, sizeof *w->waits);
    w->end = gy_calloc(ops, sizeof *w->end);
    w->lane = gy_calloc(s->lanes.count + 1, sizeof *w->lane);
    w->passed = gy_calloc(ops * devices, sizeof *w->passed);
    w->gate = gy_calloc(devices, sizeof *w->gate);
    w->told = gy_calloc(devices, sizeof *w->told);
    w->awaited = gy_calloc(ops, sizeof *w->awaited);
    w->alone = gy_calloc(ops, sizeof *w->alone);
    bool rows = w->first && w->row && w->waiters.op && w->waiters.first && w->waits && w->alone;
    return rows && w->gpu && w->end && w->lane && w->passed && w->gate && w->told && w->awaited;
}

/* Rows of an op in the order of the table. */
static uint32_t find_rows(walk *w)
{
    uint32_t between = 0;
    for (size_t i = 0; i < w->s->ops.count; i++)
        w->first[i] = w->waits[i] = GY_NONE;
    for (size_t i = w->s->sync.count; i-- > 0;) {
        const gy_sync *y = &w->s->sync.at[i];
        if (y->distance > 0 || y->carrier == GY_CARRIER_LANE)
            continue;
        w->row[i] = (row){ y->from, w->first[y->to] };
        w->first[y->to] = (uint32_t)i;
        if (!crosses(w, y->from, y->to))
            continue;
        w->waits[y->to] = gpu_of(w, y->to);
        between++;
    }
    gy_gate_waiters_fill(&w->waiters, w->waits, w->s->ops.count, w->s->machine->devices);
    return between;
}

/* ---- the longest way ---- */

static const gy_lane *lane_of(const gantry_schedule *s, uint32_t op)
{
    return &s->lanes.at[s->op_lane.at[s->ops.at[op].lane]];
}

/* Of a row within a GPU. */
static gy_ticks signal_of(const walk *w, uint32_t from, uint32_t to)
{
    const gantry_machine *m = w->s->machine;
    const gy_device *a = &m->device[lane_of(w->s, from)->device], *b = &m->device[lane_of(w->s, to)->device];
    return gy_device_signal(a, b, gy_op_by_engine(w->s, from) != gy_op_by_engine(w->s, to));
}

static gy_ticks *passed_of(walk *w, uint32_t op, uint32_t gpu)
{
    return &w->passed[(size_t)op * w->s->machine->devices + gpu];
}

typedef struct open_gate {
    uint32_t gpu, count;
    gy_ticks ready; /* when it has heard of all that it waits for */
    uint32_t from[GY_GATE_MOST];
} open_gate;

static void take(walk *w, open_gate *g, uint32_t from)
{
    gy_ticks *passed = passed_of(w, from, g->gpu);
    if (*passed || g->count == GY_GATE_MOST)
        return;
    *passed = GY_TICKS_MAX; /* it is in the gate that is open */
    g->from[g->count++] = from;
    g->ready = later(g->ready, gy_ticks_both(w->end[from], gy_gate_cost(w->s, from, w->alone[from])));
    w->told[gpu_of(w, from)] = later(w->told[gpu_of(w, from)], w->end[from]);
}

/* As gates are captured: this row, then those of ops behind that hold nothing up. */
static void make_gate(walk *w, uint32_t op, uint32_t from)
{
    const gantry_schedule *s = w->s;
    open_gate g;
    g.gpu = gpu_of(w, op);
    g.count = 0;
    g.ready = 0;
    gy_ticks launch = s->machine->device[g.gpu].launch, end = later(w->awaited[op], s->ops.at[from].end);
    const uint32_t *last = gy_gate_waiters_to(&w->waiters, g.gpu, op);
    take(w, &g, from);
    for (const uint32_t *i = gy_gate_waiters_from(&w->waiters, g.gpu, op); i < last; i++)
        for (uint32_t r = w->first[*i]; r != GY_NONE; r = w->row[r].next)
            if (crosses(w, w->row[r].from, *i) && gy_gate_takes(s, w->row[r].from, op, end))
                take(w, &g, w->row[r].from);
    gy_ticks behind = gy_ticks_both(later(w->gate[g.gpu], w->told[g.gpu]), launch);
    gy_ticks at = later(g.ready, behind);
    w->gate[g.gpu] = at;
    for (uint32_t i = 0; i < g.count; i++)
        *passed_of(w, g.from[i], g.gpu) = at;
}

/* When the op may begin, as far as that row says. */
static gy_ticks awaited(walk *w, uint32_t from, uint32_t op, bool gates)
{
    if (!crosses(w, from, op))
        return gy_ticks_both(w->end[from], signal_of(w, from, op));
    if (!gates)
        return gy_ticks_both(w->end[from], w->s->machine->edge);
    if (!*passed_of(w, from, gpu_of(w, op)))
        make_gate(w, op, from);
    return *passed_of(w, from, gpu_of(w, op));
}

static gy_ticks longest_way(walk *w, bool gates)
{
    const gantry_schedule *s = w->s;
    gy_ticks all = 0;
    for (size_t i = 0; i < s->lanes.count; i++)
        w->lane[i] = 0;
    for (uint32_t op = 0; op < s->ops.count; op++) {
        const gy_op *o = &s->ops.at[op];
        gy_ticks begin = 0;
        for (uint32_t k = 0; k < o->lanes; k++)
            begin = later(begin, w->lane[s->op_lane.at[o->lane + k]]);
        for (uint32_t r = w->first[op]; r != GY_NONE; r = w->row[r].next)
            begin = later(begin, awaited(w, w->row[r].from, op, gates));
        w->end[op] = gy_ticks_both(begin, o->end - o->start);
        for (uint32_t k = 0; k < o->lanes; k++)
            w->lane[s->op_lane.at[o->lane + k]] = w->end[op];
        all = later(all, w->end[op]);
    }
    return all;
}

gantry_status gy_gates_predict(const gantry_schedule *s, gy_gate_times *times, gantry_error *err)
{
    walk w = { .s = s };
    bool room = open_walk(&w);
    *times = (gy_gate_times){ .capture = s->capture };
    if (room) {
        find_gpus(&w);
        times->gpus = count_gpus(s);
        gy_gate_awaited(w.awaited, s);
        gy_gate_told(w.alone, s);
        times->rows = find_rows(&w);
        times->one = gy_ticks_both(longest_way(&w, false), gy_gates_given_out(s, false));
        times->each = times->rows ? gy_ticks_both(longest_way(&w, true), gy_gates_given_out(s, true)) : times->one;
    }
    close_walk(&w);
    return room ? GANTRY_OK : gy_fail_nomem(err);
}

bool gy_gates_pay(const gy_gate_times *times)
{
    if (times->rows == 0 || times->capture != GY_CAPTURE_BY_TIMES)
        return times->rows > 0 && times->capture == GY_CAPTURE_EACH;
    return times->each <= times->one / (100 + GY_GATES_PAY) * 100;
}

bool gy_gates_captured_starts(const gantry_schedule *s)
{
    return s->replay == GY_REPLAY_GRAPH || (s->replay == GY_REPLAY_AUTO && s->in_flight == 1);
}

/* ---- what is left to one graph ---- */

/* Functions of the program, and code that launches by itself, may wait for peers in ways of their own. */
static bool is_of_program(const gantry_schedule *s, const gy_op *op)
{
    if (op->kind != GY_OP_LAUNCH || !s->graph || !s->machine->device[gy_op_device(s, op, 0)].gpu)
        return false;
    uint32_t kernel = s->graph->nodes.at[op->node].kernel;
    return kernel == GY_NONE ? s->graph->nodes.at[op->node].kind == GY_NODE_LAUNCH
                             : gy_kernel_code_launches(s->graph->kernels.at[kernel].code);
}

static const char *obstacle_of(const gantry_schedule *s, const gy_op *op)
{
    if (op->kind == GY_OP_COLLECTIVE)
        return "GPUs carry out collectives together";
    if (op->kind == GY_OP_EVICT || op->kind == GY_OP_FETCH)
        return "rows are moved out of memory and back";
    if (op->node != GY_NONE && s->graph && s->graph->nodes.at[op->node].has_when)
        return "a node has a `when`";
    return is_of_program(s, op) ? "a function of the program launches work, which may wait for other GPUs" : NULL;
}

const char *gy_gates_obstacle(const gantry_schedule *s)
{
    const char *why = gy_machine_ranks(s->machine) > 1 ? "several processes carry it out" : NULL;
    for (size_t i = 0; i < s->ops.count && !why; i++)
        why = obstacle_of(s, &s->ops.at[i]);
    return why;
}

gantry_status gy_gates_chosen(const gantry_schedule *s, bool *each, gantry_error *err)
{
    gy_gate_times times;
    *each = false;
    if (!gy_gates_captured_starts(s) || !gy_gates_known(s->machine) || s->sync.count == 0 || gy_gates_obstacle(s))
        return GANTRY_OK;
    GY_TRY(gy_gates_predict(s, &times, err));
    *each = gy_gates_pay(&times);
    return GANTRY_OK;
}

void gy_gates_tell(gy_text *to, const gy_gate_times *times)
{
    gy_text_printf(to, "%.3f us on the longest way by gates, %.3f us by edges of one graph, %u row%s from GPU to GPU",
                   gy_ticks_to_us(times->each), gy_ticks_to_us(times->one), times->rows, times->rows == 1 ? "" : "s");
}
