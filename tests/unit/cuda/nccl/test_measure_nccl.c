/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrating with NCCL, a fake one that ends the program where a real one would hang or be wrong in silence. Times
 * mean nothing there; which tables there are, and that a calibration goes on without them where NCCL fails, does. */
#include "../suite.h"
#include "control.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fakeNcclAlive(void);

enum { KIB = 1024, SMALL = 150 * KIB }; /* bytes of a GPU: half blocks are of 64 KiB */

static const char *const kinds[] = { "all_reduce", "reduce",     "broadcast",      "scatter",
                                     "gather",     "all_gather", "reduce_scatter", "all_to_all" };
enum { KINDS = sizeof kinds / sizeof *kinds };

static void check_alive(const char *what)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", what, text);
    ck_assert_msg(fakeNcclAlive() == 0, "%s: communicators are left behind", what);
}

/* The fault from the first figure of collectives on; NULL: none. */
static const char *fails;

static void inject(void *user, const char *what, size_t done, size_t of)
{
    (void)user, (void)done, (void)of;
    if (fails && strstr(what, "collectives")) {
        fakeCudaFail(fails);
        fails = NULL;
    }
}

/* GPUs of one kind: those that are detected differ. */
static gantry_status calibrate(json_t **document, int gpus, double seconds, gantry_error *err)
{
    gantry_machine *m = NULL, *from = gpu_machine(gpus, false);
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    o.seconds = seconds;
    o.patience = 0.5;
    o.progress = inject;
    *document = NULL;
    gantry_status status = gantry_machine_calibrate(&m, from, &o, err);
    if (!status) {
        MUST(gantry_machine_json(m, &text, &length, MUST_ERR));
        *document = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(*document);
    }
    gantry_free(text);
    gantry_machine_free(m);
    gantry_machine_free(from);
    return status;
}

static json_t *must_calibrate(int gpus)
{
    json_t *document;
    MUST(calibrate(&document, gpus, 0.001, MUST_ERR));
    return document;
}

/* NULL: there is none. */
static json_t *table_by(json_t *document, const char *algorithm, const char *kind, int ranks)
{
    size_t i;
    json_t *at;
    json_array_foreach(json_object_get(document, "collectives"), i, at)
    {
        if (strcmp(json_string_value(json_object_get(at, "collective")), kind) == 0 &&
            strcmp(json_string_value(json_object_get(at, "algorithm")), algorithm) == 0 &&
            json_integer_value(json_object_get(at, "ranks")) == ranks)
            return at;
    }
    return NULL;
}

static json_t *table_of(json_t *document, const char *kind, int ranks)
{
    return table_by(document, "nccl", kind, ranks);
}

static int tables(json_t *document)
{
    int found = 0;
    for (int ranks = 2; ranks <= 16; ranks++)
        for (int k = 0; k < KINDS; k++)
            found += table_of(document, kinds[k], ranks) != NULL;
    return found;
}

static const char *note_with(json_t *document, const char *part)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(document, "notes"), i, note)
    {
        if (strstr(json_string_value(note), part))
            return json_string_value(note);
    }
    return NULL;
}

/* On a busy computer a time may come out longer than that of more bytes, and such a curve makes no table: tried anew.
 */
static json_t *calibrate_all(int gpus, double seconds, int wanted)
{
    json_t *document = NULL;
    for (int i = 0; i < 8 && (!document || tables(document) < wanted); i++) {
        json_decref(document);
        MUST(calibrate(&document, gpus, seconds, MUST_ERR));
    }
    return document;
}

/* 2, 4, ... and all: a table of each kind, sizes up to what there is room for. Monotone: the machine can be read. */
START_TEST(counts)
{
    static const int ranks[][4] = { { 0 }, { 2 }, { 2, 3 }, { 2, 4 }, { 2, 4, 6 } };
    static const int gpus[] = { 1, 2, 3, 4, 6 };
    fakeCudaDevices(gpus[_i], "all", SMALL);
    int wanted = 0;
    while (ranks[_i][wanted / KINDS])
        wanted += KINDS;
    json_t *document = calibrate_all(gpus[_i], 0.001, wanted);
    for (int r = 0; ranks[_i][r]; r++) {
        for (int k = 0; k < KINDS; k++) {
            json_t *points = json_object_get(table_of(document, kinds[k], ranks[_i][r]), "points");
            size_t count = json_array_size(points);
            ck_assert_msg(count >= 2, "%s, %d ranks: %zu points", kinds[k], ranks[_i][r], count);
            int64_t first = json_integer_value(json_array_get(json_array_get(points, 0), 0)),
                    last = json_integer_value(json_array_get(json_array_get(points, count - 1), 0));
            int64_t most = strcmp(kinds[k], "all_to_all") == 0 ? 64 * KIB * ranks[_i][r] : 64 * KIB;
            ck_assert_msg(first > KIB / 2 && first <= KIB && last <= most && last > 8 * KIB, "%s: %lld to %lld",
                          kinds[k], (long long)first, (long long)last);
        }
    }
    ck_assert_int_eq(tables(document), wanted);
    ck_assert((note_with(document, "measured collectives: ") != NULL) == (gpus[_i] > 1));
    ck_assert_ptr_null(note_with(document, "not measured: collectives of NCCL"));
    json_decref(document);
    check_alive("counts");
}
END_TEST

