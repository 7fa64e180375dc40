/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the checker. Files, in the order in which they are used: form.c and form_op.c (what needs no graph),
 * check.c (entry, graph against schedule), check_node.c, check_place.c, check_order.c, check_ranks.c (rules that hold
 * without running), then the walk: check_expect.c (what reads should see), check_clock.c (happens-before),
 * check_bytes.c and check_fragments.c (what bytes hold), check_after.c, check_walk.c, check_exit.c; check_counters.c.
 * docs/design/schedule.md has the rules.
 */
#ifndef GY_SCHEDULE_CHECK_CHECK_H
#define GY_SCHEDULE_CHECK_CHECK_H

#include "base/imap.h"
#include "base/map.h"
#include "schedule/check/verify.h"
#include "schedule/form.h"
#include "schedule/words.h"

/* A short text by value, for the arguments of messages. */
typedef struct gy_label {
    char at[120];
} gy_label;
gy_label gy_label_op(const gantry_schedule *s, uint32_t op); /* 'op 3 "copy x host -> gpu0"' */
gy_label gy_label_rows(const gantry_schedule *s, uint32_t value, int64_t first, int64_t last); /* "x{0:4}" */

/* ---- contents (check_content.c) ---- */

/* Index of a content in the table; equal contents have equal indices. */
typedef uint32_t gy_content_id;
#define GY_UNKNOWN 0 /* nothing known: not initialised, or mixed up */

typedef enum gy_base_kind {
    GY_BASE_UNKNOWN,
    GY_BASE_WRITE,
    GY_BASE_ENTRY,
    GY_BASE_IDENTITY,
    GY_BASE_AFTER
} gy_base_kind;

typedef struct gy_content {
    uint8_t base_kind; /* gy_base_kind */
    uint8_t op;        /* reduction of the contributions, 0 without any */
    uint64_t base;     /* WRITE: flow access; ENTRY: buffer; IDENTITY: dtype * 8 + op; AFTER: a gy_content_id */
    uint64_t sum[2];   /* of the hashes of the contributions, modulo 2^128; low half first */
    uint64_t count;    /* of contributions, for messages */
} gy_content;

typedef struct gy_contents {
    GY_VEC(gy_content) at;
    gy_map index; /* hash -> id; the next free key where two share one */
    bool failed;  /* out of memory; ids are GY_UNKNOWN from then on */
} gy_contents;

bool gy_contents_init(gy_contents *c);
void gy_contents_free(gy_contents *c);
gy_content_id gy_content_write(gy_contents *c, uint64_t flow_access);
gy_content_id gy_content_entry(gy_contents *c, uint32_t buffer);
gy_content_id gy_content_identity(gy_contents *c, gantry_dtype dtype, gantry_access op);
/* One contribution more; UNKNOWN stays UNKNOWN. */
gy_content_id gy_content_add(gy_contents *c, gy_content_id to, gantry_access op, uint64_t flow_access);
/* Both combined: at most one may have another base than the identity of `op`, else UNKNOWN. */
gy_content_id gy_content_combine(gy_contents *c, gy_content_id a, gy_content_id b, gantry_dtype dtype,
                                 gantry_access op);
/* True for an identity without contributions, which is the same in every row. */
bool gy_content_is_plain(const gy_contents *c, gy_content_id id);

/* ---- happens-before (check_clock.c) ---- */

/* An op in one of the starts of the window. */
typedef struct gy_stamp {
    uint32_t op, start; /* op GY_NONE: no op */
} gy_stamp;

/* Part of a clock, which is a tree over lanes: those without a count have no nodes, and clocks share what they have in
 * common, as nodes never change. */
enum { GY_CLOCK_BITS = 5, GY_CLOCK_FAN = 1 << GY_CLOCK_BITS };
typedef struct gy_clock_node {
    uint32_t slot[GY_CLOCK_FAN]; /* counts of lanes in the lowest level, nodes above it; 0: nothing in either */
    uint32_t owners;             /* clocks and nodes that have it */
} gy_clock_node;

typedef struct gy_clocks {
    const gantry_schedule *s;
    const gy_sync *sync; /* what lets ops wait, over so many starts */
    size_t syncs;
    uint32_t starts;
    bool watch;         /* looks for rows that the lane and the rows before them imply, in the last start */
    uint32_t needless;  /* one more than the last such row; 0: none so far */
    uint32_t height;    /* levels of a clock, less one */
    uint32_t *lane_ops; /* per lane: ops of one start in it */
    uint32_t *rank;     /* per op: its number in its first lane, from 0 */
    size_t *row_first;  /* ops + 1: rows of the sync table by `to` */
    uint32_t *row;
    uint32_t *lane_clock;       /* per lane: clock of its last op */
    uint32_t *seen;             /* per lane: ops of it so far, this start included */
    uint32_t now;               /* the clock of the current op, itself included; in a batch: of the batch's beginning */
    uint32_t *before_batch;     /* per lane of the last op that joins none: ops that had ended in it when that began */
    uint32_t *kept, *left;      /* per start and op: its clock, and how many rows will still ask for it */
    GY_VEC(gy_clock_node) node; /* 0: nothing */
    uint32_t unused;            /* the first node that is free for use; its slot 0 is the next */
} gy_clocks;

