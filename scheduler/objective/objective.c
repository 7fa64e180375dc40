/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/objective/objective.h"

#include "scheduler/objective/max_load_search.h"
#include "scheduler/objective/period.h"
#include "scheduler/search/search.h"

gantry_status gy_objective_run(gantry_schedule **schedule, gantry_graph *graph, const gantry_machine *machine,
                               const gy_options *options, gantry_error *err)
{
    switch (options->objective) {
    case GY_OBJECTIVE_PERIOD:
        return gy_period_run(schedule, graph, machine, options, err);
    case GY_OBJECTIVE_MAX_LOAD:
        return gy_load_run(schedule, graph, machine, options, err);
    case GY_OBJECTIVE_MAKESPAN:
        break;
    }
    return gy_search_run(schedule, graph, machine, options, err);
}
