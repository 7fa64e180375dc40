/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of users' kernels: how many threads, and what the function is given. */
#include "backends/cuda/usercode/usercode.h"

#include "backends/cuda/kernels/kernels.h"
#include "base/error.h"
#include "run/number.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Values are kept in place, since a launch takes addresses of them; scalars may change between starts. */
typedef struct gy_user_call {
    gy_user_kernel *kernel;
    uint64_t *value; /* per parameter; the first bytes of each count */
    void **param;
    int32_t params;
    bool scratch; /* the last parameter */
} gy_user_call;

typedef struct extents {
    int64_t grid[3], block[3];
} extents;

/* ---- grid and block ---- */

static gantry_status evaluate(int64_t *out, const gy_user_kernel *k, const gy_expr *e, const char *what, int axis,
                              int64_t most, const gantry_launch *l, gantry_error *err)
{
    gantry_error inner;
    *out = 1;
    if (!e)
        return GANTRY_OK;
    /* The lookup only reads; the type of its context is what all lookups share. */
    void *context = (void *)(uintptr_t)l;
    gantry_status status = gy_expr_integer(e, gy_launch_lookup, context, out, GANTRY_E_GRAPH, NULL, &inner);
    if (status) {
        return gy_fail(err, status, NULL, "%s[%d] of kernel \"%s\": %s", what, axis, k->kernel->manifest->name,
                       inner.text);
    }
    if (*out < 0 || *out > most) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL,
                       "%s[%d] of kernel \"%s\" is %" PRId64 "; 0 to %" PRId64 " are allowed", what, axis,
                       k->kernel->manifest->name, *out, most);
    }
    return GANTRY_OK;
}

static gantry_status find_extents(extents *to, const gy_user_kernel *k, const gantry_launch *l, gantry_error *err)
{
    const gy_kernel_code *code = k->kernel->code;
    int64_t threads = 1;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < 3 && status == GANTRY_OK; i++) {
        status = evaluate(&to->grid[i], k, code->grid[i], "grid", i, k->most_grid[i], l, err);
        status = status ? status : evaluate(&to->block[i], k, code->block[i], "block", i, k->most_block[i], l, err);
        threads *= status ? 1 : to->block[i];
    }
    if (status == GANTRY_OK && threads > k->most_threads) {
        return gy_fail(err, GANTRY_E_GRAPH, NULL,
                       "a block of kernel \"%s\" has %" PRId64 " threads (%" PRId64 " x %" PRId64 " x %" PRId64
                       "), and with the registers that it uses the device runs at most %d; make \"block\" smaller",
                       k->kernel->manifest->name, threads, to->block[0], to->block[1], to->block[2], k->most_threads);
    }
    return status;
}

static bool is_empty(const extents *e)
{
    return !e->grid[0] || !e->grid[1] || !e->grid[2] || !e->block[0] || !e->block[1] || !e->block[2];
}

/* ---- parameters ---- */

static gantry_dtype type_of(const gy_user_kernel *k, int32_t arg)
{
    return k->kernel->code->types ? k->kernel->code->types[arg] : GANTRY_F64;
}

/* That the type can hold the number was seen when the launch was described (gy_scalar_check). */
static void set_scalar(uint64_t *value, const gy_user_kernel *k, int32_t i, const gantry_arg *arg)
{
    gantry_dtype type = type_of(k, i);
    if (gy_dtype_is_float(type))
        gy_element_store(value, type, 0, arg->number);
    else
        *value = (uint64_t)arg->integer; /* the first bytes are those of the narrower number */
}

/* A region that the node does not give has no access either; its pointer is NULL. */
static bool is_scalar(const gy_user_call *u, const gantry_launch *l, int32_t i)
{
    const gantry_kernel *manifest = u->kernel->kernel->manifest;
    return i < l->args && i < manifest->args && manifest->arg[i].scalar;
}

static void set_values(const gy_user_call *u, const gantry_launch *l)
{
    for (int32_t i = 0; i < l->args; i++)
        if (!is_scalar(u, l, i))
            u->value[i] = (uint64_t)(uintptr_t)l->arg[i].data;
        else
            set_scalar(&u->value[i], u->kernel, i, &l->arg[i]);
    if (u->scratch)
        u->value[u->params - 1] = (uint64_t)(uintptr_t)l->scratch;
}

static size_t bytes_of(const gy_user_call *u, const gantry_launch *l, int32_t i)
{
    return is_scalar(u, l, i) ? gantry_dtype_size(type_of(u->kernel, i)) : sizeof(void *);
}

