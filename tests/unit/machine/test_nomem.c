/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every way to a machine fails once: reported as such, and nothing is left behind. */
#include "machine/calibrate.h"
#include "machine/gpus.h"
#include "suite.h"
#include "support/faults.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gantry_machine *whole;
static char *text;

static gantry_status by_parse(gantry_machine **out)
{
    return gantry_machine_parse(out, text, strlen(text), "x", NULL);
}
static gantry_status by_select(gantry_machine **out)
{
    return gantry_machine_select(out, whole, "id:0,gpu3", NULL);
}
static gantry_status by_joining(gantry_machine **out)
{
    const gantry_machine *const nodes[] = { whole, whole };
    gantry_join_options o = { sizeof o, 1, 1, GANTRY_PORTS_EACH };
    return gantry_machine_join(out, nodes, 2, &o, NULL);
}
static gantry_status by_spreading(gantry_machine **out)
{
    return gantry_machine_spread(out, whole, 2, NULL);
}
static gantry_status by_virtual(gantry_machine **out)
{
    return gantry_machine_virtual(out, 40, NULL);
}
static gantry_status by_detect(gantry_machine **out)
{
    return gy_machine_detect(out, NULL, NULL);
}

static gantry_status by_text(gantry_machine **out)
{
    char *written = NULL;
    gantry_status status = gantry_machine_json(whole, &written, NULL, NULL);
    if (!status)
        *out = gy_machine_ref(whole);
    gantry_free(written);
    return status;
}

/* A kernel, a copy and traffic in a machine that has a table of that kernel already. */
static gantry_status by_calibration(gantry_machine **out)
{
    gy_measured_point at[] = { { 1000, { 5, 1, 3 }, 0 }, { 4000, { 9, 1, 3 }, 0 } };
    gy_measured_copy copy = { .from = 0, .to = 1, .partial = true, .points = { at, 2, 2 } };
    gy_measured_kernel kernel = { .name = "gemm", .kind = whole->device[0].kind, .points = { at, 2, 2 } };
    gy_measured_traffic traffic = { GY_TRAFFIC_HOST_OUT, GY_MACHINE_NONE, 1e9, { 1e5, 1, 3 } };
    gy_measured_device device = { .device = 0, .launch = { 3, 1, 3 } };
    gy_measured_pair pairs[] = { { { 2, 0, 3 }, { 1, 0, 3 } }, { { 5, 0, 3 }, { 6, 0, 3 } } };
    gy_measured_workers workers = { .kind = whole->device[0].kind, .pairs = { pairs, 2, 2 }, .beside = 1 };
    gy_measured_formulas formulas = { whole->device[0].kind, GANTRY_F64, 1e9, { 9, 0, 3 }, { 20, 0, 3 } };
    char facts[] = "driver: 1\nCUDA: 2\n", notes[] = "not measured: x: y\n";
    gy_measured what = { { &copy, 1, 1 },
                         { &traffic, 1, 1 },
                         { &kernel, 1, 1 },
                         { NULL, 0, 0 },
                         { &device, 1, 1 },
                         { &workers, 1, 1 },
                         { facts, sizeof facts - 1, 0, false },
                         { notes, sizeof notes - 1, 0, false },
                         { 1, 0, 3 },
                         { 5, 0, 3 },
                         { 2, 0, 3 },
                         { &formulas, 1, 1 },
                         { 7, 0, 3 },
                         { 3, 0, 3 },
                         { 4, 0, 3 } };
    gantry_machine *once = NULL;
    gantry_status status = gy_machine_calibrated(&once, whole, &what, NULL);
    kernel.partial = true;
    if (!status)
        status = gy_machine_calibrated(out, once, &what, NULL);
    gantry_machine_free(once);
    return status;
}

