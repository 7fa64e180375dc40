/* SPDX-License-Identifier: Apache-2.0 */
/* The call itself: formats, options, out-parameters. */
#include "suite.h"

#include <stddef.h>
#include <stdio.h>

START_TEST(formats)
{
    size_t count = 0;
    for (; gantry_import_format(count); count++)
        ck_assert_ptr_nonnull(gantry_import_summary(count));
    ck_assert_uint_eq(count, 4);
    ck_assert_ptr_null(gantry_import_summary(count));
    ck_assert_str_eq(refusal("sgt", "", NULL),
                     "no format \"sgt\" (did you mean \"stg\"?); there are stg, dnn, dot, wfcommons");
    ck_assert_str_eq(refusal("graphml", "", NULL), "no format \"graphml\"; there are stg, dnn, dot, wfcommons");
}
END_TEST

START_TEST(wrong_options)
{
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.devices = -1;
    ck_assert_str_eq(refusal("stg", "1\n0 1 0\n", &o),
                     "cannot make a machine of -1 devices; give 1 to 4096, or 0 for what the file says");
    o.devices = 5000;
    ck_assert_str_eq(refusal("stg", "1\n0 1 0\n", &o),
                     "cannot make a machine of 5000 devices; give 1 to 4096, or 0 for what the file says");
    o.devices = 1;
    o.time_unit_us = -2;
    ck_assert_str_eq(refusal("stg", "1\n0 1 0\n", &o),
                     "a unit of time of -2 us; give 1e-06 to 1e+12, or 0 for what is usual for the format");
    o.time_unit_us = 0;
    o.bandwidth_gbs = 1e9;
    ck_assert_str_eq(refusal("stg", "1\n0 1 0\n", &o),
                     "a bandwidth of 1e+09 GB/s; give 1e-09 to 1e+06, or 0 for 1 GB/s");
}
END_TEST

/* A caller that was compiled when the struct was shorter. */
START_TEST(shorter_options)
{
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.struct_size = offsetof(gantry_import_options, time_unit_us);
    o.devices = 1;
    o.time_unit_us = -2;
    gantry_graph *g = import_text("stg", "1\n0 1 0\n", &o);
    ck_assert_double_eq(makespan(g, "heft"), 1);
    gantry_graph_free(g);
}
END_TEST

START_TEST(misuse)
{
    gantry_graph *g = NULL;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_import(NULL, NULL, "stg", "t", NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_import(&g, NULL, NULL, "t", NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_import(&g, NULL, "stg", NULL, NULL, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_import(&g, NULL, "stg", "/no/such/file", NULL, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot open /no/such/file: No such file or directory; there is no folder \"/no/such\"");
}
END_TEST

START_TEST(machine_out)
{
    static const char text[] = "1\n0 1 0\n";
    char path[] = "/tmp/gantry-import-XXXXXX";
    int fd = mkstemp(path);
    FILE *to = fdopen(fd, "w");
    fputs(text, to);
    fclose(to);
    gantry_graph *g = NULL;
    int dummy;
    gantry_machine *m = (gantry_machine *)(void *)&dummy;
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    ck_assert_int_eq(gantry_graph_import(&g, &m, "stg", path, &o, NULL), GANTRY_OK);
    ck_assert_ptr_null(m);
    gantry_graph_free(g);
    o.devices = 3;
    ck_assert_int_eq(gantry_graph_import(&g, &m, "stg", path, &o, NULL), GANTRY_OK);
    ck_assert_uint_eq(gantry_machine_device_count(m), 3);
    ck_assert_uint_eq(gantry_machine_memory_count(m), 4);
    ck_assert_double_eq(gantry_machine_copy_us(m, 1, 2, 7), 7);
    gantry_graph_free(g);
    gantry_machine_free(m);
    remove(path);
}
END_TEST

int main(void)
{
    const TTest *cases[] = { formats, wrong_options, shorter_options, misuse, machine_out };
    return RUN_CASES("import_options", cases);
}
