/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The plan: what the passes of the scheduler share. Each pass is one file and one function that reads what the passes
 * before it wrote and fills its own section below; `gantry_schedule_new` (new.c) calls them in this order:
 *
 *   specialise   refuses what this version cannot do; bounds of `auto` splits
 *   cost         time of every node on every device, and who may run where
 *   origin       bytes that come from bound inputs; which devices a collective should use
 *   place        a policy: device, start and finish of every task (policies/)
 *   bound        what no schedule can beat
 *   lower        instances, ops with their uses, dependencies between ops (regions, epochs, transfer, reduce, boundary)
 *   collect      groups of copies that are better one collective
 *   order        the total order
 *   stream       lanes
 *   pace         long uploads that share a link take turns
 *   pack         addresses; dependencies that reuse of bytes needs
 *   sync         the sync table, also from one start to the next where starts overlap
 *
 * Everything is deterministic: no clock, no random numbers, ties by the lower index. Times are ticks.
 */
#ifndef GY_SCHEDULER_PLAN_PLAN_H
#define GY_SCHEDULER_PLAN_PLAN_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/flow/flow.h"
#include "machine/machine.h"
#include "schedule/schedule.h"

typedef struct gy_policy gy_policy;

/* What is done with rows that do not fit: nothing; they are copied out and back; or made again where that may pay. */
typedef enum gy_spilling { GY_SPILL_OFF, GY_SPILL_COPY, GY_SPILL_REMAKE } gy_spilling;

/* The devices of one collective task, by rank. `writer[i]`: the task that last wrote what rank i gives, or GY_NONE.
 * `algorithm`, `provenance`: once it is placed. */
typedef struct gy_team {
    uint32_t ranks;
    uint32_t *writer, *device;
    uint8_t algorithm, provenance; /* gy_algorithm, gy_provenance */
} gy_team;

/* One device looked at for one task: when its data are there, when it could begin, when it would end. */
typedef struct gy_try {
    uint32_t device;
    gy_ticks ready, upload, start, finish;
} gy_try;

/* A dependency between ops of the draft (ids) or of the schedule (positions): `to` begins after `from` has ended. */
typedef struct gy_edge {
    uint32_t from, to;
    uint8_t reason; /* gy_reason */
} gy_edge;
typedef GY_VEC(gy_edge) gy_edges;

/* An op before lanes are given out. */
typedef struct gy_draft {
    gy_op op;        /* `use`, `uses` index gy_plan.use; lane fields unset */
    uint32_t device; /* whose lane; collectives: range of gy_plan.rank_device in rank, ranks */
    uint8_t lane;    /* gy_lane_kind */
    uint32_t rank, ranks;
    uint32_t batch; /* copies that one read needed have the same number; 0: none */
    gy_ticks end;   /* expected, without contention: breaks ties between sources of a copy */
} gy_draft;

/* Bytes that a task reads from inputs that are bound in a memory of a device. */
typedef struct gy_outside {
    uint32_t task, memory;
    int64_t bytes;
} gy_outside;

