/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The schedule as data. Everything that running, simulating, checking and drawing need is here; nothing of the
 * scheduler is. Arrays are flat; ids are indices. Ops are stored in their total order: the position of op i is i.
 *
 * Memories, devices: indices of `machine`. Values, rows: those of the graph's flow (graph/flow.h). Times: ticks.
 */
#ifndef GY_SCHEDULE_SCHEDULE_H
#define GY_SCHEDULE_SCHEDULE_H

#include "base/arena.h"
#include "base/ticks.h"
#include "base/vec.h"
#include "graph/flow/flow.h"
#include "graph/phase.h"
#include "machine/machine.h"
#include <gantry/schedule.h>
#include <stdbool.h>

/* The objectives that a schedule can be made for, in the order of gy_objective_words; replay modes likewise. AUTO is
 * made as STREAM, and the back end may capture it as a graph. DEVICE is the same with counters beside the sync table.
 */
typedef enum gy_objective { GY_OBJECTIVE_MAKESPAN, GY_OBJECTIVE_PERIOD, GY_OBJECTIVE_MAX_LOAD } gy_objective;
/* How a start is captured: as the times of ops choose, or as what they were simulated as, all of it or a GPU's part. */
typedef enum gy_capture { GY_CAPTURE_BY_TIMES, GY_CAPTURE_ONE, GY_CAPTURE_EACH } gy_capture;
typedef enum gy_replay { GY_REPLAY_STREAM, GY_REPLAY_GRAPH, GY_REPLAY_AUTO, GY_REPLAY_DEVICE } gy_replay;

/* Names and sizes of values, so that a schedule file can be drawn and simulated without its graph. */
typedef struct gy_schedule_value {
    const char *name; /* the buffer's */
    uint32_t buffer, generation;
    int64_t rows;
    int64_t row_bytes;               /* 0: tiled, see offset */
    const int64_t *offset;           /* rows + 1 byte offsets of a tiled buffer, else NULL */
    int32_t axes;                    /* of a tiled buffer, else 0 */
    int64_t tiles[GANTRY_TILE_AXES]; /* tiled: along each axis, 1 behind the last; their product is `rows` */
} gy_schedule_value;

typedef enum gy_space {
    GY_SPACE_SLAB,   /* offset in the memory's slab */
    GY_SPACE_INPUT,  /* memory that a buffer is bound to; read only. `offset` counts from row 0 of the buffer */
    GY_SPACE_OUTPUT, /* memory that an output is fetched to. Both: memory 0, or that of an external buffer */
    GY_SPACE_STAGING /* offset in the pinned staging memory (memory 0) */
} gy_space;

/*
 * Rows [first, last) of a value, contiguous in one memory. Instances of the spaces INPUT and OUTPUT and of the role
 * PERSIST belong to a buffer, so their value is the buffer's own (value == buffer, generation 0), also where the buffer
 * is carried and its final value is another one: then a copy op brings rows home, from an instance of the other value
 * to this one (the only copies, beside those of copy nodes, whose two values may differ). Their offset (INPUT, OUTPUT)
 * is that of row `first` in the whole array.
 */
typedef struct gy_instance {
    uint32_t value;
    uint32_t memory;
    uint8_t space; /* gy_space */
    uint8_t role;  /* gy_role */
    uint8_t op;    /* ACCUMULATOR: the reduction, GANTRY_SUM ... */
    int64_t first, last;
    uint64_t offset, bytes;
} gy_instance;

typedef enum gy_role {
    GY_ROLE_DATA,
    GY_ROLE_ACCUMULATOR, /* begins as the identity, takes contributions, is combined by a collective */
    GY_ROLE_PERSIST,     /* a state or const buffer: holds its rows from start to start (set up by the run) */
    GY_ROLE_EXTERNAL     /* INPUT and OUTPUT spaces */
} gy_role;

