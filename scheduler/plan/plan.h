/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The plan: the data that the passes of the scheduler share. Each pass is declared in the header of its folder, reads
 * what the passes before it wrote, and fills the part of the plan that is named after it here. pipeline/pipeline.c
 * calls the passes, in order.
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
#include "scheduler/plan/attempt.h"
#include "scheduler/plan/known.h"

typedef struct gy_policy gy_policy;

/* ---- cost: what every node takes on every device, and who may run where ---- */

typedef struct gy_costs {
    gy_ticks *time;      /* nodes x devices; GY_TICKS_MAX where the node cannot run */
    uint8_t *provenance; /* nodes x devices: gy_provenance of that time */
    uint16_t *spare;     /* nodes x devices: thousandths of the device that are left to others; NULL: none ever */
    gy_ticks *batched;   /* nodes x devices: what one more op adds to a batch (gy_plan_batched); NULL: none is in any */
    uint64_t *scratch;   /* per node: bytes of scratch, with a library's workspace; NULL: what the node says */
    uint32_t *group;     /* per node: the first node of its `with` group */
    uint8_t *pinned;     /* per node: one device for all iterations (it has `with` or `apart`) */
    uint32_t **apart;    /* per group: count, then the groups it must keep away from; NULL: none */
    struct gy_apart *coloured; /* devices for the groups that are kept apart: apart.h; NULL: none are, or not known */
} gy_costs;

/* ---- inputs: where the data of tasks come from, before anything is placed ---- */

/* The devices of one collective task, by rank. `writer[i]`: the task that last wrote what rank i gives, or GY_NONE;
 * `writer_rank[i]`: the rank of it that did. `algorithm`, `provenance`: once it is placed. */
typedef struct gy_team {
    uint32_t ranks;
    uint32_t *writer, *writer_rank, *device;
    uint32_t *fixed;               /* per rank: where `on` puts it; NULL: placement decides */
    uint8_t algorithm, provenance; /* gy_algorithm, gy_provenance */
} gy_team;

/* Bytes that a task reads from inputs that are bound in a memory of a device. */
typedef struct gy_outside {
    uint32_t task, memory;
    int64_t bytes;
} gy_outside;

typedef struct gy_task_inputs {
    int64_t *upload;            /* per task: bytes it reads from inputs in host memory */
    GY_VEC(gy_outside) outside; /* what tasks read from inputs elsewhere (external buffers), by task */
    gy_map team_of;             /* task -> index of teams */
    GY_VEC(gy_team) teams;
} gy_task_inputs;

/* ---- place: a device, a start and a finish for every task ---- */

/* One device looked at for one task: when its data are there, when it could begin, when it would end. */
typedef struct gy_try {
    uint32_t device;
    gy_ticks ready, upload, start, finish;
} gy_try;

/* A replica: the task is carried out on that device, too, as its rows are wanted there (place/replicas.c). */
typedef struct gy_replica {
    uint32_t task, device;
} gy_replica;

typedef struct gy_placement {
    uint32_t *device; /* per task; collectives: that of rank 0; GY_NONE before it is placed */
    gy_ticks *start, *finish;
    uint32_t *order;              /* tasks by start, then finish, as far as dependencies go: a topological order */
    struct gy_gaps *gap;          /* per device: when it is free */
    uint32_t *group_device;       /* per group: the device chosen, or GY_NONE */
    uint32_t *group_placed;       /* per group: tasks that have their place */
    struct gy_arrivals *arrivals; /* when data are there, for tasks with the same predecessors: arrivals.h */
    struct gy_links *links;       /* times at which links are taken, if the policy asks for them: links.h */
    GY_VEC(gy_try) tries;         /* of the task that the attempt watches */
    GY_VEC(gy_replica) replica;   /* by task; each in another memory than the task and its other replicas */
    uint32_t *replica_first;      /* tasks + 1: of task t, from replica_first[t] on; NULL: there are none */
    uint8_t *anywhere;            /* per node: placing takes it that its tasks will have replicas; NULL: none will */
    bool overtakes;               /* some task begins before the end of one whose rows it overwrites elsewhere */
    bool replicable;              /* there would be some if the attempt asked for them */
} gy_placement;

/* ---- bound: what no schedule of the graph can beat; the same for every placement ---- */

typedef struct gy_bound {
    gy_ticks time;
    int64_t bytes;    /* that any schedule within these memories moves from one to another in a start */
    const char *by;   /* static: "path", "area", "links", "memory"; NULL: not known yet */
    gy_ticks without; /* `time` and `by` of a start in which no node with a `when` runs; the same where there is none */
    const char *without_by;
} gy_bound;

/* ---- lower, spill: instances and ops before their order, lanes and addresses ---- */

/* A dependency between ops of the draft (ids) or of the schedule (positions): `to` begins after `from` has ended. */
typedef struct gy_edge {
    uint32_t from, to;
    uint8_t reason; /* gy_reason */
} gy_edge;
typedef GY_VEC(gy_edge) gy_edges;
/* By `to`, then by `from`, rising or falling, then by the reason; in time that grows like their count. false: out of
 * memory, nothing moved. */