typedef struct gy_plan {
    gantry_graph *graph; /* borrowed; sealed */
    const gy_flow *flow;
    const gantry_machine *machine;
    const gy_policy *policy;
    uint32_t workers, devices; /* devices of the machine; those a policy may choose from are 0 .. workers-1 */
    uint32_t in_flight;        /* starts that may overlap (period.h); 1 unless set before gy_plan_run */

    /* capacity: bytes of each memory that instances may take */
    uint64_t *capacity;
    bool squeeze;   /* what does not fit is lowered for least memory, then spilled */
    uint8_t spill;  /* gy_spilling */
    bool hopeless;  /* with squeeze: it is known not to fit otherwise */
    bool addressed; /* the draft has the addresses in memories of devices, as spilling gave them out */
    size_t remade;  /* ops that repeat another */
    bool late;      /* rows that were spilled come back no sooner than for the ops that are next */
    bool copies;    /* it was spilled, and some device copies longer than it computes */
    uint32_t haste; /* the search for offsets is cut short, by that factor; 0: the usual one */

    /* cost: nodes x devices; GY_TICKS_MAX where the node cannot run */
    gy_ticks *time;
    uint8_t *provenance;
    uint32_t *group;           /* per node: the first node of its `with` group */
    uint8_t *pinned;           /* per node: one device for all iterations (it has `with` or `apart`) */
    uint32_t *group_device;    /* per group: the device chosen, or GY_NONE */
    uint32_t **apart;          /* per group: count, then the groups it must keep away from; NULL: none */
    struct gy_apart *coloured; /* devices for the groups that are kept apart: apart.h; NULL: none are, or not known */

    /* origin */
    int64_t *upload;            /* per task: bytes it reads from inputs in host memory */
    GY_VEC(gy_outside) outside; /* what tasks read from inputs elsewhere (external buffers), by task */
    gy_map team_of;             /* task -> index of teams */
    GY_VEC(gy_team) teams;

    /* place */
    uint32_t *device; /* per task; collectives: that of rank 0; GY_NONE before it is placed */
    gy_ticks *start, *finish;
    uint32_t *order;        /* tasks by start, then finish, then number: a topological order */
    struct gy_gaps *gap;    /* per device: when it is free */
    uint32_t *group_placed; /* per group: tasks that have their place */
    struct gy_links *links; /* the book of transfers, if the policy keeps one: links.h */
    uint32_t watch;         /* a task whose tries are kept (for explain), or GY_NONE */
    GY_VEC(gy_try) tries;
    const struct gy_candidate *candidate; /* what the policy "replay" of search/ places; borrowed */
    const uint32_t *load_device;          /* what the search for the least load places, per unit; borrowed */

    bool keep_copies; /* collect does nothing */
    uint32_t put_in;  /* collectives that collect made of copies */

    gy_ticks bound;       /* the same for every placement: whoever plans a graph again hands it on */
    const char *bound_by; /* static: "path", "area", "links", "memory"; NULL: not known yet */

    /* lower: the draft, in a topological order of `edges`, which are grouped by `to`. `once`: it is ordered once, and
     * goes, piece by piece, while order and stream write the schedule: a schedule of a large graph has no room beside
     * it */
    bool once;
    GY_VEC(gy_instance) instance;
    GY_VEC(gy_draft) draft;
    GY_VEC(gy_use) use;
    GY_VEC(uint32_t) rank_device;
    gy_edges edges;

    /* order, for `schedule->ops` */
    uint32_t *draft_of; /* position -> draft */
    gy_ticks *expect;   /* per position: expected start */
    gy_edges need;      /* between positions, grouped by `to`, each group by falling `from`; pack adds to it */
    size_t *need_first; /* ops + 1 */

    gantry_schedule *schedule; /* under construction */
    struct gy_net *net;        /* room to time collectives in: collective.h */
    gy_arena arena;            /* small things of all passes */
} gy_plan;

/* Empty plan for a sealed graph; everything of it goes with gy_plan_free. */
gantry_status gy_plan_init(gy_plan *p, gantry_graph *graph, const gantry_machine *machine, const gy_policy *policy,
                           gantry_error *err);
void gy_plan_free(gy_plan *p);

/* Names, sizes and options of the schedule. */
gantry_status gy_plan_head(gy_plan *p, gantry_error *err);
/* The passes before the placement, and all up to and including it. */
gantry_status gy_plan_prepare(gy_plan *p, gantry_error *err);
gantry_status gy_plan_to_place(gy_plan *p, gantry_error *err);
gantry_status gy_plan_specialise(gy_plan *p, gantry_error *err);
/* `max_memory` as in gantry_schedule_options. */
gantry_status gy_plan_capacity(gy_plan *p, const char *max_memory, gantry_error *err);
gantry_status gy_plan_cost(gy_plan *p, gantry_error *err);
gantry_status gy_plan_eligible(gy_plan *p, gantry_error *err); /* the part of cost that says who may run where */
gantry_status gy_plan_origin(gy_plan *p, gantry_error *err);
gantry_status gy_plan_place(gy_plan *p, gantry_error *err);
gantry_status gy_plan_bound(gy_plan *p, gantry_error *err);
/* Frees what was only needed to place tasks and to bound: times, bytes of inputs, the books of devices and links. */
void gy_plan_forget_costs(gy_plan *p);
/* Takes scratch off the capacity of the memories, once tasks are placed. */
gantry_status gy_plan_scratch(gy_plan *p, gantry_error *err);
gantry_status gy_plan_lower(gy_plan *p, gantry_error *err);
gantry_status gy_plan_collect(gy_plan *p, gantry_error *err);
/* `early`: by expected start, so that copies are queued in the order in which they can begin. Otherwise the order of
 * the draft, in which rows are brought just before they are used: fewest bytes at a time. */