gantry_status gy_clocks_init(gy_clocks *c, const gantry_schedule *s, gantry_error *err); /* of the sync table */
/* The same of other rows; rows of one `to` are taken in their order. */
gantry_status gy_clocks_of(gy_clocks *c, const gantry_schedule *s, const gy_sync *rows, size_t count, uint32_t starts,
                           gantry_error *err);
void gy_clocks_free(gy_clocks *c);
/* The next op in the order (start by start, position by position). false: out of memory. */
bool gy_clocks_step(gy_clocks *c, uint32_t start, uint32_t op);
/* True if `earlier` ends before the current op begins, or is the current op. (An op that joins a batch does not know
 * that it is the current one.) */
bool gy_clocks_before(const gy_clocks *c, gy_stamp earlier);
/* The ops of the lane that end before the current op begins, itself included. */
uint32_t gy_clocks_count(const gy_clocks *c, uint32_t lane);
/* How many ops of the lane of `op` are up to and including it: what the clocks count. */
uint32_t gy_clocks_tick(const gy_clocks *c, gy_stamp op);

/* ---- what reads should see (check_expect.c) ---- */

typedef struct gy_expected {
    int64_t first, last; /* rows */
    gy_content_id content;
} gy_expected;
typedef GY_VEC(gy_expected) gy_runs;

typedef struct gy_expect {
    gy_runs run;
    size_t *first;  /* two per flow access: its runs are [first, second); none for writes and contributions */
    gy_imap *value; /* rows -> content at the end, of the values that were touched (`at` NULL: not yet) */
    uint32_t values;
} gy_expect;

/* ---- what bytes hold (check_bytes.c) ---- */

typedef struct gy_read_record {
    gy_stamp who;
    uint32_t next;
} gy_read_record;

/* One run of bytes of a space. */
typedef struct gy_cell {
    gy_content_id content;
    uint32_t geometry;
    int64_t base;     /* address where row 0 of the content would begin */
    gy_stamp writer;  /* the last */
    uint32_t readers; /* since then; only those not ordered before a later one. GY_NONE: none */
} gy_cell;

typedef struct gy_bytes {
    uint32_t memories;
    gy_imap *space; /* slab of each memory, staging, then an output space per buffer; `at` NULL: not used */
    size_t spaces;
    GY_VEC(gy_cell) cell;
    GY_VEC(uint32_t) unused;
    GY_VEC(gy_read_record) reader;
    uint32_t unused_reader;
    bool failed;
} gy_bytes;

/* Ops of a lane that must have ended (check_after.c). */
typedef struct gy_lane_limit {
    uint32_t lane, tick;
} gy_lane_limit;

typedef struct gy_check {
    const gantry_schedule *s;
    const gantry_graph *graph;
    const gy_flow *flow;
    gantry_error *err;
    uint32_t *geometry;
    size_t *task_first;       /* nodes + 1: tasks of node n are task[task_first[n] + iteration] */
    uint32_t *task, *task_op; /* task of (node, iteration); op of a task */
    gy_contents contents;
    gy_expect expect;
    gy_clocks clocks;
    gy_bytes bytes;
    struct gy_after_limits {
        gy_map of_node; /* node -> its first limit */
        GY_VEC(gy_lane_limit) limit;
        size_t *of_lane; /* per lane: the limit that was added last */
    } after;             /* see check_after.c */
    gy_stamp now;
} gy_check;

static inline const gy_instance *gy_use_instance(const gy_check *k, const gy_use *u)
{
    return &k->s->instances.at[u->instance];
}
static inline const gy_op *gy_check_op(const gy_check *k, uint32_t op)
{
    return &k->s->ops.at[op];
}
static inline uint32_t gy_iterations(const gy_check *k, uint32_t node)
{
    return (uint32_t)(k->task_first[node + 1] - k->task_first[node]);
}
/* The task of an op with a node, whose iteration is in range. */
static inline uint32_t gy_task_of(const gy_check *k, const gy_op *op)
{
    return k->task[k->task_first[op->node] + op->iteration];
}
gantry_dtype gy_value_dtype(const gy_check *k, uint32_t value);

