/* SPDX-License-Identifier: Apache-2.0 */
/**
 * m-ETF: ETF that leaves out devices without room for the task. B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke,
 * Y. Meng, C. Xie, I. Gupta, Baechi: Fast Device Placement of Machine Learning Graphs, SoCC 2020. What a task needs
 * room for is told in room.h. When no ready task has room anywhere, memory is no matter from there on.
 *
 * Cost: that of ETF; each look at a pair takes the accesses of the task besides.
 */
#include "base/error.h"
#include "scheduler/policies/etf.h"
#include "scheduler/policies/policy.h"

static gantry_status place(gy_plan *p, gantry_error *err)
{
    gy_pairing how = { .room = gy_held_memory_new(p) };
    gantry_status status = how.room ? gy_etf(p, &how, err) : gy_fail_nomem(err);
    gy_held_memory_free(how.room);
    return status;
}

const gy_policy gy_policy_m_etf = {
    .name = "m-etf",
    .summary = "earliest start first, where there is room (Baechi 2020)",
    .place = place,
    .largest = GY_MIDDLE_GRAPHS,
};
