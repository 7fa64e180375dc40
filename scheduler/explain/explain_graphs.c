/* SPDX-License-Identifier: Apache-2.0 */
/* From the schedule alone: how many CUDA graphs a captured start is. */
#include "scheduler/explain/explain.h"

#include "base/error.h"
#include "schedule/gates/gates.h"

gantry_status gy_explain_graphs(gy_text *to, const gantry_schedule *s, gantry_error *err)
{
    gy_gate_times times;
    if (!gy_gates_captured_starts(s) || !gy_gates_known(s->machine))
        return GANTRY_OK;
    GY_TRY(gy_gates_predict(s, &times, err));
    if (!times.rows)
        return GANTRY_OK;
    const char *why = gy_gates_obstacle(s);
    bool each = !why && gy_gates_pay(&times);
    gy_text_printf(to, "\ncaptured, a start is carried out by one CUDA graph for %s: ", each ? "each GPU" : "all GPUs");
    if (why)
        gy_text_add(to, why);
    else
        gy_gates_tell(to, &times);
    if (!why && !each)
        gy_text_printf(to, ", which has to be %d %% more", GY_GATES_PAY);
    gy_text_add(to, "\n");
    return GANTRY_OK;
}