bool gy_edges_sort(gy_edge *edge, size_t count, bool falling);

/* An op before lanes are given out. */
typedef struct gy_draft_op {
    gy_op op;        /* `use`, `uses` index gy_draft.use; lane fields unset */
    uint32_t device; /* whose lane; collectives: range of gy_plan.rank_device in rank, ranks */
    uint8_t lane;    /* gy_lane_kind */
    bool replicated; /* its task has replicas: which of the ops repeats the others is known once they have positions */
    uint32_t rank, ranks;
    uint32_t batch; /* copies that one read needed have the same number; 0: none */
    bool halfway;   /* a copy to where no device wants the rows: others go on from there */
    uint32_t hop;   /* of a copy that goes on from there: 1 + the copy that brought its rows; 0: none */
    gy_ticks end;   /* expected, without contention: breaks ties between sources of a copy */
} gy_draft_op;

/* Ops in a topological order of `edges`, which are grouped by `to`. Where the draft is arranged for the last time it
 * goes, piece by piece, while order and stream write the schedule: a schedule of a large graph has no room beside it.
 */
typedef struct gy_draft {
    GY_VEC(gy_instance) instance;
    GY_VEC(gy_draft_op) op;
    GY_VEC(gy_use) use;
    gy_edges edges;
} gy_draft;

/* The effects of spilling on the draft. */
typedef struct gy_spilled {
    bool moved;        /* something was evicted, dropped, fetched or made again */
    bool alone;        /* what one op uses is too much by itself */
    size_t repeats;    /* ops that carry out again what another op has done */
    bool copies_bound; /* some device copies longer than it computes */
    bool persistent;   /* something persists in memories of devices, or would if there were room */
} gy_spilled;

/* ---- order: positions, for the ops of the schedule ---- */

typedef struct gy_sequence {
    uint32_t *draft_of; /* position -> op of the draft */
    gy_ticks *expect;   /* per position: expected start */
    gy_edges need;      /* between positions, grouped by `to`, each group by falling `from`; pack adds to it */
    size_t *need_first; /* ops + 1 */
} gy_sequence;

typedef struct gy_plan {
    gantry_graph *graph; /* borrowed; sealed */
    const gy_flow *flow;
    const gantry_machine *machine;
    const gy_policy *policy;
    const gy_attempt *attempt; /* borrowed */
    uint32_t workers, devices; /* devices of the machine; those a policy may choose from are 0 .. workers-1 */
    uint32_t *device_of;       /* per memory: the device that stands for it, or GY_NONE */
    uint64_t *capacity;        /* per memory: bytes that instances may take */
    uint64_t *scratch;         /* per memory: bytes that scratch takes beside these; NULL: not known */
    bool *limited;             /* per memory: max_memory leaves it less than the machine has */
    uint8_t *one_lane;         /* per device: it computes in one lane, to have scratch once; NULL: none does */

    gy_costs cost;
    gy_task_inputs inputs;
    gy_placement placed;
    gy_bound bound;
    gy_draft draft;
    GY_VEC(uint32_t) rank_device; /* of collectives in the draft, by rank */
    uint32_t collectives;         /* in the draft that were put in place of copies */
    uint32_t passed_over;         /* that were not, as copies may be faster */
    bool hops;                    /* copies that go on from halfway are in clusters */
    bool passed_makers;           /* rows came from nearer than from where they were made, though that reaches */
    uint32_t batched;             /* launches of the draft that go with another in a batch */
    bool packed;                  /* and of copies */
    gy_ticks small_copies;        /* of the copies that could be in one, one after the other; 0: there are none */
    bool teams_joined;            /* it has batches of collectives */
    gy_ticks teams_spare;         /* at most, if there are such batches, of the times of collectives one by one */
    bool persists_beyond;         /* rows persist in memories that they do not live in, with rows that do */
    bool relays;                  /* rows went between devices by way of another memory */
    bool turns;                   /* versions of rows take turns in two instances */
    bool one_instance;            /* they shall not, for lack of memory */
    bool short_of_memory;         /* the fastest way to arrange it does not fit */
    gy_spilled spilled;
    gy_sequence sequence;

    gantry_schedule *schedule;    /* under construction */
    const struct gy_plan *like;   /* a plan of the same graph and machine, whose costs and inputs are used; borrowed;
                                     NULL: none */
    struct gy_placings *placings; /* where the policy has placed the tasks before; borrowed; NULL: none are kept */
    struct gy_packings
        *packings; /* that other plans of the graph searched, and this one; borrowed; NULL: none are kept */
    struct gy_planning *planning; /* that its steps count in; borrowed; NULL: none */
    gy_known_plans *known;        /* plans of the graph whose end is known; borrowed; NULL: none are kept */
    gy_plan_end end;              /* how the plan ended */
    bool recalled;                /* as a known plan did: it was not carried through */
    gy_attempt recalled_as;       /* what was asked of it then */
    struct gy_net *net;           /* room to time collectives in: collective.h */
    gy_arena arena;               /* small things of all passes */
} gy_plan;

