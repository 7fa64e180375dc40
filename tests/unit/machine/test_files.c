/* SPDX-License-Identifier: Apache-2.0 */
/* The machine files of graphs/machines: round trips, and their numbers against the sources they name. */
#include "base/file.h"
#include "base/memory.h"
#include "suite.h"
#include "support/comma.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const files[] = { "hgx-h200-8", "dgx1-v100", "a100-pcie-4", "rtx-mixed-3",
                                     "sirocco",    "gpu-1",     "host-2",      "host-4",
                                     "host-8",     "dgx-h100",  "dgx-h200",    "a100-pcie-4-100gbe" };
#define FILES ((int)(sizeof files / sizeof *files))

static char *json_of(const gantry_machine *m, size_t *length)
{
    char *text = NULL;
    ck_assert_int_eq(gantry_machine_json(m, &text, length, NULL), GANTRY_OK);
    ck_assert_uint_eq(strlen(text), *length);
    return text;
}

static void same_routes(const gantry_machine *a, const gantry_machine *b)
{
    for (uint32_t i = 0; i < a->memories * a->memories; i++) {
        const gy_route *p = &a->route[i], *q = &b->route[i];
        ck_assert(p->kind == q->kind && p->via == q->via && p->given == q->given && p->points == q->points);
        ck_assert(p->resources == q->resources);
        for (uint32_t k = 0; k < p->points; k++)
            ck_assert(p->point[k].bytes == q->point[k].bytes && p->point[k].time == q->point[k].time);
        for (uint32_t k = 0; k < p->resources; k++)
            ck_assert_uint_eq(p->resource[k], q->resource[k]);
    }
}