static const struct {
    const char *call;
    int code;
} cases[] = { { "ncclGetUniqueId", 2 }, { "ncclCommInitRankConfig", 2 },
              { "ncclInit", 1 },        { "ncclGroupStart", 3 },
              { "ncclGroupEnd", 3 },    { "ncclAllReduce", 4 },
              { "ncclReduce", 4 },      { "ncclReduceScatter", 4 },
              { "ncclBroadcast", 4 },   { "ncclAllGather", 4 },
              { "ncclSend", 4 },        { "ncclRecv", 4 },
              { "ncclLaunch", 1 },      { "ncclAsync", 6 } };
enum { ASYNC = 13 };

/* The n-th call fails, n = 1, 4, 16, ...; of questions, which mean nothing while something is in progress, more. How
 * often collectives were left out, or measured without graphs, for that. */
static int fail_each(int i)
{
    int without = 0;
    for (int n = 1, reached = 1; reached && n <= 256; n = i == ASYNC ? n + 1 + n / 2 : 4 * n) {
        char spec[80];
        int before = fakeCudaCalls(cases[i].call);
        snprintf(spec, sizeof spec, "%s:%d:%d", cases[i].call, n, cases[i].code);
        fakeCudaFail(spec);
        json_t *document = must_calibrate(2);
        reached = fakeCudaCalls(cases[i].call) - before >= n;
        fakeCudaFail(NULL);
        const char *note = note_with(document, "not measured: collectives of NCCL among ");
        without += note != NULL;
        ck_assert_msg(!note || strstr(note, "NCCL: "), "%s: %s", spec, note);
        bool calls = note && strstr(note, " in graphs, but as calls: ");
        ck_assert_msg(!note || calls || tables(document) < KINDS, "%s: %d tables, %s", spec, tables(document), note);
        ck_assert_ptr_nonnull(note_with(document, "measured copies: "));
        json_decref(document);
        check_alive(spec);
    }
    return without;
}

/* Nothing else is lost. On a busy computer the questions that count may be others each time. */
START_TEST(failing)
{
    int without = 0;
    fakeCudaDevices(2, "all", SMALL);
    for (int tries = 0; tries < (_i == ASYNC ? 5 : 1) && !without; tries++)
        without = fail_each(_i);
    ck_assert_int_gt(without, 0);
}
END_TEST

/* Kernels that never end: they are ended, and what else there is to measure was measured. */
START_TEST(hanging)
{
    static const int at[] = { 1, 2, 3, 40 };
    char spec[40];
    fakeCudaDevices(2, "all", SMALL);
    snprintf(spec, sizeof spec, "ncclHang:%d:1", at[_i]);
    fakeCudaFail(spec);
    json_t *document = must_calibrate(2);
    fakeCudaFail(NULL);
    const char *note = note_with(document, "not measured: collectives of NCCL among 2 GPUs: ");
    ck_assert_ptr_nonnull(note);
    ck_assert_msg(strstr(note, "did not end what it was given to measure within 0.5 s"), "%s", note);
    ck_assert_int_lt(tables(document), KINDS);
    ck_assert(note_with(document, "measured traffic: ") && note_with(document, "measured kernels: "));
    json_decref(document);
    check_alive("hanging");
}
END_TEST

/* Communicators that are never ready. */
START_TEST(never_made)
{
    fakeCudaDevices(2, "all", SMALL);
    fakeCudaFail("ncclInit:1:7");
    json_t *document = must_calibrate(2);
    fakeCudaFail(NULL);
    const char *note = note_with(document, "not measured: collectives of NCCL among 2 GPUs: making communicators: ");
    ck_assert_msg(note && strstr(note, "in progress for too long"), "%s", note ? note : "no note");
    ck_assert_int_eq(tables(document), 0);
    json_decref(document);
    check_alive("never made");
}
END_TEST

