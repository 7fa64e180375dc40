/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/schedule.h
 * @brief The schedule: the complete, immutable answer for one graph on one machine.
 */
#ifndef GANTRY_SCHEDULE_H
#define GANTRY_SCHEDULE_H

#include <gantry/graph.h>
#include <gantry/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_schedule gantry_schedule;

/** The progress of planning, for gantry_schedule_options.progress. */
typedef struct gantry_plan_progress {
    size_t struct_size; /* the library's */
    uint64_t steps;     /* of effort: passes, tasks that were placed, placements that were looked at */
    uint64_t plans;     /* that were carried through, with a prediction each */
    double best_us;     /* the least makespan predicted so far; of graphs with phases, and while there is none: 0 */
    double bound_us;    /* no schedule is faster; 0: not known yet, or phases */
} gantry_plan_progress;
/** Called by the thread that plans, at every step: up to a million times a second, and no clock is looked at, so that a
 * schedule does not depend on one. Whoever draws looks at his own. Not 0: planning ends soon with E_CANCELED, and
 * there is no schedule; a step takes microseconds, on large graphs and machines some of them take seconds. */
typedef int (*gantry_plan_progress_fn)(void *user, const gantry_plan_progress *progress);

typedef struct gantry_schedule_options {
    size_t struct_size;
    const char *policy; /* a name of gantry_policy_name; NULL: the default */
    int32_t effort;     /* 0..9; -1: the default */
    int32_t optimal;    /* 1: branch and bound, for graphs of up to 64 tasks and the objective "makespan" */
    uint64_t seed;
    const char *objective;  /* "makespan", "period" or "max_load" (not for graphs with collective nodes: E_UNSUPPORTED);
                               NULL: "makespan" */
    const char *max_memory; /* "gpu0=4GiB,gpu1=512MiB": less than the memory has; NULL: all of it */
    const char *replay;     /* "stream", "graph", or "auto", which is NULL: the back end goes from
                               streams to a graph where that is faster, and of many starts tries some without the
                               host; "device": the schedule has counters by which GPUs carry a start out without the
                               host, where they can, else as "auto" */
    const char *balance;    /* automatic splits: "static", "dynamic", "memory" or "guided"; NULL: what is predicted to
                               be faster */
    const gantry_schedule *like; /* automatic splits are cut as in this schedule of the same graph; NULL: by
                                    `balance` */
    const char *spill; /* what does not fit in a memory: "auto" leaves it and comes back, or is made again where that is
                          faster; "copy" is never made again; "off" is refused; NULL: "auto" */
    int32_t in_flight; /* objective "period": starts that may overlap, 1..64; 0: chosen */
    int32_t reserved;
    int64_t unroll; /* loops unroll to this many nodes at most, else iterations are started again and again (phases);
                       1..200000; 0: 200000 */
    gantry_plan_progress_fn progress; /* NULL: none */
    void *user;                       /* of `progress` */
} gantry_schedule_options;
#define GANTRY_SCHEDULE_OPTIONS_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(gantry_schedule_options), NULL, -1, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL       \
    }

/** The i-th policy and one line about it; NULL past the last. */
GANTRY_API const char *gantry_policy_name(size_t i);
GANTRY_API const char *gantry_policy_summary(size_t i);

/** The machine that the key `machine` of a graph file says, or NULL without one. A file that it names must be a regular
 * one in the graph's folder, and symbolic links must not lead out of it. */
GANTRY_MUST_USE gantry_status gantry_graph_machine(gantry_machine **machine, const gantry_graph *graph,
                                                   gantry_error *err);
/** Schedules a graph, which is checked first if it was not yet. Every schedule that is returned passed the checker.
 * `options` may be NULL. E_CAPACITY: it does not fit; the text names the memory and what holds most of it. E_GRAPH:
 * the graph wants a place that the machine does not have. E_UNSUPPORTED: no device of the machine can carry a node out.
 */
GANTRY_MUST_USE gantry_status gantry_schedule_new(gantry_schedule **schedule, gantry_graph *graph,
                                                  const gantry_machine *machine, const gantry_schedule_options *options,
                                                  gantry_error *err);
