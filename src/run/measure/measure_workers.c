/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring what workers of resident kernels take (gy_worker_times), by chains of ops that are launched as a graph and
 * carried out by the devices: each GPU has its chain, and the last op reads of another GPU, so that it is seen that
 * they reach each other.
 */
#include "run/measure/workers.h"

#include "run/measure/chain.h"
#include "run/measure/collectives.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "graph/graph.h"
#include <string.h>

enum {
    SIZES = 6,
    SMALLEST = 1024, /* floats */
    FACTOR = 8,
    FEW = 2,
    SMALL = 65536, /* so many floats take few microseconds */
    STRETCH = 4,   /* the least that workers are given between launches where nothing was measured */
    WIDE = 4096    /* rows of 4 KiB of a launch that fills a GPU */
};
enum { BODIES = 4096 }; /* whose pulls on each other are so many operations that launches do not count */
#define TIMEOUT_US 3e6  /* GPUs that wait for each other for ever cost the calibration seconds, not its end */

typedef struct task {
    const gantry_machine *machine; /* its devices are GPUs of one kind; what workers take is not known */
    uint32_t gpus;
    int64_t until_ns;
} task;

/* ---- graphs ---- */

/* A chain of axpby on each GPU. */
static void print_chain(gy_text *to, uint32_t gpus, uint32_t floats, uint32_t calls)
{
    static const char args[] = "\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.5,";
    gy_text_add(to, "{\"gantry\":1,\"name\":\"workers\",\"buffers\":{");
    for (int i = 0; i < 2; i++)
        gy_text_printf(to, "%s\"%c\":{\"dtype\":\"f32\",\"shape\":[%u,%u],\"split\":%u}", i ? "," : "", "xy"[i], gpus,
                       floats, gpus);
    gy_text_add(to, "},\"nodes\":[");
    for (int i = 0; i < 2; i++)
        gy_text_printf(
            to, "{\"id\":\"set_%c[i]\",\"for\":{\"i\":%u},\"fill\":{\"to\":\"%c[i]\",\"value\":1},\"on\":\"i\"},",
            "xy"[i], gpus, "xy"[i]);
    gy_text_printf(to,
                   "{\"for\":{\"k\":%u},\"nodes\":[{\"id\":\"it[k,i]\",\"for\":{\"i\":%u},%s\"x\":\"x[i]\","
                   "\"y\":\"y[i]\"},\"on\":\"i\"}]}",
                   calls, gpus, args);
    if (gpus > 1)
        gy_text_printf(to, ",{\"id\":\"end\",%s\"x\":\"y[%u]\",\"y\":\"x[0]\"},\"on\":0}", args, gpus - 1);
    gy_text_add(to, "]}");
}

/* Rounds of a stretch that workers have code for and a kernel that they have none for, each behind the one ahead. */
static void print_rounds(gy_text *to, uint32_t rows, uint32_t rounds)
{
    gy_text_printf(to,
                   "{\"gantry\":1,\"name\":\"switches\",\"buffers\":{\"u\":{\"dtype\":\"f32\",\"shape\":[%u,1024]},"
                   "\"v\":{\"dtype\":\"f32\",\"shape\":[%u,1024]}},\"nodes\":["
                   "{\"id\":\"set_u\",\"fill\":{\"to\":\"u\",\"value\":1}},{\"id\":\"set_v\",\"fill\":{\"to\":\"v\","
                   "\"value\":1}},{\"for\":{\"k\":%u},\"nodes\":[{\"id\":\"a[k,j]\",\"for\":{\"j\":%d},\"kernel\":"
                   "\"axpby\",\"args\":{\"a\":0.5,\"b\":0.5,\"x\":\"v{0:1}\",\"y\":\"u{0:1}\"}},"
                   "{\"id\":\"s[k]\",\"kernel\":\"softmax\",\"args\":{\"x\":\"u\",\"y\":\"v\"}}]}]}",
                   rows, rows, rounds, STRETCH);
}

/* Each number is what those of the round before pull at it: differences, roots and quotients, as many as there are
 * pairs.
 */
