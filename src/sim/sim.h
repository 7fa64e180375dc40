/* SPDX-License-Identifier: Apache-2.0 */
/**
 * When everything happens: a discrete-event simulation of a schedule on its machine, with contention.
 *
 * An op begins when it is at the head of all its lanes and every row of the sync table into it has been satisfied.
 * Every op but a copy takes its `duration`, a collective at least. A copy whose node has a `when` begins when its flag
 * was asked (gy_device_when). A copy (COPY, EVICT, FETCH) takes the direct route
 * between the memories of its uses (within a memory: the local one): a latency phase, then a flow of the copied bytes
 * that runs at most at the route's solo rate and shares the route's resources max-min fairly with the other flows; a
 * copy that is never slowed down takes exactly gy_route_time. A copy in a lane of kind COPY also holds one of its
 * device's copy engines from beginning to end; of several copies that wait for an engine the one that was ready first
 * gets it, then the one with the lower position. With `contention` off nothing is shared and every copy takes its solo
 * time.
 *
 * A message, a copy by hosts over a network, is a flow first, and comes a latency after that. Its lane and its copy
 * engine go on when it is sent: a message behind it in the lane does not wait for its latency, if it does not touch
 * what the first has brought and comes no sooner.
 *
 * Where devices have a `signal` (gy_device_signal), an op that waited for one on another device, or a copy for a kernel
 * or a kernel for a copy, begins that much later than what it waited for ended.
 *
 * Where the schedule will be captured as one graph for each GPU (gy_gates_chosen, by the times that come out), an op
 * that waited for one of another GPU begins `gate` of the machine later, small copies that a kernel makes
 * (gy_op_by_engine) are told of as kernels are, and each graph beyond the first costs `submit` ahead of all. Else,
 * where GPUs of a computer wait for each other, its host gives their work out bit by bit (`issue` of the machine): an
 * op begins no sooner than the host has come to it, in the order of positions, and of an op of several computers all
 * hosts. Each row of the sync table from GPU to GPU is such a bit, so is a copy between GPUs, and a row that one waits
 * for, and each lane beyond the first of a collective is two; rows within a GPU go out with its work. A collective
 * whose GPUs meet by counters tells none of them of another: what it waits for, and who waits for it, does so on the
 * GPU that both have, and its lanes are given out with the rest. Where replay is "stream" it gives out every op by
 * itself (`submit` of the machine), whatever waits. All of it begins after `start` of the machine. A start that waits
 * for another to end is given out when that has ended.
 *
 * The ops that compute on a GPU with several lanes have, in the same order of waiting, what they can use of what those
 * before them left: all of it, if they leave nothing (`spare`); ops of urgent lanes go before those that have not
 * begun. An op begins when something is left for it, and takes its duration where it always has what it can use. One
 * that takes hardly more than its launch (gy_device_overlap) needs the GPU for the rest only. Lane order always holds:
 * whoever wants copies of one device to overlap gives them lanes of their own.
 *
 * A collective is one flow over all resources that its algorithm's transfers cross (schedule/traffic). It goes on
 * evenly for its duration, and takes of each resource what its bytes there ask for; where others leave it less of one
 * of them, all of it slows down. Alone it takes its duration, also where that says more than the resources' rates, as a
 * measured time may.
 *
 * Times are whole ticks, rates whole bytes per second (a share is rounded down, but is never less than 1), remaining
 * work is exact in 128 bits: the same result on every compiler. O((ops + rows) log lanes) and, at each begin and end of
 * a flow, the flows that share a resource with it, directly or through others.
 *
 * Max-min fairness by progressive filling: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2.
 */
#ifndef GY_SIM_SIM_H
#define GY_SIM_SIM_H

#include "schedule/schedule.h"

/**
 * Fills `start` and `end` of every op and `makespan` for one start that begins at 0 on an idle machine; nothing else of
 * the schedule changes, and nothing at all on failure. Reads kind, uses, lanes and (but for copies) duration of the
 * ops, instances, lanes, the sync table and the machine. Indices must be in range. E_SCHEDULE: ops that wait for each
 * other for ever, a copy without a direct route, or an end beyond GY_TICKS_MAX; the text names the ops. E_NOMEM.
 */
gantry_status gy_sim_run(gantry_schedule *s, gantry_error *err);

typedef struct gy_sim_start {
    gy_ticks begin, end; /* of its first and last op */
} gy_sim_start;

/**
 * `starts` >= 1 starts queued at time 0: start i begins after start i - in_flight has ended, lanes keep the order of
 * starts, rows with a distance hold. Fills out[0 .. starts); the difference of two late ends is the period. Errors as
 * above.
 */
gantry_status gy_sim_run_starts(const gantry_schedule *s, uint32_t starts, gy_sim_start *out, gantry_error *err);

/**
 * The makespan of a start in which no node with a `when` runs: its op takes what it takes to ask (gy_device_when), a
 * copy moves nothing. The schedule, which does not change, has its graph. Errors as above.
 */
gantry_status gy_sim_run_unset(const gantry_schedule *s, gy_ticks *makespan, gantry_error *err);

#endif
