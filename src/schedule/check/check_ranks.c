/* SPDX-License-Identifier: Apache-2.0 */
/* Rule collective, and of rule external what can be seen without walking. */
#include "base/error.h"
#include "schedule/check/check.h"
#include <stdlib.h>

/* Reads and writes that an inserted collective must have: ONE, or ROOT: one or more, all of one rank, or ANY. May a row
 * be written twice? */
enum { ANY, ONE, ROOT };
static const struct shape {
    uint8_t reads, writes, reduces, repeats;
} shapes[] = {
    [GANTRY_ALL_REDUCE] = { ANY, ANY, 1, 1 },     [GANTRY_REDUCE] = { ANY, ONE, 1, 0 },
    [GANTRY_BROADCAST] = { ONE, ANY, 0, 1 },      [GANTRY_SCATTER] = { ROOT, ANY, 0, 0 },
    [GANTRY_GATHER] = { ANY, ROOT, 0, 0 },        [GANTRY_ALL_GATHER] = { ANY, ANY, 0, 1 },
    [GANTRY_REDUCE_SCATTER] = { ANY, ANY, 1, 0 }, [GANTRY_ALL_TO_ALL] = { ANY, ANY, 0, 0 },
};

/* The kinds that each algorithm can carry out, in the order of gantry_collective from its first. */
static const char *const able[] = {
    [GY_ALGORITHM_NONE] = "11111111",     [GY_ALGORITHM_COPY] = "00111101",      [GY_ALGORITHM_RING] = "11100111",
    [GY_ALGORITHM_TREE] = "11111110",     [GY_ALGORITHM_RECURSIVE] = "10000110", [GY_ALGORITHM_ONE_SHOT] = "11111111",
    [GY_ALGORITHM_TWO_SHOT] = "11100000", [GY_ALGORITHM_ISLANDS] = "10100100",   [GY_ALGORITHM_COUNTERS] = "11111111",
    [GY_ALGORITHM_NCCL] = "11111111",
};

static gantry_status check_lanes(const gy_check *k, uint32_t index)
{
    const gantry_schedule *s = k->s;
    const gy_op *op = gy_check_op(k, index);
    uint8_t *used = gy_calloc(s->lanes.count + op->lanes, 1);
    if (!used)
        return gy_fail_nomem(k->err);
    uint32_t twice = GY_NONE, idle = GY_NONE;
    for (uint32_t i = 0; i < op->lanes; i++) {
        uint32_t lane = s->op_lane.at[op->lane + i];
        twice = used[lane]++ ? lane : twice;
    }
    for (uint32_t i = 0; i < op->uses; i++)
        used[s->lanes.count + s->use.at[op->use + i].rank] = 1;
    for (uint32_t i = 0; i < op->lanes; i++)
        idle = used[s->lanes.count + i] ? idle : i;
    gy_free(used);
    if (twice != GY_NONE) {
        return gy_breach(k->err, "collective", "ops", index, "%s is twice in lane %u; its lanes are distinct",
                         gy_label_op(s, index).at, twice);
    }
    if (idle != GY_NONE) {
        return gy_breach(k->err, "collective", "ops", index, "rank %u of %s reads and writes nothing", idle,
                         gy_label_op(s, index).at);
    }
    return GANTRY_OK;
}

static bool fits(const gy_use *use, uint32_t count, uint8_t shape)
{
    for (uint32_t i = 1; i < count && shape == ROOT; i++)
        if (use[i].rank != use[0].rank)
            return false;
    return shape == ONE ? count == 1 : count > 0;
}

static gantry_status check_shape(const gy_check *k, uint32_t index)
{
    static const char *const asks[] = { "one or more", "one", "one or more of one rank" };
    const gy_op *op = gy_check_op(k, index);
    const struct shape *shape = &shapes[op->collective];
    const gy_use *use = gy_vec_from(&k->s->use, op->use);
    uint32_t writes = op->uses - op->ins;
    if (!fits(use, op->ins, shape->reads) || !fits(use + op->ins, writes, shape->writes)) {
        return gy_breach(k->err, "collective", "ops", index, "%s has %u reads and %u writes; its kind has %s and %s",
                         gy_label_op(k->s, index).at, op->ins, writes, asks[shape->reads], asks[shape->writes]);
    }
    if (!op->reduce != !shape->reduces) {
        return gy_breach(k->err, "collective", "ops", index, "%s has reduction \"%s\"; its kind has %s",
                         gy_label_op(k->s, index).at, gy_word(&gy_reduction_words, op->reduce),
                         shape->reduces ? "one" : "none");
    }
    for (uint32_t i = 0; shape->reduces && i < op->ins; i++) {
        const gy_instance *in = gy_use_instance(k, &k->s->use.at[op->use + i]);
        if (in->role == GY_ROLE_ACCUMULATOR && in->op != op->reduce) {
            return gy_breach(k->err, "collective", "ops", index, "%s reduces by %s; read %u is an accumulator of %s",
                             gy_label_op(k->s, index).at, gy_word(&gy_reduction_words, op->reduce), i,
                             gy_word(&gy_reduction_words, in->op));
        }
    }
    return GANTRY_OK;
}