START_TEST(no_graphs)
{
    static const char *const calls[] = { "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags" };
    char spec[80];
    fakeCudaDevices(2, "all", SMALL);
    snprintf(spec, sizeof spec, "%s:1:%d", calls[_i], CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fails = spec;
    json_t *document = must_calibrate(2);
    fakeCudaFail(NULL);
    const char *note = note_with(document, "not measured: collectives of NCCL among 2 GPUs in graphs, but as calls: ");
    ck_assert_msg(note && strstr(note, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "%s", note ? note : "no note");
    ck_assert_int_ge(tables(document), KINDS / 2); /* all, unless the computer is busy */
    json_decref(document);
    check_alive("no graphs");
}
END_TEST

/* The fake has no code for workers of resident kernels, nor does it compile formulas. */
static void check_notes(json_t *document)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(document, "notes"), i, note)
    {
        const char *text = json_string_value(note);
        ck_assert_msg(strncmp(text, "not measured: ", 14) ||
                          strstr(text, "not measured: what workers of resident kernels take: ") == text ||
                          strstr(text, "not measured: formulas of ") == text,
                      "%s", text);
    }
}

/* With time for it, what needs no NCCL is measured as well; sizes beyond the memory of the GPUs are left out. */
START_TEST(all_of_it)
{
    fakeCudaDevices(2, "all", 5 * SMALL);
    json_t *document = calibrate_all(2, 60, KINDS);
    ck_assert_int_eq(tables(document), KINDS);
    int by_kernels = 0, by_copies = 0; /* a curve that does not rise, on a busy computer, makes no table */
    for (int k = 0; k < KINDS; k++) {
        by_kernels += table_by(document, "two_shot", kinds[k], 2) != NULL;
        by_copies += table_by(document, "copy_engine", kinds[k], 2) != NULL;
    }
    ck_assert_msg(by_kernels > 0 && by_kernels <= 3 && by_copies > 0 && by_copies <= 5, "%d and %d tables", by_kernels,
                  by_copies);
    check_notes(document);
    json_decref(document);
    check_alive("all of it");
}
END_TEST

/* Two devices of the machine on one GPU cannot be two ranks. */
START_TEST(shared_gpu)
{
    gantry_machine *m = NULL, *shared = NULL;
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    fakeCudaDevices(1, "all", 4 * SMALL);
    shared = shared_machine(2, 1);
    o.seconds = 0.001;
    int before = fakeCudaCalls("ncclCommInitRankConfig");
    MUST(gantry_machine_calibrate(&m, shared, &o, MUST_ERR));
    ck_assert_int_eq(fakeCudaCalls("ncclCommInitRankConfig"), before);
    gantry_machine_free(m);
    gantry_machine_free(shared);
    check_alive("shared GPU");
}
END_TEST

/* Nor is there a table for GPUs that differ. */
START_TEST(mixed_kinds)
{
    gantry_machine *m = NULL;
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    fakeCudaDevices(2, "all", SMALL);
    o.seconds = 0.001;
    int before = fakeCudaCalls("ncclCommInitRankConfig");
    MUST(gantry_machine_calibrate(&m, NULL, &o, MUST_ERR));
    ck_assert_int_eq(fakeCudaCalls("ncclCommInitRankConfig"), before);
    gantry_machine_free(m);
    check_alive("mixed kinds");
}
END_TEST

/* Calibrating again without what failed drops the note. */
START_TEST(again)
{
    gantry_machine *from = gpu_machine(2, false), *broken = NULL, *well = NULL;
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    char *text = NULL;
    size_t length;
    o.seconds = 0.001;
    fakeCudaDevices(2, "all", SMALL);
    fakeCudaFail("ncclInit:1:2");
    MUST(gantry_machine_calibrate(&broken, from, &o, MUST_ERR));
    fakeCudaFail(NULL);
    MUST(gantry_machine_calibrate(&well, broken, &o, MUST_ERR));
    MUST(gantry_machine_json(well, &text, &length, MUST_ERR));
    ck_assert_msg(!strstr(text, "not measured: collectives of NCCL"), "%s", text);
    gantry_free(text);
    gantry_machine_free(from);
    gantry_machine_free(broken);
    gantry_machine_free(well);
    check_alive("again");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measuring NCCL");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, counts, 0, 5);
    tcase_add_loop_test(tests, failing, 0, 14);
    tcase_add_loop_test(tests, hanging, 0, 4);
    tcase_add_test(tests, never_made);
    tcase_add_loop_test(tests, no_graphs, 0, 3);
    tcase_add_test(tests, all_of_it);
    tcase_add_test(tests, shared_gpu);
    tcase_add_test(tests, mixed_kinds);
    tcase_add_test(tests, again);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