/* Reads two machines with calibrations and compares them. */
static gantry_status by_stale(gantry_machine **out)
{
    static const char one[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":9}],\"devices\":[{\"id\":\"d\","
        "\"memory\":\"host\"}],\"kernels\":[{\"kernel\":\"a\",\"dtype\":\"f32\",\"kind\":\"cpu\",\"by\":"
        "\"bytes\",\"points\":[[1,1]]}],\"calibration\":{\"fingerprint\":{\"driver\":\"%s\"}}}";
    gantry_machine *was = NULL, *is = NULL;
    char json[sizeof one + 2], *said = NULL;
    snprintf(json, sizeof json, one, "1");
    gantry_status status = gantry_machine_parse(&was, json, strlen(json), "was", NULL);
    snprintf(json, sizeof json, one, "2");
    if (!status)
        status = gantry_machine_parse(&is, json, strlen(json), "is", NULL);
    if (!status)
        status = gantry_machine_stale(was, is, &said, NULL);
    gantry_free(said);
    gantry_machine_free(was);
    if (!status)
        *out = is;
    else
        gantry_machine_free(is);
    return status;
}

/* Keeps a machine and finds it again. An entry that cannot be read is as one that is damaged, for whatever reason. */
static gantry_status by_recall(gantry_machine **out)
{
    static const char one[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":9}],\"devices\":[{\"id\":\"d\","
        "\"memory\":\"host\"}],\"kernels\":[{\"kernel\":\"a\",\"dtype\":\"f32\",\"kind\":\"cpu\",\"case\":\"1 1\","
        "\"by\":\"bytes\",\"points\":[[1,1]]}],\"calibration\":{\"fingerprint\":{\"driver\":\"1\"}}}";
    gantry_machine *here = NULL, *known = NULL;
    char *said = NULL;
    gantry_status status = gantry_machine_parse(&here, one, strlen(one), "here", NULL);
    if (!status)
        status = gantry_machine_keep(here, here, NULL);
    if (!status)
        status = gantry_machine_recall(&known, here, &said, NULL);
    if (!status && known == here) {
        ck_assert_ptr_nonnull(strstr(said, "damaged"));
        gantry_machine_free(known);
        known = NULL;
        status = GANTRY_E_NOMEM;
    }
    gantry_free(said);
    gantry_machine_free(here);
    *out = known;
    return status;
}

static gantry_status by_workers(gantry_machine **out)
{
    *out = gy_machine_for_workers(whole);
    return *out ? GANTRY_OK : GANTRY_E_NOMEM;
}

/* A refusal that lists devices allocates too. */
static gantry_status by_refusal(gantry_machine **out)
{
    gantry_status status = gantry_machine_select(out, whole, "id:nobody", NULL);
    if (status == GANTRY_E_INVALID) {
        *out = gy_machine_ref(whole);
        return GANTRY_OK;
    }
    return status;
}

typedef gantry_status (*way)(gantry_machine **out);
static const way ways[] = { by_workers, by_parse,       by_select, by_virtual, by_detect,  by_text,
                            by_refusal, by_calibration, by_stale,  by_recall,  by_joining, by_spreading };
#define WAYS (int)(sizeof ways / sizeof *ways)
static const char *const files[] = { "dgx1-v100", "hgx-h200-8", "sirocco" };

START_TEST(survives)
{
    size_t length = 0;
    whole = load_machine(files[_i / WAYS]);
    ck_assert_int_eq(gantry_machine_json(whole, &text, &length, NULL), GANTRY_OK);
    for (int n = 0;; n++) {
        gantry_machine *m = NULL;
        ck_assert_int_lt(n, 5000);
        long before = faults_alive();
        faults_from(n);
        gantry_status status = ways[_i % WAYS](&m);
        faults_off();
        gantry_machine_free(m);
        ck_assert_msg(faults_alive() == before, "allocation %d: %ld pieces were not freed", n, faults_alive() - before);
        if (!status) {
            ck_assert_int_ge(n, 2);
            break;
        }
        ck_assert_int_eq(status, GANTRY_E_NOMEM);
        ck_assert_ptr_null(m);
    }
    gantry_free(text);
    gantry_machine_free(whole);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine without memory");
    TCase *tc = tcase_create("nomem");
    char folder[] = "/tmp/gantry-nomem-XXXXXX", rest[64];
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(rest, sizeof rest, "rm -r %s", folder);
    setenv("HWLOC_SYNTHETIC", "node:2(memory=4000000000) core:3 pu:2", 1);
    tcase_add_loop_test(tc, survives, 0, 3 * WAYS);
    suite_add_tcase(suite, tc);
    int failed = run_suite(suite);
    return system(rest) ? 1 : failed;
}