gantry_status gy_plan_order(gy_plan *p, bool early, gantry_error *err);
gantry_status gy_plan_stream(gy_plan *p, gantry_error *err);
/* Uploads one after the other where they share a link of host memory: adds to `need`. */
gantry_status gy_plan_pace(gy_plan *p, gantry_error *err);
/* Frees the draft and what order keeps beside it; lowering can make it again. */
void gy_plan_forget_draft(gy_plan *p);
/* `tight`: addresses are shared wherever positions allow, not only where it costs no waiting. E_CAPACITY. */
gantry_status gy_plan_pack(gy_plan *p, bool tight, gantry_error *err);
gantry_status gy_plan_sync(gy_plan *p, gantry_error *err);
/* The part of it that joins starts (sync_starts.c): adds rows with distance 1. `slot`: per op, its event or GY_NONE;
 * *slots: how many are given out. */
gantry_status gy_plan_sync_starts(gy_plan *p, uint32_t *slot, uint32_t *slots, gantry_error *err);
/* E_CAPACITY if the draft in its own order has more in a memory at one op than fits, whatever its address (overfull.c).
 * Says little: another way says more. */
gantry_status gy_plan_check_room(const gy_plan *p, gantry_error *err);
/* Order, stream and pack for a lowered graph, from the fastest way to the one that takes least; E_CAPACITY. */
gantry_status gy_plan_fit(gy_plan *p, gantry_error *err);
/* When that did not fit: lowers again for least memory, then spills (spill.h). E_CAPACITY. */
gantry_status gy_plan_squeeze(gy_plan *p, gantry_error *err);

/* ---- questions that several passes ask ---- */

static inline const gy_node *gy_plan_node(const gy_plan *p, uint32_t task)
{
    return &p->graph->nodes.at[p->flow->task[task].node];
}
static inline gy_ticks gy_plan_time(const gy_plan *p, uint32_t node, uint32_t device)
{
    return p->time[(size_t)node * p->devices + device];
}
static inline const gy_node_extra *gy_plan_extra(const gy_plan *p, uint32_t node)
{
    uint32_t extra = p->graph->nodes.at[node].extra;
    return extra == GY_NONE ? NULL : &p->graph->extra.at[extra];
}
/* The team of a collective task, NULL for other tasks. */
gy_team *gy_plan_team(const gy_plan *p, uint32_t task);
/* The device that stands for a memory (lowest worker, else lowest), or GY_NONE. */
uint32_t gy_plan_device_of(const gy_plan *p, uint32_t memory);
/* The device whose engine copies from memory to memory: that of the end that is not host memory; the source's if
 * neither is, as GPUs send faster than they fetch (on H200 twice as fast 1 MiB, a tenth faster 16 MiB). GY_NONE: no
 * device at either end. */
uint32_t gy_plan_copier(const gy_plan *p, uint32_t from, uint32_t to);
/* The peak that the roofline of the node takes, GFLOP/s; 0: the machine gives none. */
double gy_plan_gflops(const gy_plan *p, uint32_t node, uint32_t device);
/* The machine's measured table of the node's kernel that says something of the node, or NULL; and what the node has of
 * its work. Where a time was given with the node it is not used. */
const gy_kernel_table *gy_plan_table(const gy_plan *p, uint32_t node, uint32_t device);
double gy_plan_work(const gy_node *node, const gy_kernel_table *table);
/* Share of a device that the node fills: 1000 is all of it. */
uint32_t gy_plan_share(const gy_plan *p, uint32_t node);

/* A copy that takes much longer than its latency, over a route that is full with one such copy, or nearly: two at once
 * gain nothing. Never with contention off. */
bool gy_copy_is_long(const gantry_machine *m, uint32_t from, uint32_t to, gy_ticks duration);
/* The first resource on the route out of host memory that more routes share than fill it, and how many copies do;
 * GY_MACHINE_NONE if there is none. */
uint32_t gy_shared_link(const gantry_machine *m, uint32_t to);
uint32_t gy_link_turns(const gantry_machine *m, uint32_t resource, const gy_route *route);
/* The first entry of `outside` of this task, or of one behind it. */
size_t gy_outside_first(const gy_plan *p, uint32_t task);
/* Until what the task reads from bound inputs is in `memory`. */
gy_ticks gy_upload_time(const gy_plan *p, uint32_t task, uint32_t memory);
/* Time of `bytes` from memory to memory, 0 within one. */
gy_ticks gy_transfer_time(const gy_plan *p, uint32_t from, uint32_t to, int64_t bytes);
/* Of the memories that a placed task leaves its rows in, the one from which they get to `memory` soonest: what a
 * collective made is in that of each of its ranks. */
uint32_t gy_plan_nearest(const gy_plan *p, uint32_t task, uint32_t memory, int64_t bytes);
#endif
