/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lowering: from placed tasks to instances and ops. Two walks over the tasks in the order of their placement.
 *
 * The first (regions.c, epochs.c) collects which rows of which value are touched in which memory. Touched rows that
 * overlap grow together into one *area*, so that a part and its halo are one instance; areas that only touch stay two.
 * Rows that a memory only reads, written anew elsewhere in between, take turns in two areas there: the next version
 * comes while the last is read, and whoever writes the one after that waits for neither.
 * It also groups contributions to reductions into *epochs*, and finds the last writer of what is fetched or kept.
 *
 * The second (lower.c) makes ops. It knows for every value which instances hold the current version of which rows
 * (`holds`), and for every instance who wrote and read which rows (`hazards`, for dependencies). Rows that a reader's
 * memory lacks are copied there (transfer.c); epochs are combined when their result is touched (reduce.c); what
 * outlives a start begins and ends in boundary.c.
 */
#ifndef GY_SCHEDULER_LOWER_LOWERING_H
#define GY_SCHEDULER_LOWER_LOWERING_H

#include "base/imap.h"
#include "scheduler/plan/plan.h"

/* Rows of a value that live together in one memory. */
typedef struct gy_area {
    uint32_t value, memory;
    int64_t first, last;
    uint32_t instance; /* GY_NONE until it is used */
    uint8_t role;      /* gy_role */
    bool gathered;     /* rows of it, or all, live elsewhere (gathered.c) */
} gy_area;

/* A touched region, before areas are made. */
typedef struct gy_touch {
    uint32_t value, memory;
    bool read, gathered; /* only read; as in gy_area */
    uint32_t version;    /* of a read: the last write of its rows, counted; 0 where that is no matter */
    int64_t first, last;
    size_t index; /* of gy_lower.area_of */
} gy_touch;

/* Payload of a home map: what happened to the rows, and where (a memory; REDUCED: the epoch; REPLICATED: the task); 0:
 * nothing touches them. */
enum { GY_HOME_READ_FIRST = 1, GY_HOME_WRITTEN, GY_HOME_REDUCED, GY_HOME_REPLICATED };
#define GY_HOME(what, where)   ((uint64_t)(where) << 3 | (what))
#define GY_HOME_WHAT(payload)  ((payload)&7)
#define GY_HOME_WHERE(payload) ((uint32_t)((payload) >> 3))

/* A memory that contributes to an epoch. */
typedef struct gy_member {
    uint32_t memory, device;
    int64_t first, last; /* rows that its accumulator needs */
    uint32_t instance;   /* the accumulator, GY_NONE until the first contribution */
} gy_member;

/* Rows of the result of an epoch, and the memory that reads them; all that it reads and what lies between. */
typedef struct gy_result_reader {
    uint32_t memory;
    int64_t first, last;
    size_t index; /* of area_of, once it is touched */
} gy_result_reader;

/* Contributions to one reduction with no other access to any of their rows between them. */
typedef struct gy_epoch {
    uint32_t value, parent; /* parent: union-find; itself at a root */
    uint32_t node;          /* the last that contributes */
    uint8_t op;             /* gantry_access */
    bool open;
    bool split; /* several memories contribute: accumulators and a collective; else straight into the value */
    int64_t first, last;
    GY_VEC(gy_member) member; /* by memory */
    /* In order of appearance, each memory once. Split: who gets the result, all rows of it, or, `scatter`, the rows
     * here: by rows, and together they are all. */
    GY_VEC(gy_result_reader) reader;
    bool scatter;
} gy_epoch;

typedef struct gy_holder {
    uint32_t instance, draft; /* the op that brought the rows there; GY_NONE: they were there at the start */
} gy_holder;
/* Never changed once made: intervals share them. */
typedef struct gy_holders {
    uint32_t count;
    gy_holder at[];
} gy_holders;

/* Rows to be fetched once `task` has run; GY_NONE: at the end. */
typedef struct gy_final {
    uint32_t task, buffer;
    int64_t first, last;
} gy_final;

/* The accesses of ops to the rows of an instance (hazards.c), and rows that were brought to it (transfer.c): it still
 * has them if the value has the same `version`. */