/* One access of an op: rows [first, last) in one instance that contains them. */
typedef struct gy_use {
    uint32_t instance;
    uint8_t mode;  /* gantry_access; contributions keep SUM/MIN/MAX/PROD */
    uint16_t rank; /* collectives: the rank; else 0 */
    int64_t first, last;
} gy_use;

typedef enum gy_op_kind {
    GY_OP_LAUNCH, /* a kernel, launch or work node: uses are the node's accesses, in their order */
    GY_OP_HOST,   /* a host node; the same */
    GY_OP_FILL,   /* a fill node (node set), or an accumulator set to its identity (node GY_NONE): one write */
    GY_OP_COPY,   /* use 0 read, use 1 write, same rows of the same value (transfers, node GY_NONE), or a copy node's */
    GY_OP_COLLECTIVE, /* `ins` reads in rank order, then the writes in rank order */
    GY_OP_EVICT,
    GY_OP_FETCH /* copies made to free memory and to bring rows back; as GY_OP_COPY */
} gy_op_kind;

/*
 * An inserted collective (node GY_NONE) means, row by row of one value: each write receives, for each of its rows,
 * what the reads that contain that row hold; where several do (accumulators), they are combined with `reduce` in the
 * order of the reads, a read with role DATA or PERSIST (the previous value) first. Its kind is a name for cost, drawing
 * and back ends.
 */
typedef struct gy_op {
    uint8_t kind;               /* gy_op_kind */
    uint8_t collective, reduce; /* gantry_collective; gantry_access or 0 */
    uint8_t algorithm;          /* collectives: gy_algorithm (machine.h); NONE: the back end chooses */
    uint32_t node, iteration;   /* of the graph; GY_NONE, 0 for what scheduling added */
    uint32_t use, uses, ins;    /* range of schedule->use; collectives: how many are reads */
    uint32_t lane, lanes;       /* range of schedule->op_lane: the lanes it occupies, one for all but collectives */
    gy_ticks duration;   /* alone: compute, or a collective as a whole. Copies: from the route and bytes, here too */
    gy_ticks start, end; /* predicted, with contention */
    uint8_t provenance;  /* gy_provenance of `duration` */
    uint16_t spare;      /* thousandths of its device that it leaves to others; 0: it fills the device */
    bool repeat; /* the task was carried out before, and is again, for rows that are gone or that are wanted elsewhere:
                    not the task's own op */
    bool joined; /* it is in the batch of an op before it */
    uint32_t batch; /* so many ops are one batch, this one and those right behind it, which are `joined`; 0: it begins
                       none */
} gy_op;

/*
 * A batch: launches of alike nodes (graph/alike.h), copies between the same two memories, or collectives of one kind
 * among the same lanes, one right behind the other, which a back end may carry out by one call. They begin together,
 * when all that any of them waits for has ended, so rows of the sync table lead to the first only, and none of them
 * touches what another writes. The first has the duration of all.
 */

typedef enum gy_provenance { GY_COST_GIVEN, GY_COST_MEASURED, GY_COST_ROOFLINE } gy_provenance;

typedef enum gy_lane_kind { GY_LANE_COMPUTE, GY_LANE_COPY, GY_LANE_COLLECTIVE } gy_lane_kind;
/* A queue of a device: its ops run in order of position. Copies run on a lane of one of the two ends. */
typedef struct gy_lane {
    uint32_t device;
    uint8_t kind;
    bool urgent; /* whoever runs it should let its ops go before those of other lanes */
} gy_lane;

typedef enum gy_carrier {
    GY_CARRIER_LANE,  /* both ops are in one lane, `from` first: nothing to do */
    GY_CARRIER_EVENT, /* signalled when `from` ends, awaited before `to` begins; `slot` is the event */
    GY_CARRIER_EDGE,  /* an edge of a captured graph */
    GY_CARRIER_FLAG   /* a flag in memory; `slot` */
} gy_carrier;

