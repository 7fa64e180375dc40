/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvidia/cudnn_graph.h"

#include <string.h>

enum { CONFIGURATIONS = 8, ALIGNMENT = 16, REFUSED = GY_CUDNN_NOT_SUPPORTED };

/* ---- descriptors ---- */

/* Notes the first failure. */
static void note(gy_cudnn_graph *g, int status, const char *call)
{
    if (g->status == GY_CUDNN_SUCCESS && status != GY_CUDNN_SUCCESS) {
        g->status = status;
        g->call = call;
    }
}

static void *make(gy_cudnn_graph *g, int kind)
{
    void *made = NULL;
    if (g->parts == GY_CUDNN_GRAPH_PARTS)
        note(g, REFUSED, "cudnnBackendCreateDescriptor");
    if (g->status == GY_CUDNN_SUCCESS)
        note(g, g->api->cudnnBackendCreateDescriptor(kind, &made), "cudnnBackendCreateDescriptor");
    if (made)
        g->part[g->parts++] = made;
    return made;
}

static void set(gy_cudnn_graph *g, void *of, int name, int type, int64_t count, const void *values)
{
    if (g->status == GY_CUDNN_SUCCESS)
        note(g, g->api->cudnnBackendSetAttribute(of, name, type, count, values), "cudnnBackendSetAttribute");
}

static void set_part(gy_cudnn_graph *g, void *of, int name, void *part)
{
    set(g, of, name, GY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static void finish(gy_cudnn_graph *g, void *made)
{
    if (g->status == GY_CUDNN_SUCCESS)
        note(g, g->api->cudnnBackendFinalize(made), "cudnnBackendFinalize");
}

/* ---- tensors ---- */

static gy_cudnn_tensor tensor(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES],
                              const int64_t stride[GY_CUDNN_AXES], bool between, bool number)
{
    gy_cudnn_tensor t = { .type = type, .id = ++g->tensors, .descriptor = make(g, GY_CUDNN_BACKEND_TENSOR_DESCRIPTOR) };
    int64_t alignment = ALIGNMENT;
    memcpy(t.extent, extent, sizeof t.extent);
    memcpy(t.stride, stride, sizeof t.stride);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_UNIQUE_ID, GY_CUDNN_TYPE_INT64, 1, &t.id);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_DATA_TYPE, GY_CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_DIMENSIONS, GY_CUDNN_TYPE_INT64, GY_CUDNN_AXES, t.extent);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_STRIDES, GY_CUDNN_TYPE_INT64, GY_CUDNN_AXES, t.stride);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, GY_CUDNN_TYPE_INT64, 1, &alignment);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_IS_VIRTUAL, GY_CUDNN_TYPE_BOOLEAN, 1, &between);
    set(g, t.descriptor, GY_CUDNN_ATTR_TENSOR_IS_BY_VALUE, GY_CUDNN_TYPE_BOOLEAN, 1, &number);
    finish(g, t.descriptor);
    return t;
}

static gy_cudnn_tensor tight(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES], bool turned,
                             bool between, bool number)
{
    int64_t matrix = extent[2] * extent[3];
    const int64_t stride[GY_CUDNN_AXES] = { extent[1] * matrix, matrix, turned ? 1 : extent[3],
                                            turned ? extent[2] : 1 };
    return tensor(g, type, extent, stride, between, number);
}

gy_cudnn_tensor gy_cudnn_given(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES])
{
    return tight(g, type, extent, false, false, false);
}

gy_cudnn_tensor gy_cudnn_strided(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES],
                                 const int64_t stride[GY_CUDNN_AXES], bool between)
{
    return tensor(g, type, extent, stride, between, false);
}

gy_cudnn_tensor gy_cudnn_between(gy_cudnn_graph *g, int type, const int64_t extent[GY_CUDNN_AXES], bool turned)
{
    return tight(g, type, extent, turned, true, false);
}

gy_cudnn_tensor gy_cudnn_number(gy_cudnn_graph *g, int type)
{
    static const int64_t one[GY_CUDNN_AXES] = { 1, 1, 1, 1 };
    return tight(g, type, one, false, false, true);
}

/* ---- operations ---- */

typedef struct operand {
    int name;   /* of the attribute */
    void *part; /* NULL: there is none */
} operand;

