/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How each op is carried out where GPUs carry starts out by themselves (replay mode "device"): by workers of the
 * resident kernel, or launched into the stream of its lane.
 *
 * What each takes was measured (gy_worker_times). By workers an op takes what one of its duration takes there.
 * Launched, it takes so many times its duration as workers beside it cost it, but no less than the host needs to give
 * it out (`submit` of the machine). Two ops, of which one is behind the other in a lane, or waits for it by a row of
 * the sync table, cost a switch where the one is carried out by workers and the other is not.
 *
 * So where a stretch of ops that workers have code for stands between ops that they have none for, it pays to switch
 * there and back if what its ops save is more than the two switches. The sum of all costs is least for a minimum cut of
 * the graph whose nodes are ops (Greig, Porteous and Seheult 1989), whatever the waits between lanes are.
 *
 * Ops of NCCL end the resident kernels of all GPUs, and others begin behind them: a launch more for each GPU of which
 * workers carry out anything up to the next such op. In the graph that is a node that costs a launch on the side of
 * workers, where it has to be as soon as one of its ops is.
 */
#ifndef GY_SCHEDULE_STRETCHES_STRETCHES_H
#define GY_SCHEDULE_STRETCHES_STRETCHES_H

#include "schedule/schedule.h"

enum {
    GY_STRETCH_HOST_BYTES =
        65536, /* more than that a copy engine brings to or from the host sooner, switches included */
    /* A start has to be predicted to take so many per cent more by launches than by the devices before replay "auto"
     * plans for these. On two H200s none of the 15 graphs of the gallery that could go both ways was predicted to gain
     * and lost; what is predicted to be near is left to trials (run/trial.c). And so many us, as predictions of starts
     * of some microseconds are no better. */
    GY_STRETCH_PAYS = 10,
    GY_STRETCH_PAYS_US = 5,
    GY_STRETCH_CUT_US = 5 /* launching another kernel of workers: of a start on one H200 the call takes 4.9 */
};

typedef struct gy_stretch_costs {
    gy_ticks workers, launched;
} gy_stretch_costs;

/* True if the durations are those of launched ops and what workers take is known of all GPUs. */
bool gy_stretches_known(const gantry_schedule *s);
gy_stretch_costs gy_stretch_costs_of(const gantry_schedule *s, uint32_t op);
/* The cost of a switch that the op takes part in. */
gy_ticks gy_stretch_switch(const gantry_schedule *s, uint32_t op);
/* NCCL carries the op out, between two kernels of workers. */
bool gy_stretch_cuts(const gantry_schedule *s, uint32_t op);
/* As far as the schedule and its graph tell: workers have code for the op. Who carries it out knows more. */
bool gy_stretch_may(const gantry_schedule *s, uint32_t op);
/* Some of those ops is no copy: copies alone are no reason for a kernel. `ops`: by op. */
bool gy_stretches_work(const gantry_schedule *s, const uint8_t *ops);
/* Decides, of the ops that workers `can` carry out, which they do: `has`. Both by op. `cut`: a kernel ends ahead of the
 * op, as who carries the schedule out knows; NULL: ahead of those of NCCL. What workers take must be known. */
gantry_status gy_stretches_choose(const gantry_schedule *s, const uint8_t *can, const uint8_t *cut, uint8_t *has,
                                  gantry_error *err);

/* ---- cut.c ---- */

/* Two nodes on different sides cost so much; `one_way`: only if a is on side 1. */
typedef struct gy_cut_edge {
    uint32_t a, b;
    int64_t cost;
    bool one_way;
} gy_cut_edge;
typedef GY_VEC(gy_cut_edge) gy_cut_edges;

/* Nodes on two sides such that the sum of all costs is least: costs[i] >= 0 where node i is on side 1, -costs[i] where
 * it is below 0 and the node is on side 0; and edges. Of several such, that with the most nodes on side 0. `side`: of
 * each node. Edges from a node to itself cost nothing. false: out of memory. */
bool gy_cut_least(uint32_t nodes, const int64_t *costs, const gy_cut_edges *edges, uint8_t *side);

#endif
