/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/measure/flows.h"

static gantry_status queue(gy_harness *harness, const void *what, gantry_error *err)
{
    const gy_flows *f = what;
    gantry_status status = GANTRY_OK;
    for (uint32_t round = 0; round < f->rounds; round++) {
        for (size_t i = 0; i < f->flows.count && !status; i++) {
            const gy_stream_copy *flow = &f->flows.at[i];
            status = gy_harness_copy(harness, flow->lane, flow->from, flow->to, f->bytes, flow->offset, err);
        }
    }
    return status;
}

bool gy_flows_add(const gy_harness *harness, gy_flows *f, gy_stream_copy flow)
{
    return !gy_harness_reaches(harness, flow.from, flow.to) ||
           (gy_vec_push(&f->flows, flow) && gy_vec_push(&f->lanes, flow.lane));
}

gy_workload gy_flows_workload(const gy_flows *f)
{
    return (gy_workload){ .queue = queue,
                          .what = f,
                          .first_lane = f->lanes.at[0],
                          .other_lane = f->lanes.at + 1,
                          .other_lanes = (uint32_t)f->lanes.count - 1 };
}

void gy_flows_free(gy_flows *f)
{
    gy_vec_free(&f->flows);
    gy_vec_free(&f->lanes);
}