START_TEST(round_trip)
{
    gantry_machine *m = load_machine(files[_i]), *again = NULL;
    size_t length, length2;
    char *text = json_of(m, &length);
    ck_assert_int_eq(gantry_machine_parse(&again, text, length, "again", NULL), GANTRY_OK);
    char *text2 = json_of(again, &length2);
    ck_assert_str_eq(text, text2);
    ck_assert_uint_eq(machine_hash(m), machine_hash(again));
    ck_assert_str_eq(m->name, files[_i]);
    ck_assert_ptr_nonnull(again->source);
    ck_assert_uint_eq(m->notes, again->notes);
    same_routes(m, again);
    gantry_free(text);
    gantry_free(text2);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

/* A machine inside a schedule file reads back the same, also by way of jansson's own numbers. */
/* A program may have set a locale that writes 0,1: files do not change with it. Shares of kernels among the numbers. */
START_TEST(the_locale_does_not_matter)
{
    static const char text[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"g\",\"capacity\":"
        "\"1GiB\"}],"
        "\"devices\":[{\"id\":\"g\",\"kind\":\"k\",\"type\":\"gpu\",\"memory\":\"g\",\"launch_us\":1.5}],"
        "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":0.25,\"bandwidth_gbs\":12.5}],"
        "\"kernels\":[{\"kernel\":\"gemm\",\"dtype\":\"f32\",\"kind\":\"k\",\"by\":\"flops\",\"points\":[[100,10.5],["
        "1000,20.5]],"
        "\"share\":[0.125,1]}]}";
    size_t length;
    gantry_machine *m = NULL, *again = NULL;
    gantry_error err;
    ck_assert_msg(!gantry_machine_parse(&m, text, sizeof text - 1, "one", &err), "%s", err.text);
    char *before = json_of(m, &length);
    ck_assert_ptr_nonnull(strstr(before, "\"share\": [0.125, 1]"));
    bool comma = set_decimal_comma();
    char *now = json_of(m, &length);
    ck_assert(!comma || !strcmp(now, before));
    ck_assert_int_eq(gantry_machine_parse(&again, now, length, "again", NULL), GANTRY_OK);
    gantry_free(now);
    gantry_free(before);
    gantry_machine_free(m);
    gantry_machine_free(again);
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(as_json_value)
{
    gantry_machine *m = load_machine(files[_i]), *again = NULL;
    gy_text text = { 0 };
    gy_machine_print(&text, m, 4);
    json_t *value = json_loadb(text.at, text.length, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(value);
    gy_text_free(&text);
    char *dump = json_dumps(value, JSON_COMPACT);
    json_t *read = json_loads(dump, 0, NULL);
    gy_json_at at = { NULL, NULL, 0, read };
    ck_assert_int_eq(gy_machine_read(&again, &at, NULL), GANTRY_OK);
    ck_assert_uint_eq(machine_hash(m), machine_hash(again));
    free(dump);
    json_decref(value);
    json_decref(read);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

START_TEST(save_and_load)
{
    char path[] = "/tmp/gantry-machine-XXXXXX";
    gantry_machine *m = load_machine("sirocco"), *again = NULL;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(gantry_machine_save(m, path, NULL), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_load(&again, path, NULL), GANTRY_OK);
    ck_assert_uint_eq(machine_hash(m), machine_hash(again));
    unlink(path);
    gantry_machine_free(m);
    gantry_machine_free(again);
}
END_TEST

/* Every GPU file: plausible whole machines, every pair reachable, a CPU for host calls. */
START_TEST(plausible)
{
    gantry_machine *m = load_machine(files[_i]);
    ck_assert(m->memory[0].host && m->contention);
    for (uint32_t i = 0; i < m->devices; i++) {
        const gy_device *d = &m->device[i];
        ck_assert_double_gt(gy_device_gflops(d, GANTRY_F32), 0);
        ck_assert_double_gt(d->bandwidth_gbs, 0);
        ck_assert_int_gt(d->launch, 0);
        if (d->gpu)
            ck_assert_int_eq(d->ordinal, (int)i);
    }
    if (strncmp(files[_i], "host-", 5) != 0) {
        ck_assert_uint_eq(gy_machine_workers(m), m->devices - 1);
        ck_assert_uint_eq(m->device[m->devices - 1].memory, 0);
    }
    for (uint32_t a = 0; a < m->memories; a++)
        for (uint32_t b = 0; b < m->memories; b++) {
            const gy_route *r = gy_machine_route(m, a, b);
            ck_assert(r->kind != GY_ROUTE_NONE && r->from == a && r->to == b);
            for (uint32_t k = 0; k < r->resources; k++) /* alone on the machine nothing shared is the limit */
                ck_assert_int_le(gy_route_rate(r, 1 << 30), m->resource[r->resource[k]].rate);
        }
    gantry_machine_free(m);
}
END_TEST

/* The sweep the file was typed from: "  BYTES US GB/s" lines after its heading. */
START_TEST(h200_sweep)
{
    const char *path = shared_path("machines/hgx-h200-8.measured.txt");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return;
    gantry_machine *m = load_machine("hgx-h200-8");
    char line[512];
    int points = 0;
    bool inside = false;
    while (fgets(line, sizeof line, file)) {
        long long bytes;
        double us, gbs;
        inside = inside ? sscanf(line, " %lld %lf %lf", &bytes, &us, &gbs) == 3 : !strncmp(line, "P2P size sweep", 14);
        if (!inside || !strncmp(line, "P2P", 3))
            continue;
        double off = gy_ticks_to_us(copy_ticks(m, "gpu3", "gpu6", bytes)) / us - 1;
        ck_assert_msg(fabs(off) <= (bytes <= 4096 ? 0.03 : 1e-9), "%lld bytes: off by %g", bytes, off);
        points++;
    }
    ck_assert_int_eq(points, 12);
    fclose(file);
    gantry_machine_free(m);
}
END_TEST

START_TEST(h200_numbers)
{
    gantry_machine *m = load_machine("hgx-h200-8");
    ck_assert_uint_eq(m->devices, 9);
    ck_assert_uint_eq(m->memory[8].capacity, 150109880320);
    /* 1 GiB to a peer: 396.6 GB/s; from the host 55.3; a copy within a GPU reads and writes at 4220 GB/s after 4 us */
    ck_assert_double_eq_tol(1073741824 / gantry_machine_copy_us(m, 1, 2, 1073741824) / 1e3, 396.6, 0.05);
    ck_assert_double_eq_tol(1e9 / (gantry_machine_copy_us(m, 0, 5, 1000000000) - 6) / 1e3, 55.3, 1e-6);
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 5, 5, 2110000000), 4 + 1000, 1e-6);
    /* between two measured points, on the line: 1.5 MiB is a sixth of the way from 1 to 4 MiB */
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 2, 1572864), 5.36 + (13.54 - 5.36) / 6, 1e-6);
    const gy_route *r = route_of(m, "gpu2", "gpu7");
    static const char *const via[] = { "gpu2.out", "gpu7.in", "gpu2.port", "gpu7.port" };
    ck_assert_uint_eq(r->resources, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(m->resource[r->resource[i]].id, via[i]);
    gantry_machine_free(m);
}
END_TEST

static const int nvlinks[8][8] = {
    { 0, 2, 1, 1, 2, 0, 0, 0 }, { 2, 0, 1, 2, 0, 1, 0, 0 }, { 1, 1, 0, 2, 0, 0, 2, 0 }, { 1, 2, 2, 0, 0, 0, 0, 1 },
    { 2, 0, 0, 0, 0, 2, 1, 1 }, { 0, 1, 0, 0, 2, 0, 1, 2 }, { 0, 0, 2, 0, 1, 1, 0, 2 }, { 0, 0, 0, 1, 1, 2, 2, 0 },
};

START_TEST(dgx1_links)
{
    gantry_machine *m = load_machine("dgx1-v100");
    for (uint32_t a = 0; a < 8; a++) {
        int links = 0;
        for (uint32_t b = 0; b < 8; b++) {
            const gy_route *r = gy_machine_route(m, a + 1, b + 1), *back = gy_machine_route(m, b + 1, a + 1);
            ck_assert(a == b || r->kind == back->kind);
            ck_assert_int_eq(gy_route_time(m, r, 1 << 20), gy_route_time(m, back, 1 << 20));
            if (a == b)
                continue;
            links += nvlinks[a][b];
            ck_assert_int_eq(r->kind, nvlinks[a][b] ? GY_ROUTE_DIRECT : GY_ROUTE_RELAY);
            if (!nvlinks[a][b])
                continue;
            ck_assert_int_eq(gy_route_rate(r, 1000000), nvlinks[a][b] * INT64_C(25000000000));
            ck_assert_uint_eq(r->resources, 1); /* a link of its own for each direction */
            ck_assert_int_eq(m->resource[r->resource[0]].rate, nvlinks[a][b] * INT64_C(25000000000));
            ck_assert_uint_ne(r->resource[0], back->resource[0]);
        }
        ck_assert_int_eq(links, 6);
    }
    gantry_machine_free(m);
}
END_TEST

/* Two hops reach everything (the published diameter), and a relay is the best pair of links. */
START_TEST(dgx1_relays)
{
    gantry_machine *m = load_machine("dgx1-v100");
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++) {
            double best = 1e30;
            int via = -1;
            for (int k = 0; k < 8 && a != b && !nvlinks[a][b]; k++) {
                double us = nvlinks[a][k] && nvlinks[k][b]
                                ? 4 + 1048576 / 25e3 / nvlinks[a][k] + 1048576 / 25e3 / nvlinks[k][b]
                                : 1e30;
                if (us < best - 1e-9) {
                    best = us;
                    via = k;
                }
            }
            if (via < 0)
                continue;
            const gy_route *r = gy_machine_route(m, (uint32_t)a + 1, (uint32_t)b + 1);
            ck_assert_uint_eq(r->via, (uint32_t)via + 1);
            ck_assert_double_eq_tol(gantry_machine_copy_us(m, (size_t)a + 1, (size_t)b + 1, 1048576), best, 1e-5);
        }
    gantry_machine_free(m);
}
END_TEST

START_TEST(rtx_is_staged)
{
    gantry_machine *m = load_machine("rtx-mixed-3");
    for (uint32_t a = 1; a < 4; a++)
        for (uint32_t b = 1; b < 4; b++)
            ck_assert_int_eq(gy_machine_route(m, a, b)->kind, a == b ? GY_ROUTE_DIRECT : GY_ROUTE_STAGED);
    /* 1 MB from the 3090 (25 GB/s) to the 3070 (6.3): 8 + 40 + 8 + 158.73 us */
    ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 3, 1000000), 56 + 1000 / 6.3, 1e-5);
    gantry_machine_free(m);
}
END_TEST

