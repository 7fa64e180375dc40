/* SPDX-License-Identifier: Apache-2.0 */
/* Measured times of kernels whose bytes lie apart in memory, as more bytes that lie together. */
#include "base/error.h"
#include "machine/build.h"
#include "machine/calibrate_build.h"
#include "machine/read.h"
#include <string.h>

#define MOST_TIMES 1000

bool gy_machine_copy_strided(gantry_machine *m, gy_kernel_table *table)
{
    if (!table->strides)
        return true;
    gy_strided *to = gy_arena_alloc(&m->arena, table->strides * sizeof *to);
    if (!to)
        return false;
    memcpy(to, table->strided, table->strides * sizeof *to);
    table->strided = to;
    return true;
}

double gy_kernel_strided(const gy_kernel_table *t, double contiguous)
{
    uint32_t i = 0;
    if (!t->strides || !(contiguous > 0))
        return 1;
    while (i < t->strides && (double)t->strided[i].bytes < contiguous)
        i++;
    const gy_strided *b = &t->strided[i == t->strides ? i - 1 : i], *a = i ? b - (i < t->strides) : b;
    double low = (double)a->bytes, high = (double)b->bytes;
    double part = a == b ? 0 : low * (high - contiguous) / (contiguous * (high - low));
    return (b->times + ((double)a->times - b->times) * part) / GY_ALONE;
}

/* ---- reading ---- */

static gantry_status read_pair(gantry_error *err, const gy_json_at *at, gy_strided *to, const gy_strided *last)
{
    const json_t *bytes = json_array_get(at->value, 0), *times = json_array_get(at->value, 1);
    double factor = json_number_value(times);
    if (json_array_size(at->value) != 2 || !json_is_integer(bytes) || !json_is_number(times) ||
        json_integer_value(bytes) < 1 || !(factor >= 1 && factor <= MOST_TIMES))
        return gy_json_fail(err, GANTRY_E_MACHINE, at,
                            "a pair must be [bytes that lie together, so many times as many bytes], such as [8, 2.5]: "
                            "whole bytes from 1 on, and 1 to %d times",
                            MOST_TIMES);
    *to = (gy_strided){ json_integer_value(bytes), (uint32_t)(factor * GY_ALONE + 0.5) };
    if (last && (to->bytes <= last->bytes || to->times > last->times))
        return gy_json_fail(err, GANTRY_E_MACHINE, at,
                            "[%lld, %g] after [%lld, %g]: list the pairs by rising bytes; where more lie together "
                            "they cannot take longer",
                            (long long)to->bytes, factor, (long long)last->bytes, (double)last->times / GY_ALONE);
    return GANTRY_OK;
}

gantry_status gy_machine_read_strided(gy_machine_reader *r, const gy_json_at *at, gy_kernel_table *to)
{
    gy_json_at list, place = gy_json_key(at, "strided");
    if (!place.value)
        return GANTRY_OK;
    if (to->by_flops || to->arguments)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place,
                            "\"strided\" is of tables by bytes that speak of all arguments, and this one goes by %s: "
                            "leave it out",
                            to->arguments ? "exact arguments" : "flops");
    GY_TRY(gy_machine_array(r->err, at, "strided", "give [bytes that lie together, times as many] pairs", &list));
    size_t count = json_array_size(list.value);
    gy_strided *pair = gy_arena_calloc(&r->m->arena, count, sizeof *pair);
    if (!pair)
        return gy_fail_nomem(r->err);
    for (size_t i = 0; i < count; i++) {
        gy_json_at item = gy_json_item(&list, i);
        GY_TRY(read_pair(r->err, &item, &pair[i], i ? &pair[i - 1] : NULL));
    }
    to->strided = pair;
    to->strides = (uint32_t)count;
    return GANTRY_OK;
}

/* ---- what was measured ---- */

/* The work that takes so long: the table's times, turned round. */
static double work_of(const gy_curve *c, gy_ticks time)
{
    size_t i = 0;
    while (i < c->count && c->at[i].time < time)
        i++;
    if (i == 0)
        return (double)c->at[0].bytes;
    gy_point a = c->at[i - 1];
    if (i == c->count)
        return (double)a.bytes * (double)time / (double)a.time;
    double part = (double)(time - a.time) / (double)(c->at[i].time - a.time);
    return (double)a.bytes + part * (double)(c->at[i].bytes - a.bytes);
}

/* From the longest pieces to the shortest, as they are measured by rising length: one that was faster than longer ones
 * takes as long as those. */
bool gy_strided_of(gantry_machine *m, gy_kernel_table *to, const gy_curve *curve, const gy_measured_kernel *k)
{
    size_t count = k->by_flops || !curve->count || !(k->strided_work > 0) ? 0 : k->strided.count;
    gy_strided *strided = count ? gy_arena_calloc(&m->arena, count, sizeof *strided) : NULL;
    double most = GY_ALONE;
    for (size_t i = count; strided && i-- > 0;) {
        const gy_measured_point *p = &k->strided.at[i];
        double times = GY_ALONE * work_of(curve, gy_ticks_from_us(p->time.us)) / k->strided_work;
        most = times > most ? times : most;
        most = most < MOST_TIMES * (double)GY_ALONE ? most : MOST_TIMES * (double)GY_ALONE;
        strided[i] = (gy_strided){ (int64_t)(p->work + 0.5), (uint32_t)(most + 0.5) };
    }
    to->strided = strided;
    to->strides = (uint32_t)count;
    return strided || !count;
}