static void add_operation(gy_cudnn_graph *g, int kind, const operand *operands, size_t count)
{
    void *made = make(g, kind);
    for (size_t i = 0; i < count; i++)
        if (operands[i].part)
            set_part(g, made, operands[i].name, operands[i].part);
    finish(g, made);
    if (g->operations == GY_CUDNN_GRAPH_OPERATIONS)
        note(g, REFUSED, "cudnnBackendFinalize");
    if (g->status == GY_CUDNN_SUCCESS)
        g->operation[g->operations++] = made;
}
#define ADD_OPERATION(g, kind, ...)                                                                                    \
    add_operation(g, kind, (const operand[]){ __VA_ARGS__ }, sizeof((const operand[]){ __VA_ARGS__ }) / sizeof(operand))

/* axis: -1 for all modes but that which has one. */
static void each(gy_cudnn_graph *g, int mode, int type, int64_t axis, const gy_cudnn_tensor *x,
                 const gy_cudnn_tensor *b, const gy_cudnn_tensor *t, const gy_cudnn_tensor *y)
{
    void *what = make(g, GY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, what, GY_CUDNN_ATTR_POINTWISE_MODE, GY_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, what, GY_CUDNN_ATTR_POINTWISE_MATH_PREC, GY_CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (axis >= 0)
        set(g, what, GY_CUDNN_ATTR_POINTWISE_AXIS, GY_CUDNN_TYPE_INT64, 1, &axis);
    finish(g, what);
    ADD_OPERATION(g, GY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                  { GY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what },
                  { GY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->descriptor },
                  { GY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b ? b->descriptor : NULL },
                  { GY_CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t ? t->descriptor : NULL },
                  { GY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->descriptor });
}

void gy_cudnn_each(gy_cudnn_graph *g, int mode, int type, const gy_cudnn_tensor *x, const gy_cudnn_tensor *b,
                   const gy_cudnn_tensor *t, const gy_cudnn_tensor *y)
{
    each(g, mode, type, -1, x, b, t, y);
}

void gy_cudnn_index(gy_cudnn_graph *g, int64_t axis, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y)
{
    each(g, GY_CUDNN_POINTWISE_GEN_INDEX, GY_CUDNN_DATA_INT32, axis, x, NULL, NULL, y);
}

void gy_cudnn_reduce(gy_cudnn_graph *g, int operation, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y)
{
    int type = GY_CUDNN_FLOAT;
    void *what = make(g, GY_CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, what, GY_CUDNN_ATTR_REDUCTION_OPERATOR, GY_CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
    set(g, what, GY_CUDNN_ATTR_REDUCTION_COMP_TYPE, GY_CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(g, what);
    ADD_OPERATION(g, GY_CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, { GY_CUDNN_ATTR_OPERATION_REDUCTION_DESC, what },
                  { GY_CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->descriptor },
                  { GY_CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y->descriptor });
}

void gy_cudnn_multiply(gy_cudnn_graph *g, const gy_cudnn_tensor *a, const gy_cudnn_tensor *b, const gy_cudnn_tensor *c)
{
    int type = GY_CUDNN_FLOAT;
    void *what = make(g, GY_CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(g, what, GY_CUDNN_ATTR_MATMUL_COMP_TYPE, GY_CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(g, what);
    ADD_OPERATION(g, GY_CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, { GY_CUDNN_ATTR_OPERATION_MATMUL_DESC, what },
                  { GY_CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->descriptor },
                  { GY_CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->descriptor },
                  { GY_CUDNN_ATTR_OPERATION_MATMUL_CDESC, c->descriptor });
}

void gy_cudnn_reshape(gy_cudnn_graph *g, const gy_cudnn_tensor *x, const gy_cudnn_tensor *y)
{
    ADD_OPERATION(g, GY_CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                  { GY_CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->descriptor },
                  { GY_CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y->descriptor });
}

/* ---- plans ---- */

/* The plan of a configuration of an engine, if it can be made in so many bytes: what cuDNN refuses is passed over. */
static bool try_configuration(gy_cudnn_plan *p, void *configuration, size_t most)
{
    gy_cudnn_graph *g = &p->graph;
    int64_t found = 0, bytes = -1;
    void *made = make(g, GY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(g, made, GY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, GY_CUDNN_TYPE_HANDLE, 1, &g->cudnn);
    set_part(g, made, GY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (g->status)
        return false;
    int status = g->api->cudnnBackendFinalize(made);
    if (gy_cudnn_refuses(status))
        return false;
    note(g, status, "cudnnBackendFinalize");
    if (g->status == GY_CUDNN_SUCCESS)
        note(g,
             g->api->cudnnBackendGetAttribute(made, GY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, GY_CUDNN_TYPE_INT64, 1,
                                              &found, &bytes),
             "cudnnBackendGetAttribute");
    if (g->status || bytes < 0 || (size_t)bytes > most)
        return false;
    p->plan = made;
    p->bytes = (size_t)bytes;
    return true;
}

/* Looks through what the heuristics of this mode propose, in their order. */
static void look(gy_cudnn_plan *p, void *operations, int mode, size_t most)
{
    gy_cudnn_graph *g = &p->graph;
    void *asked = make(g, GY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), *configuration[CONFIGURATIONS] = { NULL };
    int64_t found = 0;
    set_part(g, asked, GY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    set(g, asked, GY_CUDNN_ATTR_ENGINEHEUR_MODE, GY_CUDNN_TYPE_HEUR_MODE, 1, &mode);
    for (int i = 0; i < CONFIGURATIONS; i++)
        configuration[i] = make(g, GY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->status)
        return;
    int status = g->api->cudnnBackendFinalize(asked);
    if (gy_cudnn_refuses(status))
        return;
    note(g, status, "cudnnBackendFinalize");
    if (g->status == GY_CUDNN_SUCCESS)
        note(g,
             g->api->cudnnBackendGetAttribute(asked, GY_CUDNN_ATTR_ENGINEHEUR_RESULTS, GY_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              CONFIGURATIONS, &found, configuration),
             "cudnnBackendGetAttribute");
    for (int64_t i = 0; i < found && i < CONFIGURATIONS && !p->plan && g->status == GY_CUDNN_SUCCESS; i++)
        try_configuration(p, configuration[i], most);
}

int gy_cudnn_plan_make(gy_cudnn_plan *p, size_t most)
{
    gy_cudnn_graph *g = &p->graph;
    void *operations = make(g, GY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, operations, GY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, GY_CUDNN_TYPE_HANDLE, 1, &g->cudnn);
    set(g, operations, GY_CUDNN_ATTR_OPERATIONGRAPH_OPS, GY_CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)g->operations,
        g->operation);
    finish(g, operations);
    look(p, operations, GY_CUDNN_HEUR_MODE_A, most);
    if (!p->plan)
        look(p, operations, GY_CUDNN_HEUR_MODE_FALLBACK, most);
    if (!p->plan)
        note(g, REFUSED, "cudnnBackendFinalize");
    return g->status;
}

int gy_cudnn_plan_run(gy_cudnn_plan *p, int count, const int64_t *id, void *const *at, void *workspace)
{
    gy_cudnn_graph pack = { .api = p->graph.api };
    int64_t given[GY_CUDNN_GRAPH_OPERATIONS];
    void *places[GY_CUDNN_GRAPH_OPERATIONS];
    int64_t used = 0;
    for (int i = 0; i < count; i++)
        if (id[i]) {
            given[used] = id[i];
            places[used++] = at[i];
        }
    void *made = make(&pack, GY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&pack, made, GY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, GY_CUDNN_TYPE_VOID_PTR, used, places);
    set(&pack, made, GY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, GY_CUDNN_TYPE_INT64, used, given);
    set(&pack, made, GY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, GY_CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish(&pack, made);
    if (pack.status == GY_CUDNN_SUCCESS)
        note(&pack, pack.api->cudnnBackendExecute(p->graph.cudnn, p->plan, made), "cudnnBackendExecute");
    if (made)
        pack.api->cudnnBackendDestroyDescriptor(made);
    p->graph.call = pack.call;
    return pack.status;
}

void gy_cudnn_plan_free(gy_cudnn_plan *p)
{
    while (p->graph.parts)
        p->graph.api->cudnnBackendDestroyDescriptor(p->graph.part[--p->graph.parts]);
    p->plan = NULL;
}
