/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: every op of every start in the total order, its reads first, then its writes. */
#include "base/error.h"
#include "schedule/check/check.h"

static bool reads(const gy_use *u)
{
    return u->mode == GANTRY_READ || u->mode == GANTRY_READWRITE;
}

static const gy_use *uses_of(const gy_check *k, const gy_op *op)
{
    return gy_vec_from(&k->s->use, op->use);
}

static gantry_status out_of_memory(const gy_check *k)
{
    return k->contents.failed || k->bytes.failed ? gy_fail_nomem(k->err) : GANTRY_OK;
}

/* Rule external: what has just been written to an output is what the output is at the end. */
static gantry_status check_output(gy_check *k, const gy_use *u)
{
    if (gy_use_instance(k, u)->space != GY_SPACE_OUTPUT)
        return GANTRY_OK;
    gy_runs final = { 0 };
    gantry_status status =
        gy_final_runs(k, k->s->values.at[gy_use_instance(k, u)->value].buffer, u->first, u->last, &final);
    if (!status)
        status = gy_check_rows(k, u, final.at, final.count, "external", "ops", k->now.op);
    gy_vec_free(&final);
    return status;
}

/* Race for what the op reads and writes. Reading and writing at once (also a contribution) is one access: a write. */
static gantry_status touch(gy_check *k, const gy_op *op)
{
    const gy_use *u = uses_of(k, op);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < op->uses; i++)
        status = u[i].mode == GANTRY_READ ? gy_bytes_read(k, &u[i]) : GANTRY_OK;
    for (uint32_t i = 0; !status && i < op->uses; i++)
        status = u[i].mode != GANTRY_READ ? gy_bytes_take(k, &u[i]) : GANTRY_OK;
    return status;
}

static gantry_status read_task(gy_check *k, const gy_op *op, size_t access)
{
    const gy_use *u = uses_of(k, op);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < op->uses; i++) {
        if (reads(&u[i])) {
            size_t first = k->expect.first[2 * (access + i)], last = k->expect.first[2 * (access + i) + 1];
            status = gy_check_rows(k, &u[i], k->expect.run.at + first, last - first, "version", "ops", k->now.op);
        }
    }
    return status;
}

static gantry_status write_task(gy_check *k, const gy_op *op, size_t access)
{
    const gy_use *u = uses_of(k, op);
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < op->uses; i++) {
        if (u[i].mode == GANTRY_READ)
            continue;
        if (gy_is_reduction(u[i].mode))
            status = gy_bytes_add(k, &u[i], access + i);
        else
            status = gy_bytes_set(k, &u[i], gy_content_written(k, op->node, access + i));
        if (!status)
            status = check_output(k, &u[i]);
    }
    return status;
}

static gantry_status run_task(gy_check *k, const gy_op *op)
{
    size_t access = k->flow->task[gy_task_of(k, op)].access;
    GY_TRY(gy_check_after(k, k->now.op));
    GY_TRY(touch(k, op));
    GY_TRY(read_task(k, op, access));
    return write_task(k, op, access);
}

static gantry_status run_fill(gy_check *k, const gy_op *op)
{
    const gy_use *u = uses_of(k, op);
    const gy_instance *in = gy_use_instance(k, u);
    gantry_access reduce = op->reduce ? op->reduce : in->op;
    GY_TRY(touch(k, op));
    GY_TRY(gy_bytes_set(k, u, gy_content_identity(&k->contents, gy_value_dtype(k, in->value), reduce)));
    return check_output(k, u);
}

/* Copies and collectives that the scheduler added: contents move. */
static gantry_status run_move(gy_check *k, const gy_op *op)
{
    const gy_use *u = uses_of(k, op);
    uint32_t ins = op->kind == GY_OP_COLLECTIVE ? op->ins : 1;
    gy_fragments fragments = { 0 };
    gantry_status status = touch(k, op);
    for (uint32_t i = 0; !status && i < ins; i++)
        status = gy_fragments_read(k, &u[i], &fragments);
    if (!status && ins > 1)
        status = gy_fragments_combine(k, &fragments, gy_value_dtype(k, gy_use_instance(k, u)->value), op->reduce);
    for (uint32_t i = ins; !status && i < op->uses; i++) {
        status = gy_fragments_write(k, &u[i], &fragments);
        if (!status)
            status = check_output(k, &u[i]);
    }
    gy_vec_free(&fragments.at);
    return status;
}

static gantry_status run_op(gy_check *k, const gy_op *op)
{
    if (op->node != GY_NONE)
        return run_task(k, op);
    return op->kind == GY_OP_FILL ? run_fill(k, op) : run_move(k, op);
}

static gantry_status run_start(gy_check *k, uint32_t start)
{
    k->now = (gy_stamp){ GY_NONE, start };
    gantry_status status = gy_bytes_begin(k);
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++) {
        k->now = (gy_stamp){ i, start };
        if (!gy_clocks_step(&k->clocks, start, i))
            return gy_fail_nomem(k->err);
        status = run_op(k, gy_check_op(k, i));
        if (!status)
            status = out_of_memory(k);
    }
    k->now = (gy_stamp){ GY_NONE, start };
    return status ? status : gy_check_exit(k);
}

/* Starts that can overlap are in_flight many: whether two of them are ordered is decided within that window. */
gantry_status gy_check_walk(gy_check *k)
{
    GY_TRY(gy_expect_make(k));
    GY_TRY(gy_clocks_init(&k->clocks, k->s, k->err));
    GY_TRY(gy_bytes_init(k));
    for (uint32_t start = 0; start < k->s->in_flight; start++)
        GY_TRY(run_start(k, start));
    return GANTRY_OK;
}