static void print_pulls(gy_text *to, gantry_dtype dtype, uint32_t rounds)
{
    static const char *const from[2] = { "a", "b" };
    const char *type = gantry_dtype_name(dtype);
    gy_text_printf(to,
                   "{\"gantry\":1,\"name\":\"formulas\",\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[%d,1],\"init\":"
                   "{\"iota\":{}}},\"b\":{\"dtype\":\"%s\",\"shape\":[%d,1]},\"c\":{\"dtype\":\"%s\",\"shape\":[%d],"
                   "\"init\":0.5}},\"nodes\":[{\"for\":{\"k\":%u},\"nodes\":[",
                   type, BODIES, type, BODIES, type, BODIES, rounds);
    for (int i = 0; i < 2; i++)
        gy_text_printf(
            to,
            "%s{\"id\":\"to_%s[k]\",\"reduce\":{\"y\":\"sum((c - x) * rsqrt(square(c - x) + 1) / (square(c - x) "
            "+ 1), 1)\"},\"args\":{\"x\":\"%s\",\"c\":\"c\",\"y\":\"%s\"}}",
            i ? "," : "", from[!i], from[i], from[!i]);
    gy_text_add(to, "]}]}");
}

/* ---- runs ---- */

/* A kernel of the resident kernel's own may be left to streams. Where GPUs wait for each other by events, too, a start
 * has more launches than what is measured here is for. */
static gantry_status check_whole(const gy_chain *c, bool mixed, gantry_error *err)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    GY_TRY(gantry_run_get_info(c->run, &info, err));
    bool streams = strstr(info.replay, "and stream") || strstr(info.replay, "by events");
    if (strcmp(c->replay, "device") == 0 && streams != mixed)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "it was not replayed as it was to be: %s", info.replay);
    return GANTRY_OK;
}

/* One of `graph` in the time of more of it. `floats` or, if `mixed`, rows. `start`: of a start with FEW; may be NULL.
 */
static gantry_status measure_one(const task *t, bool mixed, uint32_t size, const char *replay, gy_figure *figure,
                                 gy_figure *start, gantry_error *err)
{
    gy_chain c[2] = { { 0 } };
    uint32_t more = size > SMALL || (mixed && size > 1) ? 8 : 48;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < 2 && !status; i++) {
        gy_text text = { 0 };
        uint32_t calls = i ? FEW + more : FEW;
        if (mixed)
            print_rounds(&text, size, calls);
        else
            print_chain(&text, t->gpus, size, calls);
        status = gy_chain_open(&c[i], &text, t->machine, calls, replay, TIMEOUT_US, err);
        gy_text_free(&text);
    }
    status = status ? status : gy_chain_sample(&c[0], &c[1], t->until_ns, figure, start, err);
    status = status ? status : check_whole(&c[0], mixed, err);
    gy_chain_close(&c[1]);
    gy_chain_close(&c[0]);
    return status;
}

/* A round is two of them. */
static gantry_status measure_pulls(const task *t, gy_measured_formulas *f, const char *replay, gy_figure *figure,
                                   gantry_error *err)
{
    gy_chain c[2] = { { 0 } };
    gy_figure seen = { 0 };
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < 2 && !status; i++) {
        gy_text text = { 0 };
        uint32_t rounds = i ? 8 : 1;
        print_pulls(&text, f->dtype, rounds);
        status = gy_chain_open(&c[i], &text, t->machine, 2 * rounds, replay, TIMEOUT_US, err);
        gy_text_free(&text);
    }
    status = status ? status : gy_chain_sample(&c[0], &c[1], t->until_ns, &seen, NULL, err);
    status = status ? status : check_whole(&c[0], false, err);
    if (!status) {
        *figure = seen;
        f->work = gy_formula_work(c[0].graph, &c[0].graph->nodes.at[0]);
    }
    gy_chain_close(&c[1]);
    gy_chain_close(&c[0]);
    return status;
}

/* ---- figures ---- */

/* Without a compiler there is no time. */
static gantry_status measure_formulas(gy_measured *what, const task *t, const char *kind, bool by_workers,
                                      gantry_error *err)
{
    static const gantry_dtype dtypes[] = { GANTRY_F32, GANTRY_F64 };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        gy_measured_formulas made = { .kind = kind, .dtype = dtypes[i] };
        gantry_error why = { 0 };
        gy_measured_formulas *f = by_workers && i < what->formulas.count ? &what->formulas.at[i] : &made;
        gantry_status status =
            measure_pulls(t, f, by_workers ? "device" : "graph", by_workers ? &f->by_workers : &f->launched, &why);
        if (status)
            gy_text_printf(&what->notes, "not measured: formulas of %s%s: %s\n", gantry_dtype_name(dtypes[i]),
                           by_workers ? " by workers" : "", why.text);
        if (status == GANTRY_E_NOMEM || (f == &made && !gy_vec_push(&what->formulas, made)))
            return gy_fail_nomem(err);
    }
    return GANTRY_OK;
}