typedef enum gy_reason {
    GY_WHY_DATA,
    GY_WHY_ORDER /* anti, output, `after` */,
    GY_WHY_REUSE /* of an address */
} gy_reason;

/*
 * The sync table: every dependency that is kept, and how it is carried. Happens-before is made of lane order, of the
 * rows with a carrier other than LANE, and of the in-flight limit (start i ends before start i + in_flight begins);
 * nothing else. A row says: `to` of iteration i + distance begins after `from` of iteration i has ended.
 */
typedef struct gy_sync {
    uint32_t from, to;
    uint32_t distance;
    uint8_t carrier, reason;
    uint32_t slot;
} gy_sync;

/*
 * Counters (docs/design/counters.md): how lanes wait for each other where no host looks after them, in a start and from
 * start to start. The k-th signal, counted from 1, of n leaves epoch * n + k, where epoch counts starts from 0; a wait
 * of distance d goes on from (epoch - d) * n + value, and has nothing to wait for in the first d starts.
 */
typedef struct gy_counter {
    uint32_t from, to;        /* lanes: `from` alone writes the counter, `to` alone reads it, in its device's memory */
    uint32_t signal, signals; /* range of gy_counters.signal */
    uint32_t wait, waits;     /* range of gy_counters.wait */
} gy_counter;
typedef struct gy_counter_wait {
    uint32_t op, value, distance; /* in the order of ops, no op twice */
} gy_counter_wait;
typedef struct gy_counters {
    GY_VEC(gy_counter) at;   /* in the order of `from`, then `to` */
    GY_VEC(uint32_t) signal; /* ops, in their order: they signal when they have ended */
    GY_VEC(gy_counter_wait) wait;
} gy_counters;
#define GY_COUNTER_BYTES 128 /* from one counter to the next in a memory: no two in one line of a cache */

/* An attempt of the scheduler before it chose this schedule, for reports. Names are static. */
typedef struct gy_tried {
    const char *policy;
    const char *skipped;  /* why it did not run, or NULL */
    gy_ticks makespan;    /* simulated; skipped: 0 */
    uint64_t evaluations; /* search: placements looked at; else 0 */
    uint32_t devices;     /* so many of the machine's took part; 0: all might */
    bool tight;           /* it did not fit in memory as it was placed: skipped, or spilled */
} gy_tried;

typedef GY_VEC(uint64_t) gy_sizes;

/*
 * One phase of a schedule of a graph that is not unrolled (graph/phase.h): an ordinary schedule of the derived graph.
 * The schedule that holds phases has no ops of its own; its slabs are as large as the largest of theirs, since the
 * phases run one after the other in the same memory. Values go from phase to phase through host memory.
 */
typedef struct gy_schedule_phase {
    gy_phase phase;
    gantry_schedule *schedule;
    gy_ticks hand_over; /* predicted: copying what persists into the memories of the phase, and what later phases need
                           back */
} gy_schedule_phase;

