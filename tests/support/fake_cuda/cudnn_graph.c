/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operation graphs of the libcudnn.so.9 for tests: any graph of the operations that cudnn_graph.h of this project
 * knows, done one operation after another in double, with what lies between them rounded to its type. So numbers are
 * right only if the graph says what it should. The heuristics propose first what must be passed over: a configuration
 * that cannot be finalised, and one that wants too much memory. A workspace that is missing, memory that is not
 * aligned, tensors of no or of unknown memory, and a plan that was not asked for its workspace end the program.
 *
 * FAKE_CUDNN_GRAPHS=refused: the heuristics know no engine.
 */
#include "backends/cuda/nvidia/cudnn_graph.h"
#include "columns.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { SUCCESS = 0, NOT_SUPPORTED = 3000, INTERNAL = 4000, MOST = 64, ATTRIBUTES = 16 };
enum { REFUSES, LARGE, RIGHT, PROPOSED };
enum { WORKSPACE = 4096 + 12 };

typedef struct part part;
typedef struct value {
    int name, type;
    int64_t count;
    union {
        int64_t integer[MOST];
        int number;
        bool truth;
        void *pointer[MOST];
        part *part[MOST];
    } as;
} value;

/* A descriptor of any kind: the attributes that were set. */
struct part {
    int kind;
    bool done;
    value value[ATTRIBUTES];
    int values;
    int proposed; /* configurations: which */
    bool asked;   /* plans: for the size of the workspace */
};

int cudnnBackendCreateDescriptor(int kind, void **made);
int cudnnBackendDestroyDescriptor(void *made);
int cudnnBackendSetAttribute(void *to, int name, int type, int64_t count, const void *values);
int cudnnBackendGetAttribute(const void *of, int name, int type, int64_t asked, int64_t *found, void *values);
int cudnnBackendFinalize(void *made);
int cudnnBackendExecute(void *cudnn, void *plan, void *pack);

