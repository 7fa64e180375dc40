/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline is well-formed XML with its parts where they belong; check_timeline.py reads it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run_suite.h"
#include "unit/export/example.h"

static void check_file(const gantry_schedule *s, gantry_format format, const char *name)
{
    char path[400], command[2000], output[2000];
    char *text = example_export(s, format, NULL);
    example_save(path, sizeof path, name, text);
    snprintf(command, sizeof command, "python3 '%s/tests/unit/export/check_timeline.py' '%s' %zu 2>&1",
             GANTRY_SOURCE_DIR, path, s->ops.count);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    ck_assert_msg(pclose(pipe) == 0, "%s of \"%s\": %s", name, s->graph_name, output);
    unlink(path);
    gantry_free(text);
}

static void check_sizes(int batches, const char *prefix)
{
    gantry_schedule *s = example_new(batches, prefix);
    check_file(s, GANTRY_SVG, "line.svg");
    gantry_schedule_free(s);
}

START_TEST(sizes)
{
    check_sizes(1, "");
    check_sizes(4, "");
    check_sizes(40, "");
}
END_TEST

/* Shares below a tenth of a percent, and a machine whose memory is full. */
START_TEST(capacities)
{
    gantry_schedule *s = example_new(1, "");
    uint64_t peak = gantry_schedule_peak_bytes(s, 1);
    s->machine->memory[1].capacity = UINT64_C(1) << 50;
    s->machine->memory[2].capacity = gantry_schedule_peak_bytes(s, 2);
    check_file(s, GANTRY_SVG, "line.svg");
    char *text = example_export(s, GANTRY_SVG, NULL);
    ck_assert_uint_gt(peak, 0);
    ck_assert_ptr_nonnull(strstr(text, "under 0.1 % of 1.0 PiB"));
    ck_assert_ptr_nonnull(strstr(text, "100 % of "));
    ck_assert_ptr_nonnull(strstr(text, "class=\"full\""));
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(hostile_names)
{
    for (int i = 0; i < example_hostile_count; i++)
        check_sizes(1, example_hostile[i]);
}
END_TEST

/* 24,005 ops: drawn together where they are too short, and the file stays small enough to open. */
START_TEST(many_ops)
{
    gantry_schedule *s = example_new(3000, "");
    check_file(s, GANTRY_SVG, "line.svg");
    size_t length;
    char *text = example_export(s, GANTRY_SVG, &length);
    ck_assert_uint_lt(length, 2000000);
    ck_assert_ptr_nonnull(strstr(text, "too short to be told apart"));
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

/* Fill time with so many lanes that not all can be shown: said in the picture. */
START_TEST(many_lanes)
{
    gantry_schedule *s = hand_new("{\"gantry_machine\": 1, \"memories\": [{\"id\": \"host\", \"capacity\": 1000}], "
                                  "\"devices\": [{\"id\": \"A\", \"memory\": \"host\"}]}");
    for (int i = 0; i < 1200; i++) {
        uint32_t op = hand_launch(s, "work", hand_lane(s, 0, GY_LANE_COMPUTE), 1);
        s->ops.at[op].end = s->makespan = GY_TICKS_PER_US;
    }
    char *text = example_export(s, GANTRY_SVG, NULL);
    ck_assert_ptr_nonnull(strstr(text, "First 96 of 1,200 streams shown."));
    gantry_free(text);
    gantry_schedule_free(s);
}
END_TEST

int main(void)
{
    if (system("python3 -c 'import xml.etree.ElementTree' >/dev/null 2>&1") != 0) {
        printf("skipped: python3 is not installed\n");
        return 77;
    }
    Suite *suite = suite_create("timeline");
    TCase *t = tcase_create("timeline");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, sizes);
    tcase_add_test(t, capacities);
    tcase_add_test(t, hostile_names);
    tcase_add_test(t, many_ops);
    tcase_add_test(t, many_lanes);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