struct gantry_schedule {
    int refs;
    gy_arena arena;      /* strings and offsets below */
    gantry_graph *graph; /* NULL: read from a file and not attached */
    gantry_machine *machine;
    const char *graph_name;
    uint64_t graph_hash;
    const char *policy;
    gy_replay replay;
    gy_capture capture;
    gy_objective objective;
    const char *balance; /* how automatic splits were cut: a word of gy_balance_words; NULL: there are none */
    int32_t effort;
    uint64_t seed;
    uint32_t unroll, in_flight; /* U iterations a period; starts that may overlap */
    GY_VEC(gy_param) params;
    GY_VEC(struct gy_part_bounds {
        const char *buffer;
        uint32_t parts;
        const int64_t *first;
    })
    bounds; /* split buffers, resolved; with phases: automatic splits, and all phases have the same */
    GY_VEC(gy_schedule_value) values;
    GY_VEC(gy_instance) instances;
    GY_VEC(gy_lane) lanes;
    GY_VEC(gy_op) ops;
    GY_VEC(gy_use) use;
    GY_VEC(uint32_t) op_lane;
    GY_VEC(gy_sync) sync;
    gy_counters counters;          /* with replay "device" only */
    GY_VEC(const char *) node_ids; /* id of each graph node */
    GY_VEC(uint32_t) node_op; /* of each node: its op of the first iteration, GY_NONE; empty until gy_schedule_index */
    gy_sizes slab;            /* bytes of each memory's slab (== peak, aligned) */
    uint64_t staging;         /* bytes of the staging space */
    gy_sizes window;          /* of each slab, see gy_instance_address; empty: all 0 */
    uint64_t staging_window;  /* the same of the staging space */
    gy_ticks period, period_bound; /* objective "period": from one start to the next; else 0. As makespan, bound */
    gy_ticks makespan, bound;
    GY_VEC(gy_schedule_phase) phases; /* empty: this is an ordinary schedule */
    const char *bound_by; /* the reason of the bound, static (scheduler/bound); NULL in a schedule from a file, which
                             does not say it */
    /* Of a start in which no node with a `when` runs, as makespan, bound and bound_by. `without` is -1, and the others
     * say nothing, in a schedule from a file. */
    gy_ticks without, bound_without;
    const char *bound_without_by;
    gy_ticks by_host, by_device; /* what a start was predicted to take with launches, and carried out by the devices
                                    (GY_TICKS_MAX: nothing of it can be), where replay "auto" held one against the
                                    other; both 0: it did not. Not in its file */
    uint64_t bytes_needed;       /* the bound of the bytes that are moved; 0 in a schedule from a file */
    GY_VEC(gy_tried) tried;      /* for reports; not part of the schedule, and not in its file */
    GY_VEC(gy_ticks) load;       /* per device, with objective "max_load" (scheduler/load.h); not in its file either */
};

gantry_schedule *gy_schedule_ref(const gantry_schedule *schedule);
gantry_schedule *gy_schedule_alloc(void); /* empty, refs 1, unroll 1, in_flight 1 */

/* A value of the graph's flow; name and offsets are those of its buffer, borrowed. */
gy_schedule_value gy_schedule_value_of(const gantry_graph *graph, const gy_flow *flow, uint32_t value);

/* Fills node_op, so that gantry_schedule_device_of need not search. The maker of a schedule calls it when the ops are
 * final. */
gantry_status gy_schedule_index(gantry_schedule *schedule, gantry_error *err);

/* Where a buffer is bound: host memory, or the memory that an external one names. GY_NONE: the machine has none of that
 * name. */
uint32_t gy_buffer_home(const gantry_machine *machine, const gy_buffer *buffer);
/* Outputs of so many bytes stay where they were made until a run ends. Smaller ones go to rank 0 in each start: that
 * costs next to nothing, and programs look at a loss after each. */
enum { GY_OUTPUT_APART = 1 << 16 };
/* May the array of an input or output be in the memory, where each process has one? */
bool gy_buffer_is_at(const gantry_machine *machine, const gy_buffer *buffer, uint32_t memory);
/* The device of an op's lane number `lane`; 0 is the one that carries out whatever has no more than one. */
static inline uint32_t gy_op_device(const gantry_schedule *s, const gy_op *op, uint32_t lane)
{
    return s->lanes.at[s->op_lane.at[op->lane + lane]].device;
}
/* Behind the read and write of a copy, or the write of a fill, stands the flag of the node's `when`, if it has one. */
static inline bool gy_op_has_flag(const gy_op *op)
{
    return (op->kind == GY_OP_COPY && op->uses == 3) || (op->kind == GY_OP_FILL && op->uses == 2);
}
/* Its node has a `when`. The schedule has its graph. */
static inline bool gy_op_is_conditional(const gantry_schedule *s, const gy_op *op)
{
    return op->node != GY_NONE && s->graph->nodes.at[op->node].has_when;
}
/* It calls a function: a kernel's, or one of the program. */
static inline bool gy_op_calls(const gy_op *op)
{
    return op->kind == GY_OP_LAUNCH || op->kind == GY_OP_HOST;
}
static inline bool gy_op_may_batch(const gy_op *op)
{
    return op->kind == GY_OP_LAUNCH || (op->kind == GY_OP_COPY && !gy_op_has_flag(op)) || op->kind == GY_OP_COLLECTIVE;
}
static inline bool gy_op_is_copy(const gy_op *op)
{
    return op->kind == GY_OP_COPY || op->kind == GY_OP_EVICT || op->kind == GY_OP_FETCH;
}