/** A schedule from a file is self-sufficient for looking and simulating; to run it, attach its graph. `name` of a text
 * may be NULL. */
GANTRY_MUST_USE gantry_status gantry_schedule_load(gantry_schedule **schedule, const char *path, gantry_error *err);
GANTRY_MUST_USE gantry_status gantry_schedule_parse(gantry_schedule **schedule, const char *text, size_t length,
                                                    const char *name, gantry_error *err);
/** Proves the schedule right for the graph, by code that shares nothing with the scheduler; refuses a graph whose hash
 * is not the one in the schedule. The error's `text` names the rule and the ops. */
GANTRY_MUST_USE gantry_status gantry_schedule_check(gantry_schedule *schedule, gantry_graph *graph, gantry_error *err);
/** The same as check, and the schedule keeps the graph so that it can be run. */
GANTRY_MUST_USE gantry_status gantry_schedule_attach(gantry_schedule *schedule, gantry_graph *graph, gantry_error *err);
/** JSON that gantry_schedule_parse reads back (docs/schedule-format.md); `*text` is yours (gantry_free). */
GANTRY_MUST_USE gantry_status gantry_schedule_json(const gantry_schedule *schedule, char **text, size_t *length,
                                                   gantry_error *err);
/** The same into a file, written under a temporary name and renamed. */
GANTRY_MUST_USE gantry_status gantry_schedule_save(const gantry_schedule *schedule, const char *path,
                                                   gantry_error *err);
GANTRY_API void gantry_schedule_free(gantry_schedule *schedule);

typedef struct gantry_schedule_summary {
    size_t struct_size;
    double makespan_us; /* predicted with contention, uploads and fetches included */
    double bound_us;    /* no schedule on this machine is faster */
    double gap;         /* makespan / bound - 1 */
    uint64_t nodes, ops, copies, collectives, events;
    uint64_t bytes_moved;   /* from one memory to another */
    double period_us;       /* objective "period": predicted from one start to the next, many being queued; else 0 */
    double period_bound_us; /* no schedule on this machine has a shorter one */
    uint64_t in_flight;     /* starts that may overlap */
    uint64_t recomputed; /* nodes carried out once more, for results that had to leave a memory, or on another device */
    uint64_t bytes_needed; /* no schedule within these memories moves less from one to another; 0: not known, as of a
                              schedule from a file */
} gantry_schedule_summary;
#define GANTRY_SCHEDULE_SUMMARY_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(gantry_schedule_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                      \
    }
GANTRY_MUST_USE gantry_status gantry_schedule_summarize(const gantry_schedule *schedule,
                                                        gantry_schedule_summary *summary, gantry_error *err);
/** Peak bytes of a memory of the schedule's machine; 0 past the last. */
GANTRY_API uint64_t gantry_schedule_peak_bytes(const gantry_schedule *schedule, size_t memory);
/** The part of one process in a start of a schedule whose machine has several ranks. */
typedef struct gantry_rank_info {
    size_t struct_size;
    uint64_t ops;             /* that run there; those of several ranks count where their first device is */
    uint64_t sends, receives; /* messages from and to other ranks */
    uint64_t sent_bytes, received_bytes;
    uint64_t memory_bytes; /* of all its memories, at most */
} gantry_rank_info;
#define GANTRY_RANK_INFO_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(gantry_rank_info), 0, 0, 0, 0, 0, 0                                                                     \
    }
/** E_INVALID: the machine has no such rank (gantry_machine_rank_count). */
GANTRY_MUST_USE gantry_status gantry_schedule_rank(const gantry_schedule *schedule, size_t rank, gantry_rank_info *info,
                                                   gantry_error *err);
/** Proves that the parts of all ranks carry the schedule out together: messages match in size and order, each rank
 * waits for what has to end first, and no speed of ranks or of the network leads to a deadlock, also where every send
 * waits for its receiver. The schedule itself has passed gantry_schedule_check. Where it has its graph (made from one,
 * or attached), also as runs carry parts out that have inputs and outputs of their own (gantry_run_options).
 * E_SCHEDULE: "rule ranks: ...". */
