/* SPDX-License-Identifier: Apache-2.0 */
/* The checking twin of the host back end. A start is carried out in `begin`, by the thread that calls it. */
#include "backends/host/check.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>
#include <sys/mman.h>

uint8_t *gy_check_written(const gy_checked *c, const gy_use *use)
{
    const gantry_schedule *s = c->job->schedule;
    const gy_instance *i = &s->instances.at[use->instance];
    if (i->space != GY_SPACE_SLAB)
        return NULL;
    uint64_t at = gy_instance_address(s, i, gy_job_turn(c->job, c->started));
    return c->written[i->memory] + at + gy_instance_offset(s, i, use->first);
}

gantry_status gy_check_reads(const gy_checked *c, uint32_t op, uint32_t first, uint32_t uses, gantry_error *err)
{
    const gantry_schedule *s = c->job->schedule;
    for (uint32_t k = first; k < first + uses; k++) {
        const gy_use *use = &s->use.at[s->ops.at[op].use + k];
        const uint8_t *noted = gy_check_written(c, use);
        size_t bytes = (size_t)gy_use_bytes(s, use);
        const uint8_t *unset = noted && use->mode != GANTRY_WRITE ? memchr(noted, 0, bytes) : NULL;
        if (unset)
            return gy_report_unset(c, op, k, (size_t)(unset - noted), err);
    }
    return GANTRY_OK;
}

/* Nothing is known of a slab when a start begins, but for what persists. */
static void forget(const gy_checked *c)
{
    const gantry_schedule *s = c->job->schedule;
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *instance = &s->instances.at[i];
        gy_use whole = { .instance = (uint32_t)i, .first = instance->first, .last = instance->last };
        uint8_t *written = gy_check_written(c, &whole);
        if (!written) /* in no slab */
            continue;
        size_t bytes = (size_t)gy_use_bytes(s, &whole);
        bool persists = instance->role == GY_ROLE_PERSIST;
        memset(written, persists, bytes);
        if (!persists) {
            memset(gy_host_instance_at(&c->memory, c->job, instance, gy_job_turn(c->job, c->started)), GY_POISON_SLAB,
                   bytes);
        }
    }
}

static void note_written(const gy_checked *c, const gy_use *use)
{
    uint8_t *noted = gy_check_written(c, use);
    if (noted)
        memset(noted, 1, (size_t)gy_use_bytes(c->job->schedule, use));
}

/* A copy asks nothing of the bytes it moves: what was not written is not written there either. */
static void note_copied(const gy_checked *c, const gy_use *from, const gy_use *to)
{
    const uint8_t *source = gy_check_written(c, from);
    uint8_t *target = gy_check_written(c, to);
    if (source && target)
        memmove(target, source, (size_t)gy_use_bytes(c->job->schedule, to));
    else
        note_written(c, to);
}

static gantry_status check_moved(gy_checked *c, uint32_t id, gantry_error *err)
{
    const gantry_schedule *s = c->job->schedule;
    const gy_op *op = &s->ops.at[id];
    const gy_use *use = gy_vec_from(&s->use, op->use);
    bool copies = gy_op_is_copy(op);
    gantry_status status = op->kind == GY_OP_COLLECTIVE ? gy_check_reads(c, id, 0, op->ins, err) : GANTRY_OK;
    if (status)
        return status;
    gy_op_failure none;
    gy_host_ops_execute(&c->ops, id, &none);
    uint32_t reads = copies ? op->uses / 2 : op->kind == GY_OP_COLLECTIVE ? op->ins : 0;
    for (uint32_t k = reads; k < op->uses - gy_op_has_flag(op); k++)
        if (copies)
            note_copied(c, &use[k - reads], &use[k]);
        else
            note_written(c, &use[k]);
    return GANTRY_OK;
}

static gantry_status check_op(gy_checked *c, uint32_t op, gantry_error *err)
{
    uint32_t flag = c->ops.flag[op] ? c->ops.flag[op] - 1 - c->job->schedule->ops.at[op].use : 0;
    if (c->ops.flag[op])
        GY_TRY(gy_check_reads(c, op, flag, 1, err));
    if (!gy_host_ops_wanted(&c->ops, op))
        return GANTRY_OK;
    return c->ops.call[op] ? gy_check_launch(c, op, err) : check_moved(c, op, err);
}

static gantry_status check_ops(gy_checked *c, int64_t begin, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    for (size_t i = 0; status == GANTRY_OK && i < c->job->schedule->ops.count; i++) {
        uint32_t op = c->sequence[i];
        int64_t start = gy_now_ns() - begin;
        if (gy_job_canceled(c->job))
            return gy_fail(err, GANTRY_E_CANCELED, NULL, "before op %u, in checking mode", op);
        gy_host_ops_turn(&c->ops, op, c->started);
        status = check_op(c, op, err);
        if (c->time)
            c->time[op] = (gy_op_time){ start, gy_now_ns() - begin };
        if (status == GANTRY_OK && c->job->deadline_ns && gy_now_ns() - begin > c->job->deadline_ns) {
            gy_text name = { 0 };
            gy_op_text(&name, c->job->schedule, op);
            status = gy_fail(err, GANTRY_E_TIMEOUT, NULL, "the deadline of %.3f ms passed: op %u, \"%s\", was the last",
                             (double)c->job->deadline_ns / 1e6, op, name.length ? name.at : "?");
            gy_text_free(&name);
        }
    }
    return status;
}

static gantry_status checked_begin(void *state, uint64_t start, gantry_error *err)
{
    gy_checked *c = state;
    GY_TRY(gy_order_shuffle(&c->order, c->job->seed + start, c->sequence, err));
    if (!gy_host_memory_allow(&c->memory, true)) /* the last start may have found no room for that */
        return gy_fail_nomem(err);
    int64_t begin = gy_now_ns();
    c->started = start;
    forget(c);
    c->failed = check_ops(c, begin, &c->error) ? start : 0;
    c->elapsed_ns = gy_now_ns() - begin;
    return GANTRY_OK;
}