#define FAIL_IF_TOLD(name)                                                                                             \
    do {                                                                                                               \
        int told_ = columns_failure(#name);                                                                            \
        if (told_)                                                                                                     \
            return told_;                                                                                              \
    } while (0)

/* ---- descriptors ---- */

int cudnnBackendCreateDescriptor(int kind, void **made)
{
    FAIL_IF_TOLD(cudnnBackendCreateDescriptor);
    part *p = calloc(1, sizeof *p);
    if (!p)
        columns_wrong("no memory");
    p->kind = kind;
    *made = p;
    return SUCCESS;
}

int cudnnBackendDestroyDescriptor(void *made)
{
    free(made);
    return SUCCESS;
}

static size_t bytes_of(int type)
{
    switch (type) {
    case GY_CUDNN_TYPE_INT64:
    case GY_CUDNN_TYPE_HANDLE:
    case GY_CUDNN_TYPE_VOID_PTR:
    case GY_CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    case GY_CUDNN_TYPE_BOOLEAN:
        return 1;
    default:
        return sizeof(int);
    }
}

int cudnnBackendSetAttribute(void *to, int name, int type, int64_t count, const void *values)
{
    FAIL_IF_TOLD(cudnnBackendSetAttribute);
    part *p = to;
    if (p->done || p->values == ATTRIBUTES || count > MOST)
        columns_wrong("attribute %d of a descriptor that is done, or full", name);
    value *v = &p->value[p->values++];
    v->name = name;
    v->type = type;
    v->count = count;
    memcpy(&v->as, values, bytes_of(type) * (size_t)count);
    for (int64_t i = 0; i < count && type == GY_CUDNN_TYPE_BACKEND_DESCRIPTOR; i++)
        if (!v->as.part[i]->done)
            columns_wrong("attribute %d is a descriptor that is not finalised", name);
    return SUCCESS;
}

static const value *get(const part *p, int name)
{
    for (int i = 0; i < p->values; i++)
        if (p->value[i].name == name)
            return &p->value[i];
    return NULL;
}

static const value *must(const part *p, int name)
{
    const value *v = get(p, name);
    if (!v)
        columns_wrong("a descriptor of kind %d has no attribute %d", p->kind, name);
    return v;
}

static const part *part_of(const part *p, int name)
{
    const value *v = get(p, name);
    return v ? v->as.part[0] : NULL;
}

static bool graphs_are_refused(void)
{
    const char *told = getenv("FAKE_CUDNN_GRAPHS");
    return told && strcmp(told, "refused") == 0;
}

int cudnnBackendFinalize(void *made)
{
    FAIL_IF_TOLD(cudnnBackendFinalize);
    part *p = made;
    if (p->kind == GY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        must(p, GY_CUDNN_ATTR_ENGINEHEUR_MODE)->as.number == GY_CUDNN_HEUR_MODE_A && graphs_are_refused())
        return NOT_SUPPORTED + 1;
    if (p->kind == GY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        part_of(p, GY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->proposed == REFUSES)
        return NOT_SUPPORTED;
    p->done = true;
    return SUCCESS;
}

/* A plan knows its graph through the configuration that it was made of. */
static int propose(const part *asked, int64_t count, int64_t *found, part **configuration)
{
    *found = 0;
    for (int i = 0; i < PROPOSED && i < count && !graphs_are_refused(); i++, ++*found) {
        configuration[i]->proposed = i;
        configuration[i]->done = true;
        configuration[i]->value[0] = *must(asked, GY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        configuration[i]->values = 1;
    }
    return SUCCESS;
}

int cudnnBackendGetAttribute(const void *of, int name, int type, int64_t asked, int64_t *found, void *values)
{
    FAIL_IF_TOLD(cudnnBackendGetAttribute);
    const part *p = of;
    if (!p->done)
        columns_wrong("attribute %d of a descriptor that is not finalised", name);
    if (name == GY_CUDNN_ATTR_ENGINEHEUR_RESULTS && type == GY_CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return propose(p, asked, found, values);
    if (name != GY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || type != GY_CUDNN_TYPE_INT64)
        columns_wrong("attribute %d is not known here", name);
    int which = part_of(p, GY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->proposed;
    int64_t bytes = which == LARGE ? (int64_t)1 << 40 : WORKSPACE;
    memcpy(values, &bytes, sizeof bytes);
    *found = 1;
    ((part *)(uintptr_t)p)->asked = true;
    return SUCCESS;
}

/* ---- a plan that is run ---- */

/* A tensor: its elements are in `own` where it lies between two operations, or is a number. */
typedef struct array {
    int64_t id, extent[4], stride[4];
    int type;
    bool between, number;
    void *at;
    double *own;
} array;

/* Graphs of the driver run it again, so it stays; `last` leads to all. */
typedef struct job_graph {
    array array[MOST];
    int arrays;
    struct {
        const part *of;
        int x, b, t, y; /* of `array`; -1: none */
    } step[MOST];
    int steps;
    void *workspace;
    struct job_graph *next;
} job_graph;

static int find(job_graph *j, const part *tensor)
{
    if (!tensor)
        return -1;
    int64_t id = must(tensor, GY_CUDNN_ATTR_TENSOR_UNIQUE_ID)->as.integer[0];
    for (int i = 0; i < j->arrays; i++)
        if (j->array[i].id == id)
            return i;
    if (j->arrays == MOST)
        columns_wrong("a graph of more tensors than these tests have room for");
    array *a = &j->array[j->arrays];
    *a = (array){ .id = id, .type = must(tensor, GY_CUDNN_ATTR_TENSOR_DATA_TYPE)->as.number };
    a->between = must(tensor, GY_CUDNN_ATTR_TENSOR_IS_VIRTUAL)->as.truth;
    a->number = must(tensor, GY_CUDNN_ATTR_TENSOR_IS_BY_VALUE)->as.truth;
    memcpy(a->extent, must(tensor, GY_CUDNN_ATTR_TENSOR_DIMENSIONS)->as.integer, sizeof a->extent);
    memcpy(a->stride, must(tensor, GY_CUDNN_ATTR_TENSOR_STRIDES)->as.integer, sizeof a->stride);
    return j->arrays++;
}

static int64_t size_of(const array *a)
{
    return a->extent[0] * a->extent[1] * a->extent[2] * a->extent[3];
}

/* Of an index of another tensor: axes of 1 are broadcast, fewer heads are shared by as many in a row. */
static int64_t place(const array *a, const int64_t extent[4], const int64_t index[4])
{
    int64_t at = 0;
    for (int i = 0; i < 4; i++)
        at += (extent[i] == a->extent[i] ? index[i] : index[i] * a->extent[i] / extent[i]) * a->stride[i];
    return at;
}

static element type_of(int type)
{
    return type == GY_CUDNN_HALF ? F16 : type == GY_CUDNN_BFLOAT16 ? BF16 : F32;
}

static double load(const array *a, int64_t at)
{
    return a->own ? a->own[at] : columns_load(type_of(a->type), a->at, at);
}

static void store(array *a, int64_t at, double x)
{
    char rounded[8];
    if (!a->own) {
        columns_store(type_of(a->type), a->at, at, x);
        return;
    }
    bool is_float = a->type != GY_CUDNN_DATA_INT32 && a->type != GY_CUDNN_DATA_BOOLEAN;
    if (is_float)
        columns_store(type_of(a->type), rounded, 0, x);
    a->own[at] = is_float ? columns_load(type_of(a->type), rounded, 0) : x;
}

static void next(int64_t index[4], const int64_t extent[4])
{
    for (int i = 3; i >= 0 && ++index[i] == extent[i]; i--)
        index[i] = 0;
}

static double point(int mode, double x, double b, double t)
{
    switch (mode) {
    case GY_CUDNN_POINTWISE_ADD:
        return x + b;
    case GY_CUDNN_POINTWISE_SUB:
        return x - b;
    case GY_CUDNN_POINTWISE_MUL:
        return x * b;
    case GY_CUDNN_POINTWISE_DIV:
        return x / b;
    case GY_CUDNN_POINTWISE_EXP:
        return exp(x);
    case GY_CUDNN_POINTWISE_LOG:
        return log(x);
    case GY_CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case GY_CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    default:
        columns_wrong("a pointwise operation of cuDNN that these tests know nothing of: %d", mode);
    }
}

static void do_each(job_graph *j, int i)
{
    const part *what = part_of(j->step[i].of, GY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    int mode = must(what, GY_CUDNN_ATTR_POINTWISE_MODE)->as.number;
    array *y = &j->array[j->step[i].y];
    const array *x = &j->array[j->step[i].x], *b = j->step[i].b < 0 ? NULL : &j->array[j->step[i].b];
    const array *t = j->step[i].t < 0 ? NULL : &j->array[j->step[i].t];
    int64_t index[4] = { 0 };
    for (int64_t k = 0; k < size_of(y); k++, next(index, y->extent)) {
        int64_t to = place(y, y->extent, index);
        if (mode == GY_CUDNN_POINTWISE_GEN_INDEX)
            store(y, to, (double)index[must(what, GY_CUDNN_ATTR_POINTWISE_AXIS)->as.integer[0]]);
        else
            store(y, to,
                  point(mode, load(x, place(x, y->extent, index)), b ? load(b, place(b, y->extent, index)) : 0,
                        t ? load(t, place(t, y->extent, index)) : 0));
    }
}

static void do_reduction(job_graph *j, int i)
{
    const part *what = part_of(j->step[i].of, GY_CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    bool adds = must(what, GY_CUDNN_ATTR_REDUCTION_OPERATOR)->as.number == GY_CUDNN_REDUCE_TENSOR_ADD;
    const array *x = &j->array[j->step[i].x];
    array *y = &j->array[j->step[i].y];
    double *sum = malloc((size_t)size_of(y) * sizeof *sum);
    int64_t index[4] = { 0 };
    for (int64_t k = 0; k < size_of(y); k++)
        sum[k] = adds ? 0 : -INFINITY;
    for (int64_t k = 0; k < size_of(x); k++, next(index, x->extent)) {
        double v = load(x, place(x, x->extent, index)), *to = &sum[place(y, x->extent, index)];
        *to = adds ? *to + v : v > *to ? v : *to;
    }
    for (int64_t k = 0; k < size_of(y); k++)
        store(y, k, sum[k]);
    free(sum);
}

static void do_multiplication(job_graph *j, int i)
{
    const array *a = &j->array[j->step[i].x], *b = &j->array[j->step[i].b];
    array *c = &j->array[j->step[i].y];
    int64_t index[4] = { 0 };
    if (a->extent[3] != b->extent[2])
        columns_wrong("matrices that cannot be multiplied: %d columns, %d rows", (int)a->extent[3], (int)b->extent[2]);
    for (int64_t k = 0; k < size_of(c); k++, next(index, c->extent)) {
        double sum = 0;
        for (int64_t l = 0; l < a->extent[3]; l++) {
            int64_t left[4] = { index[0], index[1], index[2], l }, right[4] = { index[0], index[1], l, index[3] };
            int64_t wide[4] = { c->extent[0], c->extent[1], c->extent[2], a->extent[3] };
            int64_t high[4] = { c->extent[0], c->extent[1], b->extent[2], c->extent[3] };
            sum += load(a, place(a, wide, left)) * load(b, place(b, high, right));
        }
        store(c, place(c, c->extent, index), sum);
    }
}

/* The same memory, seen with other extents and strides; here a copy of it. */
static void do_reshape(job_graph *j, int i)
{
    const array *x = &j->array[j->step[i].x];
    array *y = &j->array[j->step[i].y];
    int64_t index[4] = { 0 };
    for (int64_t k = 0; k < size_of(y); k++, next(index, y->extent)) {
        int64_t turned[4] = { index[0], index[1], index[3], index[2] };
        store(y, place(y, y->extent, index), load(x, place(x, x->extent, turned)));
    }
}

static void run(const fakeCudaLaunch *l, void **params)
{
    job_graph *j = *(job_graph **)params[0];
    (void)l;
    memset(j->workspace, 0x5C, WORKSPACE);
    for (int i = 0; i < j->arrays; i++) {
        array *a = &j->array[i];
        if (a->between && !(a->own = calloc((size_t)size_of(a) + 1, sizeof *a->own)))
            columns_wrong("no memory");
    }
    for (int i = 0; i < j->steps; i++)
        switch (j->step[i].of->kind) {
        case GY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
            do_each(j, i);
            break;
        case GY_CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            do_reduction(j, i);
            break;
        case GY_CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            do_multiplication(j, i);
            break;
        default:
            do_reshape(j, i);
        }
    for (int i = 0; i < j->arrays; i++)
        if (j->array[i].between) {
            free(j->array[i].own);
            j->array[i].own = NULL;
        }
}

/* ---- queued ---- */

static void add_step(job_graph *j, const part *of)
{
    static const struct {
        int kind, x, b, t, y;
    } names[] = {
        { GY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, GY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
          GY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, GY_CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
          GY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC },
        { GY_CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, GY_CUDNN_ATTR_OPERATION_REDUCTION_XDESC, -1, -1,
          GY_CUDNN_ATTR_OPERATION_REDUCTION_YDESC },
        { GY_CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, GY_CUDNN_ATTR_OPERATION_MATMUL_ADESC,
          GY_CUDNN_ATTR_OPERATION_MATMUL_BDESC, -1, GY_CUDNN_ATTR_OPERATION_MATMUL_CDESC },
        { GY_CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, GY_CUDNN_ATTR_OPERATION_RESHAPE_XDESC, -1, -1,
          GY_CUDNN_ATTR_OPERATION_RESHAPE_YDESC },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (of->kind == names[i].kind) {
            int x = find(j, part_of(of, names[i].x)), b = find(j, part_of(of, names[i].b)),
                t = find(j, part_of(of, names[i].t)), y = find(j, part_of(of, names[i].y));
            if (x < 0 || y < 0)
                columns_wrong("an operation without an operand or result");
            j->step[j->steps].of = of;
            j->step[j->steps].x = x;
            j->step[j->steps].b = b;
            j->step[j->steps].t = t;
            j->step[j->steps++].y = y;
            return;
        }
    columns_wrong("an operation of kind %d", of->kind);
}

static void give_memory(job_graph *j, const part *pack)
{
    const value *ids = must(pack, GY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const value *pointers = must(pack, GY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int64_t i = 0; i < ids->count; i++) {
        int k = 0;
        while (k < j->arrays && j->array[k].id != ids->as.integer[i])
            k++;
        if (k == j->arrays || j->array[k].between)
            columns_wrong("memory for a tensor that the graph has not, or that has none");
        array *a = &j->array[k];
        a->at = pointers->as.pointer[i];
        if (!a->number && (uintptr_t)a->at % 16)
            columns_wrong("memory of a tensor is not aligned");
        if (a->number) { /* is read now */
            a->own = malloc(sizeof *a->own);
            *a->own = a->type == GY_CUDNN_DATA_INT32 ? *(const int32_t *)a->at : (double)*(const float *)a->at;
        }
    }
    for (int k = 0; k < j->arrays; k++)
        if (!j->array[k].between && !j->array[k].at)
            columns_wrong("a tensor of the graph has no memory");
}

typedef struct handle {
    int device;
    CUstream stream;
} handle;

static _Atomic(job_graph *) last;

static job_graph *new_job(void)
{
    job_graph *j = calloc(1, sizeof *j);
    if (!j)
        columns_wrong("no memory");
    j->next = last;
    while (!atomic_compare_exchange_weak(&last, &j->next, j)) {
    }
    return j;
}

int cudnnBackendExecute(void *cudnn, void *plan, void *pack)
{
    FAIL_IF_TOLD(cudnnBackendExecute);
    fakeCudaInjected("cudnnBackendExecute"); /* counts it */
    static const size_t size = sizeof(job_graph *);
    const part *p = plan, *configuration = part_of(p, GY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (configuration->proposed != RIGHT || !p->asked)
        columns_wrong("a plan of cuDNN that must not be taken, or whose workspace is not known");
    job_graph *j = new_job();
    const value *operations =
        must(part_of(configuration, GY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), GY_CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < operations->count; i++)
        add_step(j, operations->as.part[i]);
    give_memory(j, pack);
    j->workspace = must(pack, GY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->as.pointer[0];
    if (!j->workspace)
        columns_wrong("a plan of cuDNN without its workspace");
    CUresult code = cuLaunchKernel(fakeCudaFunction("cuDNN graph", run, &size, 1), 1, 1, 1, 1, 1, 1, 0,
                                   ((handle *)cudnn)->stream, (void *[]){ &j }, NULL);
    return code == CUDA_SUCCESS ? SUCCESS : INTERNAL;
}

#pragma GCC visibility pop
