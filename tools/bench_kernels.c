/* SPDX-License-Identifier: Apache-2.0 */
/* bench kernels: kernels that stream through memory, against a copy within it. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 11, MIB = 1 << 20 };

/* Those that are bound by memory traffic on any GPU. */
static const char *const streaming[] = { "add",      "axpby",      "bias_add",   "copy",       "dot",
                                         "jacobi2d", "mul",        "relu",       "relu_grad",  "saxpy",
                                         "scale",    "sgd_update", "reduce_max", "reduce_sum", "transpose" };

/* Both by hand: what is compared is the kernel, not Gantry. `rate`: GB/s. */
static int sample(gantry_raw *raw, double *us, double *bytes)
{
    gantry_error err;
    return gantry_raw_time(raw, us, bytes, &err) ? fail(&err) : EXIT_FINE;
}

/* In turn; *w gets the kernel's time, and the time that the copy takes for as many bytes. */
static int race(bench_row *w, gantry_raw *kernel, gantry_raw *copy)
{
    double mine[SAMPLES], theirs[SAMPLES], moved = 0, copied = 0;
    int code = EXIT_FINE;
    for (int i = -1; i < SAMPLES && !code; i++) {
        int at = i < 0 ? 0 : i;
        code = sample(kernel, &mine[at], &moved);
        if (!code)
            code = sample(copy, &theirs[at], &copied);
    }
    w->bytes = moved;
    w->gantry_us = median(mine, SAMPLES);
    w->raw_us = copied > 0 ? median(theirs, SAMPLES) * moved / copied : 0;
    return code;
}

int bench_kernels(const options *o)
{
    gantry_machine *machine = NULL;
    gantry_raw *copy = NULL;
    gantry_error err;
    rows r = { .bench = "kernels" };
    gantry_raw_options ro = GANTRY_RAW_OPTIONS_INIT;
    int gpus = 0, code = bench_gpus(&machine, o, &gpus);
    ro.bytes = o->bytes ? (uint64_t)o->bytes : (uint64_t)256 * MIB;
    if (!code && gantry_raw_new(&copy, "cuda", "within", machine, &ro, &err))
        code = fail(&err);
    for (size_t i = 0; i < sizeof streaming / sizeof *streaming && !code; i++) {
        gantry_raw *kernel = NULL;
        bench_row w = { .want = 0.9 };
        snprintf(w.what, sizeof w.what, "%s", streaming[i]);
        ro.kernel = streaming[i];
        if (gantry_raw_new(&kernel, "cuda", "kernel", machine, &ro, &err)) {
            code = rows_skip(&r, streaming[i], &err);
        } else if (!(code = race(&w, kernel, copy))) {
            rows_add(&r, w);
        }
        gantry_raw_free(kernel);
    }
    if (!code)
        code = rows_print(o, &r);
    gantry_raw_free(copy);
    gantry_machine_free(machine);
    return code;
}