GANTRY_MUST_USE gantry_status gantry_schedule_check_ranks(const gantry_schedule *schedule, gantry_error *err);
/** The schedule's machine and policy; borrowed. */
GANTRY_API const gantry_machine *gantry_schedule_machine(const gantry_schedule *schedule);
GANTRY_API const char *gantry_schedule_policy(const gantry_schedule *schedule);
/** Index of the device that runs the node (first iteration, first rank), or -1. */
GANTRY_API int gantry_schedule_device_of(const gantry_schedule *schedule, gantry_node node);

/* ---- phases ---- */

/**
 * A graph whose loops would unroll to too many nodes, or end by `until`, is scheduled in phases: nodes before, so many
 * iterations of the loop that are started again and again, nodes after. Each has a schedule of its own, which can be
 * looked at like any other; the schedule of the whole has sums.
 */
typedef struct gantry_phase_info {
    size_t struct_size;
    uint32_t first_node, last_node; /* [first, last) */
    int64_t first_iteration;        /* of the loop; -1: the nodes are in no loop, or it is unrolled */
    int64_t iterations, starts;     /* iterations in a start; how often it is started, at most */
    int64_t every;                  /* `until` is looked at after iterations that are a multiple of it; 0: it is not */
    double hand_over_us;            /* predicted: bringing what outlives a phase from memory to memory */
} gantry_phase_info;
#define GANTRY_PHASE_INFO_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(gantry_phase_info), 0, 0, 0, 0, 0, 0, 0                                                                 \
    }
/** 0: the schedule has no phases. */
GANTRY_API size_t gantry_schedule_phase_count(const gantry_schedule *schedule);
/** The schedule of a phase, borrowed, and what it is (`info` may be NULL); NULL past the last, or where the
 * struct_size of `info` is not set. */
GANTRY_API const gantry_schedule *gantry_schedule_phase(const gantry_schedule *schedule, size_t i,
                                                        gantry_phase_info *info);

/* ---- pictures and reports ---- */

typedef enum gantry_format {
    GANTRY_DOT = 1, /* Graphviz */
    GANTRY_SVG,     /* timeline */
    GANTRY_HTML,    /* the same in a page that can be looked through (docs/viewer.md) */
    GANTRY_CHROME,  /* Chrome and Perfetto trace JSON */
    GANTRY_TEXT,    /* summary for people */
    GANTRY_REPORT   /* summary as one JSON object: the keys of `gantry schedule --json` */
} gantry_format;

typedef enum gantry_clusters {
    GANTRY_CLUSTERS_LOOPS,   /* frames around loops */
    GANTRY_CLUSTERS_DEVICES, /* around what a schedule puts on one device */
    GANTRY_CLUSTERS_FAMILIES /* around nodes whose ids differ in what is in brackets only */
} gantry_clusters;

/** Which nodes of a graph are drawn, and how. NULL in the place of these options: the defaults. */
typedef struct gantry_drawing_options {
    size_t struct_size;
    int32_t max_nodes; /* of more than so many, families are one box each: "gemm[*] × 816". Default 0: 100 */
    int32_t distance;  /* with `near`: how many dependencies away a node may be, in either direction; 0 to 100 */
    const char *near;  /* the id of the node whose neighbourhood is drawn. Default NULL: the whole graph */
    int32_t clusters;  /* gantry_clusters */
    int32_t reserved;  /* 0 */
    const gantry_schedule *schedule; /* of the graph, for GANTRY_CLUSTERS_DEVICES; borrowed. Else NULL */
} gantry_drawing_options;
#define GANTRY_DRAWING_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(gantry_drawing_options), 0, 1, NULL, GANTRY_CLUSTERS_LOOPS, 0, NULL                                     \
    }

/** The graph for Graphviz; it must have been checked. `*text` is yours (gantry_free). */
GANTRY_MUST_USE gantry_status gantry_graph_draw(const gantry_graph *graph, const gantry_drawing_options *options,
                                                char **text, size_t *length, gantry_error *err);