START_TEST(a100_switches)
{
    gantry_machine *m = load_machine("a100-pcie-4");
    ck_assert_uint_eq(route_of(m, "gpu0", "gpu1")->resources, 2);
    ck_assert_uint_eq(route_of(m, "gpu0", "gpu2")->resources, 4);
    ck_assert_int_lt(copy_ticks(m, "gpu2", "gpu3", 1 << 20), copy_ticks(m, "gpu2", "gpu1", 1 << 20));
    gantry_machine_free(m);
}
END_TEST

/* A StarPU matrix: the first `n` rows and columns. */
static bool read_matrix(const char *name, int n, double to[5][5])
{
    const char *path = shared_path(name);
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return false;
    char line[1024];
    int row = 0;
    while (row < n && fgets(line, sizeof line, file)) {
        char *at = line;
        if (line[0] == '#')
            continue;
        for (int i = 0; i < n; i++)
            to[row][i] = strtod(at, &at);
        row++;
    }
    fclose(file);
    ck_assert_int_eq(row, n);
    return true;
}

START_TEST(sirocco_is_measured)
{
    double bandwidth[5][5], latency[5][5];
    if (!read_matrix("data/starpu-bus/sirocco.bandwidth", 5, bandwidth) ||
        !read_matrix("data/starpu-bus/sirocco.latency", 5, latency))
        return;
    gantry_machine *m = load_machine("sirocco");
    for (uint32_t a = 0; a < 5; a++)
        for (uint32_t b = 0; b < 5; b++) {
            if (a == b)
                continue;
            const gy_route *r = gy_machine_route(m, a, b);
            ck_assert_double_eq_tol(gy_ticks_to_us(gy_route_latency(r)), latency[a][b], 0.0051);
            ck_assert_double_eq_tol((double)gy_route_rate(r, 1 << 30) / 1e6, bandwidth[a][b], 0.51); /* MB/s */
        }
    gantry_machine_free(m);
}
END_TEST

