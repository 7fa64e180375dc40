/* SPDX-License-Identifier: Apache-2.0 */
/* Occupies a device for a time, then hands its input on: for pipelines and tests where the time is what matters. */
#include "kernels/manifest.h"
#include <errno.h>
#include <time.h>

static void wait_until(double us)
{
    struct timespec left = { (time_t)(us / 1e6), (long)((us - 1e6 * (double)(time_t)(us / 1e6)) * 1e3) };
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[2], *y = &l->arg[3];
    int64_t n = gy_arg_size(x);
    wait_until(
        l->arg[0].number); /* sleeping, not spinning: a virtual device is busy, the computer's core need not be */
    switch (x->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((type *)y->data)[i] = STORE(GY_SCALAR(wide, l->arg[1]) * LOAD(((const type *)x->data)[i]));               \
        return GANTRY_OK;
        GY_ALL_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    if (!(l->arg[0].number >= 0) || l->arg[0].number > 1e9)
        return gy_check_fail(text, size, "\"us\" is %g; it must be between 0 and 1e9", l->arg[0].number);
    return gy_check_same_size(l, 2, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("us", "how long, in microseconds"),
    GY_FACTOR_OR("a", 'T', 1, "factor"),
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_busy = { .struct_size = sizeof(gantry_kernel),
                                       .name = "busy",
                                       .summary = "waits, then y = a x",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flags = GANTRY_KERNEL_VARIADIC,
                                       .flops = "x.size",
                                       .bytes = "x.bytes + y.bytes",
                                       .host = run,
                                       .check = check };