static gantry_status checked_finish(void *state, uint64_t start, int64_t *elapsed_ns, gantry_error *err)
{
    gy_checked *c = state;
    if (c->failed == start) {
        if (err)
            *err = c->error;
        return c->error.status;
    }
    *elapsed_ns = c->elapsed_ns;
    return GANTRY_OK;
}

static size_t noted_bytes(const gantry_schedule *s, uint32_t memory)
{
    return s->slab.at[memory] ? (size_t)s->slab.at[memory] : 1;
}

static void free_written(gy_checked *c)
{
    const gantry_schedule *s = c->job->schedule;
    for (uint32_t i = 0; c->written && i < s->machine->memories; i++)
        if (c->written[i])
            munmap(c->written[i], noted_bytes(s, i));
    gy_free(c->written);
}

static gantry_status fail_noted(const gantry_schedule *s, uint32_t memory, gantry_error *err)
{
    char size[32];
    return gy_fail(err, GANTRY_E_NOMEM, NULL,
                   "checking mode cannot allocate %s more to note what is written in the memory \"%s\" of the machine; "
                   "check with smaller buffers",
                   gy_bytes_text(size, sizeof size, s->slab.at[memory]), s->machine->memory[memory].id);
}

static gantry_status make_written(gy_checked *c, gantry_error *err)
{
    const gantry_schedule *s = c->job->schedule;
    c->written = gy_calloc(s->machine->memories, sizeof *c->written);
    for (uint32_t i = 0; c->written && i < s->slab.count; i++) {
        void *pages = mmap(NULL, noted_bytes(s, i), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            return fail_noted(s, i, err);
        c->written[i] = pages;
    }
    return c->written ? GANTRY_OK : gy_fail_nomem(err);
}

static bool checked_close(void *state)
{
    gy_checked *c = state;
    if (c->handler)
        gy_fault_remove();
    gy_host_ops_free(&c->ops);
    gy_host_memory_free(&c->memory);
    gy_order_free(&c->order);
    gy_windows_free(&c->windows);
    free_written(c);
    gy_free(c->sequence);
    gy_free(c->time);
    gy_free(c);
    return true;
}

static gantry_status make(gy_checked *c, gantry_error *err)
{
    const gantry_schedule *s = c->job->schedule;
    c->sequence = gy_calloc(s->ops.count, sizeof *c->sequence);
    c->time = c->job->record ? gy_calloc(s->ops.count, sizeof *c->time) : NULL;
    if (!c->sequence || (c->job->record && !c->time))
        return gy_fail_nomem(err);
    gantry_status status = gy_host_memory_make(&c->memory, c->job, true, err);
    status = status ? status : gy_host_ops_make(&c->ops, c->job, &c->memory, err);
    status = status ? status : gy_order_make(&c->order, s, err);
    status = status ? status : gy_windows_make(&c->windows, err);
    status = status ? status : make_written(c, err);
    c->handler = status == GANTRY_OK && gy_fault_install();
    if (status == GANTRY_OK && !c->handler)
        status = gy_fail(err, GANTRY_E_DEVICE, NULL, "cannot install the signal handler of checking mode");
    return status;
}

static gantry_status checked_open(void **state, const gy_job *job, gantry_error *err)
{
    gy_checked *c = gy_calloc(1, sizeof *c);
    if (!c)
        return gy_fail_nomem(err);
    c->job = job;
    gantry_status status = make(c, err);
    if (status) {
        checked_close(c);
        return status;
    }
    *state = c;
    return GANTRY_OK;
}

static gantry_status checked_put(void *state, uint32_t instance, const void *rows, gantry_error *err)
{
    (void)err;
    gy_checked *c = state;
    const gy_instance *i = &c->job->schedule->instances.at[instance];
    size_t bytes = gy_instance_offset(c->job->schedule, i, i->last);
    if (bytes)
        memcpy(gy_host_instance_at(&c->memory, c->job, i, 0), rows, bytes);
    return GANTRY_OK;
}

static gantry_status checked_get(void *state, uint32_t instance, void *rows, gantry_error *err)
{
    (void)err;
    gy_checked *c = state;
    const gy_instance *i = &c->job->schedule->instances.at[instance];
    size_t bytes = gy_instance_offset(c->job->schedule, i, i->last);
    if (bytes)
        memcpy(rows, gy_host_instance_at(&c->memory, c->job, i, 0), bytes);
    return GANTRY_OK;
}

static gantry_status checked_advance(void *state, int64_t first, gantry_error *err)
{
    gy_checked *c = state;
    return gy_host_ops_advance(&c->ops, first, err);
}

static gantry_status checked_rebind(void *state, gantry_error *err)
{
    (void)err;
    gy_checked *c = state;
    gy_host_ops_rebind(&c->ops);
    return GANTRY_OK;
}

static bool checked_idle(void *state)
{
    (void)state;
    return true;
}

static const gy_op_time *checked_times(void *state)
{
    const gy_checked *c = state;
    return c->time;
}

const gy_backend gy_backend_checked = {
    .name = "host",
    .summary = "checking mode of the host back end",
    .replay = "checked",
    .executes = true,
    .overlaps = true, /* each is over when it has begun, but they take turns with windows and outputs */
    .open = checked_open,
    .close = checked_close,
    .put = checked_put,
    .get = checked_get,
    .advance = checked_advance,
    .rebind = checked_rebind,
    .begin = checked_begin,
    .finish = checked_finish,
    .idle = checked_idle,
    .times = checked_times,
};