START_TEST(sirocco_is_asymmetric)
{
    gantry_machine *m = load_machine("sirocco");
    /* published: gpu0 to gpu2 7.66 GB/s and 23.5 us, back 8.50 and 23.8; under one switch 10.2 */
    ck_assert_int_eq(gy_route_rate(route_of(m, "gpu0", "gpu2"), 1 << 30), 7663000000);
    ck_assert_int_eq(gy_route_rate(route_of(m, "gpu2", "gpu0"), 1 << 30), 8504000000);
    ck_assert_int_gt(copy_ticks(m, "gpu0", "gpu2", 1 << 20), copy_ticks(m, "gpu2", "gpu0", 1 << 20));
    ck_assert_int_lt(copy_ticks(m, "gpu2", "gpu3", 1 << 20), copy_ticks(m, "gpu2", "gpu0", 1 << 20));
    gantry_machine_free(m);
}
END_TEST

/* The examples of the page are machines, and mean what the page says. */
START_TEST(documented_examples)
{
    size_t length = 0, count = 0;
    char *page = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_file_read(&page, &length, GANTRY_SOURCE_DIR "/docs/machine-format.md", NULL), GANTRY_OK);
    for (char *at = strstr(page, "```json\n"); at; at = strstr(at, "```json\n")) {
        char *end = strstr(at += 8, "```");
        gantry_machine *m = NULL;
        ck_assert_msg(!gantry_machine_parse(&m, at, (size_t)(end - at), "page", &err), "%s: %s", err.where, err.text);
        if (count++ == 0) {
            ck_assert_int_eq(route_of(m, "gpu1", "gpu0")->kind, GY_ROUTE_STAGED);
            ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 0, 1048576), 95, 1e-9);
        } else {
            ck_assert_double_eq_tol(gantry_machine_copy_us(m, 1, 2, 18), 18, 1e-9);
        }
        gantry_machine_free(m);
        at = end + 3;
    }
    ck_assert_uint_eq(count, 2);
    gy_free(page);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine files");
    TCase *tc = tcase_create("files");
    tcase_add_loop_test(tc, round_trip, 0, FILES);
    tcase_add_loop_test(tc, as_json_value, 0, FILES);
    tcase_add_test(tc, the_locale_does_not_matter);
    tcase_add_loop_test(tc, plausible, 0, FILES);
    tcase_add_test(tc, save_and_load);
    tcase_add_test(tc, documented_examples);
    tcase_add_test(tc, h200_sweep);
    tcase_add_test(tc, h200_numbers);
    tcase_add_test(tc, dgx1_links);
    tcase_add_test(tc, dgx1_relays);
    tcase_add_test(tc, rtx_is_staged);
    tcase_add_test(tc, a100_switches);
    tcase_add_test(tc, sirocco_is_measured);
    tcase_add_test(tc, sirocco_is_asymmetric);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
