/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The machine that a format means, as JSON: identical processors, each with a memory of its own; or accelerators round
 * the CPUs' memory. Transfers do not slow each other, as in the formats' models. Where a format counts transfers in
 * time, bytes are made to take that time: one byte a unit where all times are whole, as in the published examples, else
 * one byte a picosecond.
 */
#include "import/import.h"

#include "base/error.h"
#include <inttypes.h>
#include <math.h>

#define GIB ((int64_t)1 << 30)
/* Accelerators hold what the format counts. What else is needed is put on top, unless it is less than a thousandth. */
#define EXTRA_SHARE 1000

/* ---- sizes ---- */

static bool are_whole(const gy_import *in)
{
    for (size_t i = 0; i < in->items.count; i++)
        if (in->items.at[i].amount != floor(in->items.at[i].amount))
            return false;
    return true;
}

/* Links are as fast as they are in seconds; the times of the graph may count something else as one. */
static gantry_status take_bandwidth(gy_import *in, gantry_error *err)
{
    double gbs = in->options.bandwidth_gbs > 0 ? in->options.bandwidth_gbs : 1;
    double rate = gbs * 1e9 * (in->unit_is_second ? 1e6 / in->unit_us : 1);
    if (rate < 1 || rate > 1e15)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "%g GB/s where a second counts as %g us is %.3g bytes a second; 1 to 1e+15 are allowed: choose "
                       "another unit of time or bandwidth",
                       gbs, in->unit_us, rate);
    in->link_rate = (int64_t)(rate + 0.5);
    return GANTRY_OK;
}

/* How amounts become bytes, and the rate that goes with it. */
static gantry_status choose_rate(gy_import *in, gantry_error *err)
{
    double second = 1e6 / in->unit_us; /* units of time in one */
    in->bytes_per_amount = 1;
    if (in->in_bytes)
        return take_bandwidth(in, err);
    if (!in->by_kind && are_whole(in) && second >= 1 && second == floor(second)) {
        in->link_rate = (int64_t)second;
    } else {
        in->bytes_per_amount = in->unit_us * 1e6;
        in->link_rate = INT64_C(1000000000000);
    }
    return GANTRY_OK;
}

static gantry_status too_large(const gy_import *in, const char *what, double sum, double most, const char *unit,
                               const char *remedy, gantry_error *err)
{
    gantry_status status = gy_fail(err, GANTRY_E_GRAPH, NULL, "%s add up to %.3g %s, and at most %.3g are allowed; %s",
                                   what, sum, unit, most, remedy);
    gy_error_locate(err, in->source, 0, 0);
    return status;
}

static double most_time(const gy_import *in, const gy_import_task *t)
{
    double time = in->accelerators || !in->by_kind ? t->time : 0;
    return in->by_kind && in->cpus && t->cpu > time ? t->cpu : time;
}

gantry_status gy_import_measure(gy_import *in, gantry_error *err)
{
    double us = 0, bytes = 0, extra = 0; /* what is not in the file: transfers, and rounding to 256 bytes */
    GY_TRY(choose_rate(in, err));
    for (size_t i = 0; i < in->tasks.count; i++) {
        const gy_import_task *t = &in->tasks.at[i];
        us += t->time < 0 ? 0 : most_time(in, t) * in->unit_us;
        bytes += (double)t->scratch + (double)t->resident;
        extra += 512;
    }
    for (size_t i = 0; i < in->items.count; i++) {
        extra += in->items.at[i].amount * in->bytes_per_amount + 257;
        us += in->in_bytes ? 0 : in->items.at[i].amount * in->unit_us;
    }
    if (!(us <= GY_IMPORT_MOST_US))
        return too_large(in, "times", us, GY_IMPORT_MOST_US, "us", "choose a smaller unit of time (--time-unit)", err);
    bytes += extra;
    if (!(bytes <= GY_IMPORT_MOST_BYTES))
        return too_large(in, "sizes", bytes, GY_IMPORT_MOST_BYTES, "bytes", "scale the sizes in the file down", err);
    in->bytes = (int64_t)bytes;
    if (extra * EXTRA_SHARE > (double)in->capacity)
        in->capacity += (uint64_t)extra;
    return GANTRY_OK;
}

