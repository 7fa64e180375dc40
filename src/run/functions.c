/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the function of every node of the schedule before anything runs. */
#include "run/run.h"

#include "base/error.h"
#include "maths/maths.h"

static gantry_status fail_no_function(const gantry_run *run, const gy_node *node, gantry_error *err)
{
    const gantry_graph *g = run->graph;
    if (node->kind == GY_NODE_WORK) {
        return gy_graph_fail(
            g, node->origin, err, GANTRY_E_UNSUPPORTED,
            "node \"%s\" is \"work\", that is only a cost: it can be scheduled and simulated, not run; "
            "give it a kernel, or use the back end \"sim\"",
            node->id);
    }
    if (node->kernel != GY_NONE) {
        return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                             "kernel \"%s\" of node \"%s\" has no host version, which the back end \"%s\" needs; name "
                             "one with \"host\" in the kernel's entry",
                             g->kernels.at[node->kernel].manifest->name, node->id, run->backend->name);
    }
    return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                         "node \"%s\" has no function to call; build it with gantry_graph_launch or gantry_graph_host, "
                         "or make it a kernel node",
                         node->id);
}

/* Nothing that a graph file names is compiled or loaded otherwise. */
static gantry_status check_allowed(const gantry_run *run, const gy_node *node, const char *file, bool allow_code,
                                   gantry_error *err)
{
    return allow_code ? GANTRY_OK
                      : gy_graph_fail(run->graph, node->origin, err, GANTRY_E_UNSUPPORTED,
                                      "kernel \"%s\" of node \"%s\" is code in %s, which is not compiled or loaded "
                                      "unless you say so; use --allow-code (allow_code = 1)",
                                      run->graph->kernels.at[node->kernel].manifest->name, node->id, file);
}

static gantry_status find_code(gantry_run *run, const gy_node *node, bool allow_code, gantry_kernel_fn *function,
                               gantry_error *err)
{
    const char *file = run->graph->kernels.at[node->kernel].code->host;
    gantry_status status = check_allowed(run, node, file, allow_code, err);
    status = status ? status : gy_user_code_load(&run->code, run->graph, node->kernel, err);
    if (status == GANTRY_OK)
        *function = run->code.function[node->kernel];
    return status;
}

/* A back end may have a version of a kernel for GPUs; then the CPU's is not needed. */
static bool has_own(const gantry_run *run, const gy_node *node, uint32_t device)
{
    return run->backend->gpu_kernels && node->kernel != GY_NONE && run->schedule->machine->device[device].gpu;
}

static void take_compiled(gantry_run *run, uint32_t kernel, gy_callee *callee)
{
    const gy_maths_code *code = gy_formulas_find(&run->formulas, run->graph, kernel);
    if (code) {
        callee->call = gy_maths_run_compiled;
        callee->user = (void *)(uintptr_t)code; /* only read */
    }
}

static gantry_status find_function(gantry_run *run, uint32_t id, uint32_t device, bool allow_code, gantry_error *err)
{
    const gy_node *node = &run->graph->nodes.at[id];
    gy_callee found = { 0 };
    found.call = gy_node_function(run->graph, id, &found.user);
    const gy_kernel *kernel = node->kernel != GY_NONE ? &run->graph->kernels.at[node->kernel] : NULL;
    const gy_kernel_code *code = kernel ? kernel->code : NULL;
    bool own = has_own(run, node, device);
    gantry_status status = GANTRY_OK;
    if (code && own && code->cuda)
        status = check_allowed(run, node, code->cuda, allow_code, err);
    else if (code && !own && code->host && !found.call)
        status = find_code(run, node, allow_code, &found.call, err);
    if (status)
        return status;
    if (!found.call && !own)
        return fail_no_function(run, node, err);
    if (kernel && kernel->maths && !own && run->backend->executes)
        take_compiled(run, node->kernel, &found);
    run->function[id] = found;
    return GANTRY_OK;
}

static gantry_status find_functions(gantry_run *run, const gantry_schedule *s, bool allow_code, gantry_error *err)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        uint32_t device = gy_op_device(s, op, 0);
        if (gy_op_calls(op) && !run->function[op->node].call) {
            gantry_status status = find_function(run, op->node, device, allow_code, err);
            if (status)
                return status;
        }
    }
    return GANTRY_OK;
}

gantry_status gy_run_find_functions(gantry_run *run, bool allow_code, gantry_error *err)
{
    const gantry_schedule *s = run->schedule;
    gantry_status status = find_functions(run, s, allow_code, err);
    for (size_t i = 0; status == GANTRY_OK && i < s->phases.count; i++)
        status = find_functions(run, s->phases.at[i].schedule, allow_code, err);
    return status;
}