/** `*text` is yours (gantry_free). A graph has DOT only: gantry_graph_draw with its defaults. */
GANTRY_MUST_USE gantry_status gantry_graph_export(const gantry_graph *graph, gantry_format format, char **text,
                                                  size_t *length, gantry_error *err);
GANTRY_MUST_USE gantry_status gantry_schedule_export(const gantry_schedule *schedule, gantry_format format, char **text,
                                                     size_t *length, gantry_error *err);
/** The page of a schedule and, below it, of what was measured when it ran: `trace` is the text of gantry_run_trace.
 * `phase`: which, of a schedule in phases; else 0. `*text` is yours. E_INVALID: there is no such phase, or the trace
 * lacks times of ops or has those of others. */
GANTRY_MUST_USE gantry_status gantry_schedule_page(const gantry_schedule *schedule, size_t phase, const char *trace,
                                                   size_t length, char **text, size_t *text_length, gantry_error *err);
/** Differences between two schedules: makespans, nodes on other devices, ops that only one has, busy and idle times of
 * devices. Ops are held against each other by nodes, iterations and rows of buffers, wherever they are; the graphs
 * need not be the same. As GANTRY_TEXT, GANTRY_REPORT (one JSON object) or GANTRY_HTML (a page with both). `*text` is
 * yours. E_UNSUPPORTED: one is in phases; give one of its phases. */
GANTRY_MUST_USE gantry_status gantry_schedule_diff(const gantry_schedule *first, const gantry_schedule *second,
                                                   gantry_format format, char **text, size_t *length,
                                                   gantry_error *err);
/** A schedule with times to look at: those that are predicted, or, with the text of gantry_run_trace, those of a run.
 */
typedef struct gantry_timeline {
    size_t struct_size;
    const gantry_schedule *schedule;
    size_t phase;      /* which, of a schedule in phases; else 0 */
    const char *trace; /* of the last start of a run of the schedule; NULL: as predicted */
    size_t length;     /* of `trace` */
} gantry_timeline;
#define GANTRY_TIMELINE_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(gantry_timeline), NULL, 0, NULL, 0                                                                      \
    }
/** gantry_schedule_diff for two timelines, such as two runs of one schedule: pairs of ops that took longer, or shorter,
 * are named as well, the largest change first. E_INVALID: there is no such phase, or a trace lacks times of ops or has
 * those of others. */
GANTRY_MUST_USE gantry_status gantry_timeline_diff(const gantry_timeline *first, const gantry_timeline *second,
                                                   gantry_format format, char **text, size_t *length,
                                                   gantry_error *err);
/** Why a node is where it is: each candidate device with ready time, transfers, compute and finish. Text; yours. */
GANTRY_MUST_USE gantry_status gantry_schedule_explain(const gantry_schedule *schedule, gantry_node node, char **text,
                                                      size_t *length, gantry_error *err);

/* ---- what if ---- */

/** A node that goes to another device: an index of the machine. Nodes that it is `with` go there too. */
typedef struct gantry_move {
    gantry_node node;
    uint32_t device;
} gantry_move;
/** The schedule with some nodes elsewhere, or on another machine. All other nodes stay on the devices, and in the
 * order, that they have in `from`; copies, collectives, batches and addresses are planned anew for that, and the same
 * simulator predicts the times. Nothing is searched, so it takes as long as one plan, and without a change it may end
 * a little later than `from`, or sooner. The schedule is checked, and may be run, like any other.
 * `machine` NULL: that of `from`; else one with the same devices and memories by name, in their order, such as that
 * one with other rates. `move` may be NULL with `moves` 0; a later one of a node wins. E_INVALID: there is no such
 * node or device, the node may not be there, or it is a collective, whose ranks are where their rows are; or the
 * machines differ. E_UNSUPPORTED: `from` has no graph (gantry_schedule_attach), or is in phases (ask for one of them),
 * or its objective is not "makespan". E_CAPACITY: memories are too small for it, even with spilling. */
GANTRY_MUST_USE gantry_status gantry_schedule_what_if(gantry_schedule **schedule, const gantry_schedule *from,
                                                      const gantry_machine *machine, const gantry_move *move,
                                                      size_t moves, gantry_error *err);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_SCHEDULE_H */