/* Sizes that there is no room for are left out. */
static gantry_status measure_pairs(const task *t, gy_measured_workers *to, gantry_error *err)
{
    uint32_t floats = SMALLEST;
    for (int i = 0; i < SIZES; i++, floats *= FACTOR) {
        gy_measured_pair pair = { 0 };
        gy_figure start;
        gantry_status status = measure_one(t, false, floats, "graph", &pair.launched, NULL, err);
        status = status ? status : measure_one(t, false, floats, "device", &pair.by_workers, &start, err);
        if (status == GANTRY_E_CAPACITY && i > 1)
            return GANTRY_OK;
        GY_TRY(status);
        if (i == 0) { /* two fills, and the last op where there are several GPUs */
            uint32_t ops = FEW + 2 + (t->gpus > 1);
            to->start = start;
            to->start.us = start.us > ops * pair.by_workers.us ? start.us - ops * pair.by_workers.us : 0;
        }
        if (!gy_vec_push(&to->pairs, pair))
            return gy_fail_nomem(err);
        if (gy_now_ns() > t->until_ns && i + 1 < SIZES)
            return gy_fail(err, GANTRY_E_TIMEOUT, NULL, "there was no time left for larger ops");
    }
    return GANTRY_OK;
}

/* A round has two switches; a launch that fills the GPU takes longer while workers are there. */
static gantry_status measure_switches(const task *t, gy_measured_workers *to, gantry_error *err)
{
    const gy_measured_pair *small = &to->pairs.at[0];
    gy_figure graph[2], device[2];
    const uint32_t rows[2] = { 1, WIDE };
    to->beside = 1;
    for (int i = 0; i < 2; i++) {
        gantry_status status = measure_one(t, true, rows[i], "graph", &graph[i], NULL, err);
        status = status ? status : measure_one(t, true, rows[i], "device", &device[i], NULL, err);
        if (status == GANTRY_E_CAPACITY && i > 0)
            return GANTRY_OK;
        GY_TRY(status);
        double alone = graph[i].us - STRETCH * small->launched.us, with = device[i].us - STRETCH * small->by_workers.us;
        if (i == 0) {
            to->change = device[i];
            to->change.us = with > alone ? (with - alone) / 2 : 0;
        } else if (alone > 0 && with - 2 * to->change.us > alone) {
            to->beside = (with - 2 * to->change.us) / alone;
        }
    }
    return GANTRY_OK;
}

static gantry_status measure(gy_measured *what, const task *t, const char *kind, gantry_error *err)
{
    gy_measured_workers made = { .kind = kind };
    gantry_error why = { 0 };
    gantry_status status = measure_pairs(t, &made, &why);
    status = status ? status : measure_switches(t, &made, &why);
    if (status && status != GANTRY_E_NOMEM)
        gy_text_printf(&what->notes, "not measured: what workers of resident kernels take: %s\n", why.text);
    else if (!status && gy_vec_push(&what->workers, made))
        return GANTRY_OK;
    gy_vec_free(&made.pairs);
    return status && status != GANTRY_E_NOMEM ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_measure_workers(gy_measured *what, const gantry_machine *machine, const gantry_machine *names,
                                 double seconds, gantry_error *err)
{
    uint32_t first = 0, gpus = gy_count_gpus(machine);
    gantry_machine *some = gpus ? gy_select_gpus(machine, gpus, &first) : NULL;
    if (!some)
        return GANTRY_OK;
    gantry_machine *bare = gy_machine_without_workers(some);
    task t = { bare, gpus, gy_now_ns() + (int64_t)(seconds * 1e9) };
    const char *kind = names->device[first].kind;
    gantry_status status = bare ? measure_formulas(what, &t, kind, false, err) : gy_fail_nomem(err);
    status = status ? status : measure(what, &t, kind, err);
    if (!status && what->workers.count)
        status = measure_formulas(what, &t, kind, true, err);
    gantry_machine_free(bare);
    gantry_machine_free(some);
    return status || !what->notes.failed ? status : gy_fail_nomem(err);
}