static gantry_status check_count(const gy_user_call *u, int32_t given, gantry_error *err)
{
    size_t offset, bytes;
    int32_t wanted = 0;
    const gy_user_kernel *k = u->kernel;
    CUresult code;
    while ((code = k->driver->param_info(k->function, (size_t)wanted, &offset, &bytes)) == CUDA_SUCCESS)
        wanted++;
    if (wanted == given)
        return GANTRY_OK;
    if (code != CUDA_ERROR_INVALID_VALUE) /* which says that there are no more */
        return gy_driver_fail(k->driver, code, "counting the parameters of the function", err);
    return gy_fail(
        err, GANTRY_E_GRAPH, NULL,
        "the function of kernel \"%s\" has %d parameters and would be given %d: the arguments%s; nothing else "
        "is passed",
        k->kernel->manifest->name, wanted, given, u->scratch ? " and a pointer to the scratch memory" : "");
}

/* Checks the launch against the limits that the driver tells. */
static gantry_status check_params(const gy_user_call *u, const gantry_launch *l, gantry_error *err)
{
    size_t offset, bytes;
    const gy_user_kernel *k = u->kernel;
    if (!k->driver->param_info)
        return GANTRY_OK;
    gantry_status status = check_count(u, u->params, err);
    for (int32_t i = 0; i < u->params && status == GANTRY_OK; i++) {
        size_t given = bytes_of(u, l, i);
        if (k->driver->param_info(k->function, (size_t)i, &offset, &bytes) == CUDA_SUCCESS && bytes != given) {
            status = gy_fail(err, GANTRY_E_GRAPH, NULL,
                             "parameter %d of the function of kernel \"%s\", \"%s\", has %zu bytes and would be given "
                             "%zu; correct its type or its place among \"args\"",
                             i, k->kernel->manifest->name, i < l->args ? l->arg[i].name : "scratch", bytes, given);
        }
    }
    return status;
}

gantry_status gy_user_call_make(gy_user_call **out, gy_arena *arena, gy_user_kernel *kernel, const gantry_launch *l,
                                gantry_error *err)
{
    extents e;
    gy_user_call *u = gy_arena_calloc(arena, 1, sizeof *u);
    if (!u)
        return gy_fail_nomem(err);
    u->kernel = kernel;
    u->scratch = kernel->kernel->scratch != NULL;
    u->params = l->args + u->scratch;
    u->value = gy_arena_calloc(arena, (size_t)u->params + 1, sizeof *u->value);
    u->param = gy_arena_calloc(arena, (size_t)u->params + 1, sizeof *u->param);
    if (!u->value || !u->param)
        return gy_fail_nomem(err);
    for (int32_t i = 0; i < u->params; i++)
        u->param[i] = &u->value[i];
    gantry_status status = check_params(u, l, err);
    set_values(u, l);
    status = status ? status : find_extents(&e, kernel, l, err);
    *out = u;
    return status;
}

bool gy_user_early(void *kernel, gy_early which)
{
    gy_user_kernel *k = kernel;
    return gy_early_next(&k->early, which);
}

static gantry_status queue(const gy_user_call *u, CUfunction function, const extents *e, const gantry_launch *l,
                           gantry_error *err)
{
    gy_user_kernel *k = u->kernel;
    const unsigned grid[] = { (unsigned)e->grid[0], (unsigned)e->grid[1], (unsigned)e->grid[2] };
    const unsigned block[] = { (unsigned)e->block[0], (unsigned)e->block[1], (unsigned)e->block[2] };
    if (k->recorder) {
        k->recorder->is_second = function == k->finish;
        return k->recorder->add(k->recorder, k->kernel->manifest->name, grid, block, u->value, (uint32_t)u->params);
    }
    char what[200];
    CUresult code = gy_early_launch(&k->early, k->driver, function, grid, block, k->shared_bytes, l->stream, u->param);
    if (code == CUDA_SUCCESS)
        return GANTRY_OK;
    snprintf(what, sizeof what,
             "launching a grid of %u x %u x %u blocks of %u x %u x %u threads with %u bytes of shared memory", grid[0],
             grid[1], grid[2], block[0], block[1], block[2], k->shared_bytes);
    return gy_driver_fail(k->driver, code, what, err);
}

gantry_status gy_user_launch(const gantry_launch *l)
{
    const gy_user_call *u = l->user;
    gantry_error *why = &u->kernel->why;
    extents e;
    set_values(u, l);
    gantry_status status = find_extents(&e, u->kernel, l, why);
    status = status || is_empty(&e) ? status : queue(u, u->kernel->function, &e, l, why);
    if (status || !u->kernel->finish)
        return status;
    status = evaluate(&e.grid[0], u->kernel, u->kernel->kernel->code->finish, "blocks that end", 0,
                      u->kernel->most_grid[0], l, why);
    return status || is_empty(&e) ? status : queue(u, u->kernel->finish, &e, l, why);
}
