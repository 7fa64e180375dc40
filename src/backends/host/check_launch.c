/* SPDX-License-Identifier: Apache-2.0 */
/* One launch, tried several times. */
#include "backends/host/check.h"

#include "base/error.h"
#include "base/memory.h"
#include "run/reduce.h"
#include <string.h>

enum { PLAIN, FRESH, AGAIN, REPEATED }; /* tries: as it is; from the identity; from another value; as PLAIN */

static bool reduces(const gy_use *u)
{
    return u->mode >= GANTRY_SUM;
}
static bool writes(const gy_use *u)
{
    return u->mode != GANTRY_READ;
}
static size_t bytes_of(const gy_trial *t, uint32_t k)
{
    return (size_t)gy_use_bytes(t->c->job->schedule, gy_trial_use(t, k));
}

gantry_dtype gy_trial_dtype(const gy_trial *t, uint32_t k)
{
    const gy_instance *i = &t->c->job->schedule->instances.at[gy_trial_use(t, k)->instance];
    return t->c->job->graph->buffers.at[t->c->job->schedule->values.at[i->value].buffer].dtype;
}

static uint64_t elements_of(const gy_trial *t, uint32_t k)
{
    return bytes_of(t, k) / gantry_dtype_size(gy_trial_dtype(t, k));
}

/* Gives a window its contents before call `number` of the kernel. */
static void prepare_window(const gy_trial *t, uint32_t k, int number)
{
    const gy_use *u = gy_trial_use(t, k);
    gantry_access op = (gantry_access)u->mode;
    char *to = t->window[k].data;
    if (op == GANTRY_WRITE) {
        memset(to, number == FRESH ? GY_POISON_B : GY_POISON_A, bytes_of(t, k));
    } else if (reduces(u) && number == FRESH) {
        gy_fill_identity(to, gy_trial_dtype(t, k), op, elements_of(t, k));
    } else if (reduces(u) && number == AGAIN) {
        gy_second_start(t->start[k], *gy_trial_result(t, k, FRESH), gy_trial_dtype(t, k), op, elements_of(t, k));
        memcpy(to, t->start[k], bytes_of(t, k));
    } else {
        memcpy(to, t->home[k], bytes_of(t, k));
    }
}

static gantry_status open_windows(gy_trial *t, int number, gantry_error *err)
{
    gy_checked *c = t->c;
    bool at_end = number != FRESH;
    for (uint32_t k = 0; k < t->op->uses; k++) {
        gantry_status status = gy_window_open(&c->windows, &t->window[k], bytes_of(t, k), at_end, err);
        if (status)
            return status;
        prepare_window(t, k, number);
        if (!writes(gy_trial_use(t, k)))
            GY_TRY(gy_window_protect(&t->window[k], err));
        gy_host_ops_point(&c->ops, t->op->use + k, t->window[k].data);
    }
    gantry_launch *l = &c->ops.call[t->id]->launch;
    if (l->scratch_bytes) {
        gantry_status status = gy_window_open(&c->windows, &t->scratch, (size_t)l->scratch_bytes, false, err);
        if (status)
            return status;
        memset(t->scratch.data, number == FRESH ? GY_POISON_B : GY_POISON_A, (size_t)l->scratch_bytes);
        l->scratch = t->scratch.data;
    }
    return GANTRY_OK;
}

static void close_windows(gy_trial *t)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        gy_window_close(&t->window[k]);
        gy_host_ops_point(&t->c->ops, t->op->use + k, t->home[k]);
    }
    gy_window_close(&t->scratch);
}

static void call(void *trial)
{
    gy_trial *t = trial;
    t->succeeded = gy_host_ops_execute(&t->c->ops, t->id, &t->failure);
}

static gantry_status call_guarded(gy_trial *t, gantry_error *err)
{
    const void *address = NULL;
    bool guarded = gy_host_memory_allow(&t->c->memory, false);
    bool calm = !guarded || gy_fault_guard(call, t, &address);
    bool open = gy_host_memory_allow(&t->c->memory, true);
    if (!guarded || !open)
        return gy_fail_nomem(err);
    if (!calm)
        return gy_report_touch(t, address, err);
    return t->succeeded ? GANTRY_OK : gy_host_ops_fail(&t->c->ops, t->id, t->failure, err);
}

static gantry_status keep_results(gy_trial *t, int number, gantry_error *err)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        char **kept = gy_trial_result(t, k, number);
        if (!writes(gy_trial_use(t, k)))
            continue;
        *kept = gy_alloc(bytes_of(t, k));
        if (!*kept)
            return gy_fail_nomem(err);
        memcpy(*kept, t->window[k].data, bytes_of(t, k));
    }
    return GANTRY_OK;
}

static gantry_status attempt(gy_trial *t, int number, gantry_error *err)
{
    gantry_status status = open_windows(t, number, err);
    status = status ? status : call_guarded(t, err);
    status = status ? status : keep_results(t, number, err);
    close_windows(t);
    return status;
}