/* ---- machines ---- */

/* In one line, with the blanks that the graph writer would put: what is read and written again stays the same. */
static void add_head(gy_text *to, const gy_import *in, const char *what)
{
    gy_text_add(to, "{\"gantry_machine\": 1, \"name\": ");
    gy_text_json(to, what);
    /* Room for everything at once: the formats know no limit here. */
    gy_text_printf(to, ", \"memories\": [{\"id\": \"host\", \"capacity\": %" PRId64 "}",
                   in->bytes > GIB ? in->bytes : GIB);
}

static void add_tail(gy_text *to)
{
    gy_text_add(to, "], \"model\": {\"contention\": \"off\", \"launch_us\": 0}}");
}

static void add_rate(gy_text *to, const gy_import *in)
{
    gy_text_add(to, ", \"bandwidth_gbs\": ");
    gy_text_double(to, (double)in->link_rate / 1e9);
    gy_text_add(to, "}");
}

static void write_processors(gy_text *to, const gy_import *in)
{
    add_head(to, in, in->processors == 1 ? "one processor" : "identical processors");
    for (uint32_t i = 1; i <= in->processors; i++)
        gy_text_printf(to, ", {\"id\": \"M%u\", \"capacity\": %" PRId64 "}", i, in->bytes > GIB ? in->bytes : GIB);
    gy_text_add(to, "], \"devices\": [");
    for (uint32_t i = 1; i <= in->processors; i++)
        gy_text_printf(to, "%s{\"id\": \"P%u\", \"kind\": \"processor\", \"memory\": \"M%u\"%s}", i > 1 ? ", " : "", i,
                       i, in->in_flops ? ", \"gflops\": {\"f32\": 1}" : "");
    gy_text_add(to, "], \"routes\": [{\"from\": \"*\", \"to\": \"*\"");
    add_rate(to, in);
    add_tail(to);
}

static void write_accelerators(gy_text *to, const gy_import *in)
{
    add_head(to, in, "accelerators round a host");
    for (uint32_t i = 0; i < in->accelerators; i++)
        gy_text_printf(to, ", {\"id\": \"fpga%u\", \"capacity\": %" PRIu64 "}", i, in->capacity);
    gy_text_add(to, "], \"devices\": [");
    for (uint32_t i = 0; i < in->accelerators; i++)
        gy_text_printf(
            to, "%s{\"id\": \"fpga%u\", \"kind\": \"fpga\", \"type\": \"gpu\", \"memory\": \"fpga%u\", \"lanes\": 1}",
            i ? ", " : "", i, i);
    for (uint32_t i = 0; i < in->cpus; i++)
        gy_text_printf(to, "%s{\"id\": \"cpu%u\", \"kind\": \"cpu\", \"memory\": \"host\"}",
                       i || in->accelerators ? ", " : "", i);
    gy_text_add(to, "], \"routes\": [");
    if (in->accelerators) {
        gy_text_add(to, "{\"from\": \"host\", \"to\": \"fpga*\", \"both\": true");
        add_rate(to, in);
    }
    add_tail(to);
}

gantry_status gy_import_machine(gy_import *in, const char **json, gantry_error *err)
{
    gy_text text = { 0 };
    *json = NULL;
    if (!in->processors && !in->accelerators && !in->cpus)
        return GANTRY_OK;
    if (in->processors)
        write_processors(&text, in);
    else
        write_accelerators(&text, in);
    *json = text.failed ? NULL : gy_arena_strdup(&in->arena, text.at);
    gy_text_free(&text);
    return *json ? GANTRY_OK : gy_fail_nomem(err);
}