/* Where `row` of an instance begins, counted from the instance's first byte. */
uint64_t gy_instance_offset(const gantry_schedule *s, const gy_instance *instance, int64_t row);
/*
 * Starts that overlap need bytes of their own. A slab, and the staging space, end with in_flight windows of one size.
 * What lies in the first of them in the schedule lies, in start n (from 0), n mod in_flight windows further; what lies
 * before them is at one address in every start, and what persists always does. A window of 0 bytes: nothing moves.
 */
uint64_t gy_instance_window(const gantry_schedule *s, const gy_instance *instance); /* of its space; 0 outside */
uint64_t gy_instance_room(const gantry_schedule *s, const gy_instance *instance);   /* bytes of its space; 0 outside */
/* Its offset in a start. */
uint64_t gy_instance_address(const gantry_schedule *s, const gy_instance *instance, uint64_t start);
static inline uint64_t gy_use_bytes(const gantry_schedule *s, const gy_use *u)
{
    const gy_instance *i = &s->instances.at[u->instance];
    return gy_instance_offset(s, i, u->last) - gy_instance_offset(s, i, u->first);
}
/* In a lane for copies, and by a copy engine: small ones that a kernel makes (`kernel_bytes` of the route) are not. */
bool gy_op_by_engine(const gantry_schedule *s, uint32_t op);
/* Rows of a value as gy_named_rows_text has them, and those of a use. Appends. */
void gy_value_rows_text(gy_text *to, const gantry_schedule *s, uint32_t value, int64_t first, int64_t last);
void gy_use_text(gy_text *to, const gantry_schedule *s, const gy_use *use);
/* "blur[3]", "copy x[1] host -> gpu0", "all_reduce total": for messages, pictures and traces. Appends. */
void gy_op_text(gy_text *to, const gantry_schedule *s, uint32_t op);
const char *gy_op_kind_name(gy_op_kind kind);
const char *gy_carrier_name(gy_carrier carrier);
const char *gy_reason_name(gy_reason reason);
const char *gy_provenance_name(gy_provenance provenance);

/* Rule form checks every index, size, name and mode; it needs no graph. Code that reads a schedule which passes need
 * not check them again. E_SCHEDULE with "rule form: ..." and the pointer of the thing in the file format. */
gantry_status gy_schedule_form(const gantry_schedule *s, gantry_error *err);

/* The graph as the schedule means it: with the automatic splits cut where the schedule says. Another owner of `graph`
 * where that is so already. E_SCHEDULE: the graph cannot be cut so. */
gantry_status gy_schedule_graph(gantry_graph **out, const gantry_schedule *s, const gantry_graph *graph,
                                gantry_error *err);

/* ---- phases (phases.c) ---- */

/* The schedule that has the node: that of a phase, or `s` itself. NULL: none has. */
const gantry_schedule *gy_schedule_of_node(const gantry_schedule *s, uint32_t node);
/* Sums and maxima over the phases of a schedule: makespan, bound, slabs. Phases, with hand-overs, are final. */
gantry_status gy_schedule_phases_sum(gantry_schedule *s, gantry_error *err);

#endif