/* ---- questions that several passes ask ---- */

static inline const gy_node *gy_plan_node(const gy_plan *p, uint32_t task)
{
    return &p->graph->nodes.at[p->flow->task[task].node];
}
static inline gy_ticks gy_plan_time(const gy_plan *p, uint32_t node, uint32_t device)
{
    return p->cost.time[(size_t)node * p->devices + device];
}
static inline uint32_t gy_plan_spare(const gy_plan *p, uint32_t node, uint32_t device)
{
    return p->cost.spare ? p->cost.spare[(size_t)node * p->devices + device] : 0;
}
/* Bytes of scratch that the node is given, on the device where it takes most. */
static inline uint64_t gy_plan_node_scratch(const gy_plan *p, uint32_t node)
{
    return p->cost.scratch ? p->cost.scratch[node] : (uint64_t)p->graph->nodes.at[node].scratch;
}
/* How long an op that leaves `spare` thousandths of the device keeps others from computing there: as long as it takes,
 * where the machine has contention off. */
static inline gy_ticks gy_plan_op_hold(const gy_plan *p, uint32_t device, gy_ticks duration, uint32_t spare)
{
    return p->machine->contention ? gy_device_hold(&p->machine->device[device], duration, spare) : duration;
}
/* May ops be in any lane of the device? On a GPU they may: one that fills it, or of which nothing is known, would else
 * hold up those behind it which do not wait for it. */
static inline bool gy_plan_spreads(const gy_plan *p, uint32_t device)
{
    const gy_device *d = &p->machine->device[device];
    return p->machine->contention && d->gpu && d->lanes > 1;
}
/* How long the node keeps others from computing on the device. */
static inline gy_ticks gy_plan_hold(const gy_plan *p, uint32_t node, uint32_t device)
{
    return gy_plan_op_hold(p, device, gy_plan_time(p, node, device), gy_plan_spare(p, node, device));
}
static inline const gy_node_extra *gy_plan_extra(const gy_plan *p, uint32_t node)
{
    uint32_t extra = p->graph->nodes.at[node].extra;
    return extra == GY_NONE ? NULL : &p->graph->extra.at[extra];
}
/* How often a task is carried out: once, and once for each replica. Execution 0 is the task's own. */
static inline uint32_t gy_plan_executions(const gy_plan *p, uint32_t task)
{
    const uint32_t *first = p->placed.replica_first;
    return first ? 1 + first[task + 1] - first[task] : 1;
}
/* The device of a replica: execution 1 or more of a task. */
static inline uint32_t gy_plan_replica_device(const gy_plan *p, uint32_t task, uint32_t execution)
{
    return p->placed.replica.at[p->placed.replica_first[task] + execution - 1].device;
}
/* Does `to` wait for d->from whatever memories are used: for its data, or since an `after` says so? */
bool gy_plan_holds(const gy_plan *p, const gy_dep *d, uint32_t to);
/* Does it wait only where both are in one memory, since it overwrites rows of which another memory has a copy? What a
 * collective uses is in several memories, and contributions of all memories wait for what combines those before. */
bool gy_plan_holds_within(const gy_plan *p, const gy_dep *d, uint32_t to);
/* The team of a collective task, NULL for other tasks. */
gy_team *gy_plan_team(const gy_plan *p, uint32_t task);
/* The device that rank i of a team belongs on: where `on` puts it, else where, in the placement, what it gives was
 * written; GY_NONE: nobody wrote it. */
uint32_t gy_plan_rank_home(const gy_plan *p, const gy_team *team, uint32_t i);
/* The rank of access k of a collective. */
uint32_t gy_access_rank(const gy_node_extra *x, uint32_t k);
/* The device that stands for a memory (lowest worker, else lowest), or GY_NONE. */
uint32_t gy_plan_device_of(const gy_plan *p, uint32_t memory);
/* How the remedy begins that a refusal for lack of this memory gives; "more parts" and so on follow. More than the
 * machine has cannot be allowed, so max_memory is named only where it is what leaves too little. */
const char *gy_plan_room_remedy(const gy_plan *p, uint32_t memory);
/* " beside 32.0 KiB of scratch" for a refusal, as instances have that much less of the memory; "": none. Returns `to`.
 */
const char *gy_plan_scratch_text(const gy_plan *p, uint32_t memory, char *to, size_t size);
/* The device whose engine copies from memory to memory: that of the end that is not host memory; the source's if
 * neither is, as GPUs send faster than they fetch (on H200 twice as fast 1 MiB, a tenth faster 16 MiB). GY_NONE: no
 * device at either end. */
uint32_t gy_plan_copier(const gy_plan *p, uint32_t from, uint32_t to);
/* Frees the draft and what order keeps beside it; lowering can make it again. */
void gy_plan_forget_draft(gy_plan *p);

#endif