static gantry_status check_algorithm(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    if (able[op->algorithm][op->collective - GANTRY_ALL_REDUCE] == '1')
        return GANTRY_OK;
    return gy_breach(k->err, "collective", "ops", index, "%s is a %s, which \"%s\" cannot carry out",
                     gy_label_op(k->s, index).at, gy_word(&gy_collective_words, op->collective),
                     gy_word(&gy_algorithm_words, op->algorithm));
}

static int by_first(const void *a, const void *b)
{
    const gy_use *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Each row of a write is in a read: sorted reads, with `end` how far those that begin before it reach. */
static gantry_status check_cover(const gy_check *k, uint32_t index, const gy_use *reads, const gy_use *write)
{
    const gy_op *op = gy_check_op(k, index);
    int64_t row = write->first;
    for (uint32_t i = 0; i < op->ins && row < write->last && reads[i].first <= row; i++)
        row = reads[i].last > row ? reads[i].last : row;
    if (row >= write->last)
        return GANTRY_OK;
    return gy_breach(k->err, "collective", "ops", index, "%s writes row %lld, which it reads nowhere",
                     gy_label_op(k->s, index).at, (long long)row);
}

static gantry_status check_sorted(const gy_check *k, uint32_t index, const gy_use *reads)
{
    const gy_op *op = gy_check_op(k, index);
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < op->ins && !op->reduce; i++) {
        if (reads[i].first < end && reads[i].first < reads[i].last) {
            return gy_breach(k->err, "collective", "ops", index, "%s reads row %lld twice and does not reduce",
                             gy_label_op(k->s, index).at, (long long)reads[i].first);
        }
        end = reads[i].last > end ? reads[i].last : end;
    }
    for (uint32_t i = op->ins; i < op->uses; i++)
        GY_TRY(check_cover(k, index, reads, &k->s->use.at[op->use + i]));
    return GANTRY_OK;
}

/* A scatter, a gather and an all_to_all have one place for each row, a reduce_scatter too. */
static gantry_status check_once(const gy_check *k, uint32_t index, const gy_use *writes, uint32_t count)
{
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        if (writes[i].first < end && writes[i].first < writes[i].last) {
            return gy_breach(k->err, "collective", "ops", index, "%s writes row %lld twice; a %s writes each once",
                             gy_label_op(k->s, index).at, (long long)writes[i].first,
                             gy_word(&gy_collective_words, gy_check_op(k, index)->collective));
        }
        end = writes[i].last > end ? writes[i].last : end;
    }
    return GANTRY_OK;
}

static gantry_status check_rows(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    gy_use *sorted = gy_calloc(op->uses + 1u, sizeof *sorted);
    if (!sorted)
        return gy_fail_nomem(k->err);
    for (uint32_t i = 0; i < op->uses; i++)
        sorted[i] = k->s->use.at[op->use + i];
    qsort(sorted, op->ins, sizeof *sorted, by_first);
    qsort(sorted + op->ins, op->uses - op->ins, sizeof *sorted, by_first);
    gantry_status status = check_sorted(k, index, sorted);
    if (!status && !shapes[op->collective].repeats)
        status = check_once(k, index, sorted + op->ins, op->uses - op->ins);
    gy_free(sorted);
    return status;
}

static gantry_status check_collective(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    gantry_status status = check_lanes(k, index);
    if (!status)
        status = check_algorithm(k, index);
    if (!status && op->node == GY_NONE) {
        status = check_shape(k, index);
        if (!status)
            status = check_rows(k, index);
    }
    return status;
}

static gantry_status check_external(const gy_check *k, uint32_t index)
{
    const gy_op *op = gy_check_op(k, index);
    for (uint32_t i = 0; i < op->uses; i++) {
        const gy_use *u = &k->s->use.at[op->use + i];
        if (u->mode != GANTRY_READ && gy_use_instance(k, u)->space == GY_SPACE_INPUT) {
            return gy_breach(k->err, "external", "ops", index, "%s writes to input \"%s\"; inputs are read only",
                             gy_label_op(k->s, index).at, k->s->values.at[gy_use_instance(k, u)->value].name);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_check_ranks(gy_check *k)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++)
        status = gy_check_op(k, i)->kind == GY_OP_COLLECTIVE ? check_collective(k, i) : GANTRY_OK;
    for (uint32_t i = 0; !status && i < k->s->ops.count; i++)
        status = check_external(k, i);
    return status;
}
