/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring what a node with `when` takes beyond its work, and where it is left out, in captured graphs: by chains of
 * small ops without a flag, under one that is set and under one that is not.
 */
#include "run/measure/workers.h"

#include "run/measure/chain.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

enum { FEW = 2, MORE = 24, FLOATS = 1024 };
#define LEAST_US 0.001 /* 0 says that it is not known */

typedef enum flag { NO_FLAG, UNSET, SET, FLAGS } flag;

static void print_chain(gy_text *to, flag f, uint32_t calls)
{
    gy_text_printf(
        to,
        "{\"gantry\":1,\"name\":\"when\",\"buffers\":{\"flag\":{\"dtype\":\"u8\",\"shape\":[1]},"
        "\"x\":{\"dtype\":\"f32\",\"shape\":[%d]},\"y\":{\"dtype\":\"f32\",\"shape\":[%d]}},\"nodes\":["
        "{\"id\":\"set_flag\",\"fill\":{\"to\":\"flag\",\"value\":%d},\"on\":0},"
        "{\"id\":\"set_x\",\"fill\":{\"to\":\"x\",\"value\":1},\"on\":0},"
        "{\"id\":\"set_y\",\"fill\":{\"to\":\"y\",\"value\":1},\"on\":0},"
        "{\"for\":{\"k\":%u},\"nodes\":[{\"id\":\"it[k]\",\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.5,"
        "\"x\":\"x\",\"y\":\"y\"},\"on\":0%s}]}]}",
        FLOATS, FLOATS, f == SET, calls, f == NO_FLAG ? "" : ",\"when\":{\"buffer\":\"flag\"}");
}

static gantry_status open_chain(gy_chain *c, const gantry_machine *machine, flag f, uint32_t calls, gantry_error *err)
{
    gy_text text = { 0 };
    print_chain(&text, f, calls);
    gantry_status status = gy_chain_open(c, &text, machine, calls, "graph", 0, err);
    gy_text_free(&text);
    return status;
}

static gantry_status measure_one(const gantry_machine *machine, flag f, int64_t until_ns, gy_figure *figure,
                                 gantry_error *err)
{
    gy_chain few = { 0 }, many = { 0 };
    gantry_status status = open_chain(&few, machine, f, FEW, err);
    status = status ? status : open_chain(&many, machine, f, FEW + MORE, err);
    status = status ? status : gy_chain_sample(&few, &many, until_ns, figure, NULL, err);
    gy_chain_close(&many);
    gy_chain_close(&few);
    return status;
}

gantry_status gy_measure_when(gy_measured *what, const gantry_machine *machine, double seconds, gantry_error *err)
{
    gy_figure figure[FLAGS] = { { 0 } };
    gantry_error why = { 0 };
    gantry_status status = GANTRY_OK;
    int64_t now = gy_now_ns();
    for (int f = 0; f < FLAGS && !status; f++)
        status = measure_one(machine, (flag)f, now + (int64_t)(seconds * 1e9 * (f + 1) / FLAGS), &figure[f], &why);
    if (status == GANTRY_E_NOMEM)
        return gy_fail_nomem(err);
    if (status) {
        gy_text_printf(&what->notes, "not measured: nodes with \"when\": %s\n", why.text);
        return what->notes.failed ? gy_fail_nomem(err) : GANTRY_OK;
    }
    double more = figure[SET].us - figure[NO_FLAG].us;
    what->when = (gy_figure){ more > LEAST_US ? more : LEAST_US, figure[SET].mad_us, figure[SET].samples };
    what->left_out = figure[UNSET];
    return GANTRY_OK;
}
