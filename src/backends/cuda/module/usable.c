/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out if a schedule can be carried out on the GPUs of this computer, before anything is opened. */
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/module/module.h"
#include "backends/cuda/usercode/usercode.h"

#include "base/error.h"
#include "base/memory.h"

static gantry_status check_devices(const gantry_schedule *s, int devices, gantry_error *err)
{
    const gantry_machine *m = s->machine;
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < m->devices; i++) {
        int ordinal = gy_device_ordinal(m, i);
        gpus += m->device[i].gpu;
        if (m->device[i].gpu && ordinal >= devices) {
            return gy_fail(err, GANTRY_E_DEVICE, NULL,
                           "device \"%s\" of machine \"%s\" is GPU %d, and this computer has %d; take fewer with "
                           "--devices, or a machine file of this computer",
                           m->device[i].id, m->name, ordinal, devices);
        }
        if (m->device[i].gpu && m->device[i].memory == 0) {
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                           "device \"%s\" of machine \"%s\" works in host memory, which this version does not do",
                           m->device[i].id, m->name);
        }
    }
    return gpus ? GANTRY_OK : gy_fail(err, GANTRY_E_DEVICE, NULL, "machine \"%s\" of the schedule has no GPU", m->name);
}

/* Without nvcc the module has no kernel at all, and with it all of the library: else it is one of a program. */
static gantry_status fail_no_version(const gantry_graph *g, const gy_node *node, gantry_error *err)
{
    size_t kernels = 0;
    gy_cuda_kernels(&kernels);
    return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                         "kernel \"%s\" of node \"%s\" has no CUDA version%s, or use the back end \"host\"",
                         g->kernels.at[node->kernel].manifest->name, node->id,
                         kernels ? "; give it one (gantry_graph_add_cuda_kernel)"
                                 : ": gantry-cuda.so was built without nvcc; build it where nvcc is");
}

/* `known`: 1 for kernels that were looked at; `nvrtc`: as gy_user_kernel_usable. */
static gantry_status check_node(const gantry_graph *g, const gy_node *node, const gy_driver *driver, uint8_t *known,
                                bool *nvrtc, gantry_error *err)
{
    const gy_kernel *kernel = node->kernel == GY_NONE ? NULL : &g->kernels.at[node->kernel];
    if (!kernel)
        return GANTRY_OK; /* a function of the program, which is given a stream */
    if (kernel->code)
        return gy_user_kernel_usable(g, node, nvrtc, err);
    if (known[node->kernel])
        return GANTRY_OK;
    const gy_cuda_kernel *found = gy_cuda_kernel_find(kernel->manifest->name);
    gantry_error why = { 0 };
    if (!found)
        return fail_no_version(g, node, err);
    if (found->usable && found->usable(found, driver, &why)) {
        return gy_graph_fail(g, node->origin, err, GANTRY_E_UNSUPPORTED,
                             "kernel \"%s\" of node \"%s\" cannot run on a GPU here: %s; or use the back end \"host\"",
                             kernel->manifest->name, node->id, why.text);
    }
    known[node->kernel] = 1;
    return GANTRY_OK;
}

static gantry_status check_kernels(const gantry_schedule *s, const gy_driver *driver, gantry_error *err)
{
    uint8_t *known = gy_calloc(s->graph ? s->graph->kernels.count + 1 : 1, 1);
    bool nvrtc = false;
    gantry_status status = known ? GANTRY_OK : gy_fail_nomem(err);
    for (size_t i = 0; s->graph && i < s->ops.count && status == GANTRY_OK; i++) {
        const gy_op *op = &s->ops.at[i];
        uint32_t device = gy_op_device(s, op, 0);
        if (op->kind == GY_OP_LAUNCH && s->machine->device[device].gpu)
            status = check_node(s->graph, &s->graph->nodes.at[op->node], driver, known, &nvrtc, err);
    }
    gy_free(known);
    return status;
}

gantry_status gy_cuda_usable(const gantry_schedule *schedule, gantry_error *err)
{
    gy_driver driver;
    int devices;
    gantry_status status = gy_driver_start(&driver, &devices, err);
    if (status)
        return status;
    if (schedule) {
        status = check_devices(schedule, devices, err);
        status = status ? status : check_kernels(schedule, &driver, err);
    }
    gy_driver_close(&driver);
    return status;
}