static gantry_status check_written(const gy_trial *t, gantry_error *err)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        size_t first = 0, count = 0;
        if (gy_trial_use(t, k)->mode == GANTRY_WRITE) {
            count = gy_count_unwritten(*gy_trial_result(t, k, PLAIN), *gy_trial_result(t, k, FRESH), bytes_of(t, k),
                                       &first);
        }
        if (count)
            return gy_report_unwritten(t, k, first, count, err);
    }
    return GANTRY_OK;
}

static gantry_status check_added(gy_trial *t, gantry_error *err)
{
    bool any = false;
    for (uint32_t k = 0; k < t->op->uses; k++)
        any |= reduces(gy_trial_use(t, k));
    gantry_status status = any ? attempt(t, AGAIN, err) : GANTRY_OK;
    for (uint32_t k = 0; status == GANTRY_OK && k < t->op->uses; k++) {
        if (!reduces(gy_trial_use(t, k)))
            continue;
        uint64_t i =
            gy_find_not_added(t->start[k], *gy_trial_result(t, k, FRESH), *gy_trial_result(t, k, AGAIN),
                              gy_trial_dtype(t, k), (gantry_access)gy_trial_use(t, k)->mode, elements_of(t, k));
        status = i == UINT64_MAX ? GANTRY_OK : gy_report_not_added(t, k, i, err);
    }
    return status;
}

/* The first use, but for reductions, whose results of two tries differ; GY_NONE if there is none. */
static uint32_t find_difference(const gy_trial *t, int a, int b, size_t *first)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        const gy_use *u = gy_trial_use(t, k);
        const char *x = *gy_trial_result(t, k, a), *y = *gy_trial_result(t, k, b);
        if (!writes(u) || reduces(u) || memcmp(x, y, bytes_of(t, k)) == 0)
            continue;
        for (*first = 0; x[*first] == y[*first]; ++*first) {
        }
        return k;
    }
    return GY_NONE;
}

/* Two tries that differ are told from a function that never gives the same twice by a third one. */
static gantry_status check_depends(gy_trial *t, gantry_error *err)
{
    const gantry_graph *g = t->c->job->graph;
    size_t first, other;
    uint32_t k = find_difference(t, PLAIN, FRESH, &first);
    bool varies =
        t->node->kernel != GY_NONE && (g->kernels.at[t->node->kernel].manifest->flags & GANTRY_KERNEL_ORDER_VARIES);
    if (k == GY_NONE || varies)
        return GANTRY_OK;
    gantry_status status = attempt(t, REPEATED, err);
    if (status == GANTRY_OK && find_difference(t, PLAIN, REPEATED, &other) == GY_NONE)
        status = gy_report_depends(t, k, first, err);
    return status;
}

static void bring_home(const gy_trial *t)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        const gy_use *u = gy_trial_use(t, k);
        if (writes(u)) {
            uint8_t *noted = gy_check_written(t->c, u);
            memcpy(t->home[k], *gy_trial_result(t, k, PLAIN), bytes_of(t, k));
            if (noted)
                memset(noted, 1, bytes_of(t, k));
        }
    }
}

static bool make_trial(gy_trial *t)
{
    uint32_t uses = t->op->uses;
    t->window = gy_calloc(uses, sizeof *t->window);
    t->home = gy_calloc(uses, sizeof *t->home);
    t->start = gy_calloc(uses, sizeof *t->start);
    t->result = gy_calloc(uses, GY_TRIES * sizeof *t->result);
    bool room = t->window && t->home && t->start && t->result;
    for (uint32_t k = 0; room && k < uses; k++) {
        t->home[k] = t->c->ops.at[t->op->use + k];
        if (reduces(gy_trial_use(t, k))) {
            t->start[k] = gy_alloc(bytes_of(t, k));
            room = t->start[k] != NULL;
        }
    }
    return room;
}

static void free_trial(gy_trial *t)
{
    for (uint32_t k = 0; k < t->op->uses; k++) {
        for (int number = 0; t->result && number < GY_TRIES; number++)
            gy_free(*gy_trial_result(t, k, number));
        if (t->start)
            gy_free(t->start[k]);
    }
    gy_free(t->window);
    gy_free(t->home);
    gy_free(t->start);
    gy_free(t->result);
}

gantry_status gy_check_launch(gy_checked *c, uint32_t op, gantry_error *err)
{
    gy_trial t = { .c = c, .id = op, .op = &c->job->schedule->ops.at[op] };
    t.node = &c->job->graph->nodes.at[t.op->node];
    gantry_status status = gy_check_reads(c, op, 0, t.op->uses, err);
    if (status)
        return status;
    status = make_trial(&t) ? attempt(&t, PLAIN, err) : gy_fail_nomem(err);
    status = status ? status : attempt(&t, FRESH, err);
    status = status ? status : check_written(&t, err);
    status = status ? status : check_added(&t, err);
    status = status ? status : check_depends(&t, err);
    if (status == GANTRY_OK)
        bring_home(&t);
    free_trial(&t);
    return status;
}
