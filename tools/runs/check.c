/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --check: checking mode, and outputs against those of one device. */
#include "runs/run.h"

#include "results/results.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A NaN equals nothing, not even the same bytes, unless the graph says that NaN are meant: memory that a program forgot
 * to write reads as NaN in both runs. Doubles do not hold every 64-bit integer: two that differ may look the same. */
static bool same_element(const gantry_buffer_info *info, const void *a, const void *b, uint64_t i)
{
    size_t size = gantry_dtype_size(info->dtype);
    double x = element_real(a, info->dtype, i), y = element_real(b, info->dtype, i);
    bool wide = info->dtype == GANTRY_I64 || info->dtype == GANTRY_U64;
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y) && info->equal_nan;
    if (memcmp((const char *)a + i * size, (const char *)b + i * size, size) == 0)
        return true;
    return x == y ? !wide : fabs(x - y) <= info->atol + info->rtol * fabs(y);
}

/* Within the output's tolerance, element by element. */
static bool same(const gantry_buffer_info *info, const void *a, const void *b, uint64_t *where)
{
    uint64_t count = info->bytes / gantry_dtype_size(info->dtype);
    bool may_be_nan = element_is_real(info->dtype) && !info->equal_nan;
    if (!may_be_nan && memcmp(a, b, info->bytes) == 0)
        return true;
    for (*where = 0; *where < count; ++*where)
        if (!same_element(info, a, b, *where))
            return false;
    return true;
}

static int fail_same(const gantry_buffer_info *info, const void *a, const void *b, uint64_t where)
{
    double x = element_real(a, info->dtype, where), y = element_real(b, info->dtype, where);
    if (isnan(x) && isnan(y))
        complain("--check: output \"%s\" is NaN at element %" PRIu64
                 ", here and on one device, and a NaN equals nothing; find where it comes from, or allow it with "
                 "\"check\": {\"equal_nan\": true}\n",
                 info->name, where);
    else
        complain("--check: output \"%s\" differs from a run on one device at element %" PRIu64
                 ": %.17g, there %.17g (rtol %g, atol %g)\n",
                 info->name, where, x, y, info->rtol, info->atol);
    return EXIT_RUNNING;
}

int compare_outputs(const session *s, gantry_run *run)
{
    gantry_error err;
    gantry_buffer_info info;
    for (uint32_t i = 0; i < gantry_graph_buffer_count(s->graph); i++) {
        const void *a, *b;
        uint64_t bytes, where;
        if (!is_output(s, i, &info) || info.bytes == 0)
            continue;
        if (gantry_run_output(run, (gantry_buffer){ .id = i }, &a, &bytes, &err) ||
            gantry_run_output(s->reference, (gantry_buffer){ .id = i }, &b, &bytes, &err))
            return fail(&err);
        if (!same(&info, a, b, &where))
            return fail_same(&info, a, b, where);
    }
    return EXIT_FINE;
}

/* One virtual device; a graph that names devices with `on` or `apart` is run on its own machine, as much of it on one
 * device as it allows. */
static int make_reference(session *s)
{
    gantry_error err;
    gantry_machine *machine = NULL;
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    so.policy = "single";
    so.like = s->schedule; /* nodes may do different things to different parts: the parts must be the same */
    gantry_status status = gantry_machine_virtual(&machine, 1, &err);
    if (!status)
        status = gantry_schedule_new(&s->single, s->graph, machine, &so, &err);
    if (status && status != GANTRY_E_NOMEM)
        status = gantry_schedule_new(&s->single, s->graph, gantry_schedule_machine(s->schedule), &so, &err);
    gantry_machine_free(machine);
    return status ? fail(&err) : EXIT_FINE;
}

int check_run(session *s)
{
    gantry_run *guarded = NULL;
    double us;
    int code = open_run(s, &guarded, s->schedule, "host", true);
    if (!code)
        code = start_once(guarded, &us);
    if (!code)
        code = make_reference(s);
    if (!code)
        code = open_run(s, &s->reference, s->single, "host", false);
    if (!code)
        code = start_once(s->reference, &us);
    if (!code)
        code = compare_outputs(s, guarded);
    gantry_run_free(guarded);
    return code;
}