typedef struct gy_hazards {
    const struct gy_mark *whole; /* while all rows share one past: most instances are only ever used whole */
    gy_imap *intervals;          /* from then on: payload gy_mark * */
    int64_t brought_first, brought_last;
    uint32_t version;
} gy_hazards;

typedef struct gy_lower {
    gy_plan *p;
    gy_arena arena; /* what is needed for no longer than lowering takes */

    /* first walk */
    GY_VEC(gy_touch) touch;
    GY_VEC(gy_area) area; /* by value, those that are not gathered first, memory, first */
    uint32_t *area_of;    /* per access of the flow, then extra ones: its area, or GY_NONE */
    uint32_t *version_of; /* per access of the flow: as in gy_touch; NULL: nothing is written again */
    size_t *replica_area; /* per replica: the index in area_of of its first access; the others follow */
    size_t extras;
    uint8_t *reduced;   /* per value: something contributes to it */
    uint32_t *epoch_of; /* per access of the flow: its epoch; NULL without reductions */
    GY_VEC(gy_epoch) epoch;
    gy_imap **open;  /* per reduced value: payload epoch + 1, of the last contributions; second walk: what is pending */
    gy_map arrays;   /* per instance of an array and memory: the instance of that array there */
    gy_imap **home;  /* per persistent value: where rows were last written, or first read */
    gy_imap **final; /* per value that is fetched: payload task + 1 of its last writer */
    GY_VEC(gy_final) finals; /* by task */

    /* second walk */
    gy_imap *holds;             /* per value: payload gy_holders *, NULL: unwritten */
    uint8_t *known;             /* per value: holds is set up */
    uint32_t *version;          /* per value: how often rows were written */
    GY_VEC(gy_hazards) hazards; /* per instance */
    uint32_t *draft_of;         /* per task */
    uint32_t *input, *output;   /* per buffer: its INPUT and OUTPUT instance, or GY_NONE */
    gy_ticks *sent, *fetched;   /* per memory: time of the copies to it from host memory, and back, so far */
    gy_ticks end_of_tasks;      /* as placed */
    uint32_t *stamp;            /* per node: marks the `after` of the task at hand */
    uint32_t batches;           /* reads that copies were made for, so far */
    GY_VEC(uint32_t) chosen;    /* instances of the accesses of the task at hand, one execution after the other */
    GY_VEC(gy_holder) made;     /* where the task at hand has left the rows of one access */
} gy_lower;

/* Device and memory of access k of a task: those of the task, or of the rank of a collective. */
uint32_t gy_lower_device(const gy_lower *l, uint32_t task, uint32_t k);
uint32_t gy_lower_memory(const gy_lower *l, uint32_t task, uint32_t k);
/* The same of an execution of the task: its own, or that of a replica. */
uint32_t gy_lower_memory_of(const gy_lower *l, uint32_t task, uint32_t execution, uint32_t k);
/* Both walks look at the contributions of a task after its other accesses: what it reads of a reduction is the result
 * without what it adds itself. */
bool gy_lower_is_second(const gy_lower *l, uint32_t task, uint32_t k);
static inline const gy_buffer *gy_lower_buffer(const gy_lower *l, uint32_t value)
{
    return gy_value_buffer(l->p->graph, l->p->flow, value);
}

/* ---- versions.c ---- */
/* Fills version_of. */
gantry_status gy_lower_versions(gy_lower *l, gantry_error *err);

/* ---- regions.c ---- */
gantry_status gy_lower_regions(gy_lower *l, gantry_error *err);
/* One more touched region; its area will be area_of[*index]. */
gantry_status gy_lower_touch(gy_lower *l, uint32_t value, uint32_t memory, int64_t first, int64_t last, size_t *index,
                             gantry_error *err);
/* The area that contains the row and is not gathered, or GY_NONE. */
uint32_t gy_lower_find_area(const gy_lower *l, uint32_t value, uint32_t memory, int64_t row);

/* The first area of the value, or where it would be. */
size_t gy_lower_first_area(const gy_lower *l, uint32_t value);