/* The bounds that a schedule names are those of the graph, whose automatic splits have been cut: else rule form. */
gantry_status gy_check_bounds(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err);
/* The nodes that a schedule names are those of the graph: else rule form. */
gantry_status gy_check_node_ids(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err);
/*
 * Rule phases, row by row: each row that a phase finds of a buffer has been left there by the phases before it, or by
 * an init or binding; and no phase has left the rows that a phase starts from the identity. `graphs`: one a phase,
 * derived from `graph`, which is cut as the schedule says. The schedule of each phase is right for its graph.
 */
gantry_status gy_check_hand_over(const gantry_schedule *s, const gantry_graph *graph, gantry_graph *const *graphs,
                                 gantry_error *err);

gantry_status gy_check_tasks(gy_check *k);  /* rule node; fills task, task_op */
gantry_status gy_check_places(gy_check *k); /* place, then route, then capacity */
gantry_status gy_check_order(gy_check *k);  /* order, carrier */
gantry_status gy_check_batches(gy_check *k);
gantry_status gy_check_ranks(gy_check *k); /* collective, and the part of external that needs no walk */

gantry_status gy_expect_make(gy_check *k);
/* The content that a write access leaves. A fill with an identity leaves the identity, whichever node did it. */
gy_content_id gy_content_written(gy_check *k, uint32_t node, size_t flow_access);
void gy_expect_free(gy_expect *e);

gantry_status gy_bytes_init(gy_check *k);
void gy_bytes_free(gy_bytes *b);
/* The map that an instance's bytes are in; NULL for inputs, which never change. */
gy_imap *gy_bytes_space(const gy_bytes *b, const gantry_schedule *s, const gy_instance *instance);
/* Where row 0 of the value would be in the current start, if the instance went on so far; addresses of its space. */
int64_t gy_bytes_base(const gy_check *k, const gy_instance *instance);
/* The bytes of a use in its space, in the current start. Rows outside the instance are where they would be if it went
 * on. */
void gy_use_span(const gy_check *k, const gy_use *use, int64_t *first, int64_t *last);
/* The current op reads the bytes: rule race. */
gantry_status gy_bytes_read(gy_check *k, const gy_use *use);
/* The current op is about to change them: rule race, afterwards it is their writer. */
gantry_status gy_bytes_take(gy_check *k, const gy_use *use);
/* Taken bytes become `content`, in the places that the use's instance gives its rows. */
gantry_status gy_bytes_set(gy_check *k, const gy_use *use, gy_content_id content);
/* The same for bytes [first, last): `what` says content, geometry and base. */
gantry_status gy_bytes_put(gy_check *k, gy_imap *map, int64_t first, int64_t last, gy_cell what);
/* Taken bytes get a contribution. */
gantry_status gy_bytes_add(gy_check *k, const gy_use *use, uint64_t flow_access);
gantry_status gy_bytes_begin(gy_check *k); /* sets the contents that every start begins with */

/* Contents of rows, freed from their addresses: bytes [first, last) counted from row 0 of the value. */
typedef struct gy_fragment {
    int64_t first, last;
    int64_t shift; /* content's row 0 is so far from where the use's instance has its row 0 */
    gy_content_id content;
    uint32_t geometry;
} gy_fragment;
typedef struct gy_fragments {
    GY_VEC(gy_fragment) at;
} gy_fragments;
gantry_status gy_fragments_read(gy_check *k, const gy_use *use, gy_fragments *to); /* appends */
gantry_status gy_fragments_write(gy_check *k, const gy_use *use,
                                 const gy_fragments *from); /* `from` in order, disjoint */
/* Sorts, and combines those that overlap, with the reduction `op`. */
gantry_status gy_fragments_combine(gy_check *k, gy_fragments *fragments, gantry_dtype dtype, gantry_access op);

/* The rows of the use hold what the runs say, else `rule` is broken by the thing at "/list/index". */
gantry_status gy_check_rows(gy_check *k, const gy_use *use, const gy_expected *run, size_t runs, const char *rule,
                            const char *list, size_t index);

gantry_status gy_check_after(gy_check *k, uint32_t op); /* rule after, for the current op */
gantry_status gy_check_walk(gy_check *k);
gantry_status gy_check_exit(gy_check *k);
gantry_status gy_check_counters(gy_check *k); /* rule counters, of schedules that have some */
/* Appends the contents of rows of a buffer at the end of a start, as runs. */
gantry_status gy_final_runs(gy_check *k, uint32_t buffer, int64_t first, int64_t last, gy_runs *to);

/* ---- phases (check_phases.c) ---- */

/* Rule phases, and all rules for each phase. */
gantry_status gy_schedule_phases_verify(const gantry_schedule *s, const gantry_graph *graph, gantry_error *err);
/* Gives each phase its graph. `graph` is cut as the schedule says, and the schedule is right for it. */
gantry_status gy_schedule_phases_attach(gantry_schedule *s, gantry_graph *graph, gantry_error *err);

#endif