/* ---- gathered.c: both only if the attempt has `gather_again` ---- */
/* Once all accesses are walked: rows that are only read live in one of the memories that read them, so that each has
 * about as much of them. */
gantry_status gy_lower_deal_homes(gy_lower *l, gantry_error *err);
/* Once all is touched: marks what is read beyond the rows that live in its memory. */
gantry_status gy_lower_mark_gathered(gy_lower *l, gantry_error *err);

/* ---- epochs.c ---- */
/* Updates the epochs of a value by access k of the task. */
gantry_status gy_epochs_walk(gy_lower *l, uint32_t task, uint32_t k, gantry_error *err);
/* When all tasks were seen: which epochs are split, and where their results go. */
gantry_status gy_epochs_finish(gy_lower *l, gantry_error *err);
gy_epoch *gy_epoch_root(gy_lower *l, uint32_t epoch);

/* ---- hazards.c ---- */
/* Adds an op to the draft; its uses follow. `*id` may be NULL. */
gantry_status gy_lower_op(gy_lower *l, const gy_draft_op *draft, uint32_t *id, gantry_error *err);
/* Adds a use to the last op, with the dependencies that follow from it. */
gantry_status gy_lower_use(gy_lower *l, uint32_t instance, uint8_t mode, uint32_t rank, int64_t first, int64_t last,
                           gantry_error *err);
gantry_status gy_lower_edge(gy_lower *l, uint32_t from, uint8_t reason, gantry_error *err);
gantry_status gy_lower_instance(gy_lower *l, const gy_instance *instance, uint32_t *id, gantry_error *err);
gantry_status gy_lower_area(gy_lower *l, uint32_t area, uint32_t *instance, gantry_error *err);
void gy_hazards_free(gy_lower *l); /* and the arena */

/* ---- transfer.c ---- */
/* Sets up `holds` of the value, if that was not done yet. */
gantry_status gy_lower_know(gy_lower *l, uint32_t value, gantry_error *err);
/* Copies to the instance what it lacks of the rows. Rows that nothing has written are left alone. */
gantry_status gy_lower_bring(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to, gantry_error *err);
/* The same to an instance that stands for another value (of the same shape) and does not become a source. */
gantry_status gy_lower_deliver(gy_lower *l, uint32_t value, int64_t first, int64_t last, uint32_t to,
                               gantry_error *err);
/* The rows are now in these instances and nowhere else. */
gantry_status gy_lower_hold(gy_lower *l, uint32_t value, int64_t first, int64_t last, const gy_holder *holder,
                            uint32_t count, gantry_error *err);
/* The holders of a row and where their interval ends; NULL: unwritten. */
const gy_holders *gy_lower_holders(const gy_lower *l, uint32_t value, int64_t row, int64_t *last);
bool gy_holders_have(const gy_holders *h, uint32_t instance);

/* ---- reduce.c ---- */
/* Combines every epoch that is pending on some of the rows. */
gantry_status gy_lower_settle(gy_lower *l, uint32_t value, int64_t first, int64_t last, gantry_error *err);
/* The instance that a contribution goes to, made ready for it. */
gantry_status gy_lower_contribute(gy_lower *l, uint32_t task, uint32_t k, uint32_t *instance, gantry_error *err);

/* ---- boundary.c ---- */
gantry_status gy_boundary_begin(gy_lower *l, gantry_error *err);
/* First walk: notes what access k writes or reads of values that are kept or fetched. */
gantry_status gy_boundary_walk(gy_lower *l, uint32_t task, uint32_t k, gantry_error *err);
/* After the first walk, before areas are made, and after. */
gantry_status gy_boundary_touch(gy_lower *l, gantry_error *err);
gantry_status gy_boundary_homes(gy_lower *l, gantry_error *err);
gantry_status gy_boundary_finals(gy_lower *l, gantry_error *err);
/* Second walk: fetches what is final after `task`; at the end everything else. */
gantry_status gy_boundary_after(gy_lower *l, uint32_t task, gantry_error *err);
gantry_status gy_boundary_end(gy_lower *l, gantry_error *err);

#endif
