/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/export/example.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/sim.h"

const char *const example_hostile[] = {
    "quote\" and \\ back\\nslash\\",
    "<b>&amp;</b> & <!-- ]]> -->",
    "line\nbreak\r\tand tab",
    "\xff\xc3(\xed\xa0\x80 broken",
    "größer → 数 😀",
    "\x01\x1b[31m\x7f control",
    "&lt;",
    "\\N \\G \\l",
    "'; DROP",
    "%s%n%d",
    "{|}<port>",
    "",
    "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on[12345]",
};
const int example_hostile_count = sizeof example_hostile / sizeof *example_hostile;

static const char machine[] =
    "{\"gantry_machine\": 1, \"name\": \"two <gpus>\", \"memories\": [{\"id\": \"host\", \"capacity\": \"64GiB\"}, "
    "{\"id\": \"gpu0\", \"capacity\": \"2GiB\"}, {\"id\": \"gpu1\", \"capacity\": \"2GiB\"}], \"devices\": ["
    "{\"id\": \"gpu0\", \"kind\": \"H200\", \"type\": \"gpu\", \"memory\": \"gpu0\", \"copy_engines\": 2}, "
    "{\"id\": \"gpu1\", \"kind\": \"H200\", \"type\": \"gpu\", \"memory\": \"gpu1\", \"copy_engines\": 2}, "
    "{\"id\": \"cpu\", \"memory\": \"host\", \"use\": \"host\"}], "
    "\"resources\": {\"host.out\": 80, \"host.in\": 80}, \"routes\": ["
    "{\"from\": \"host\", \"to\": \"gpu*\", \"latency_us\": 5, \"bandwidth_gbs\": 55, \"via\": [\"host.out\"]}, "
    "{\"from\": \"gpu*\", \"to\": \"host\", \"latency_us\": 5, \"bandwidth_gbs\": 55, \"via\": [\"host.in\"]}, "
    "{\"from\": \"gpu*\", \"to\": \"gpu*\", \"latency_us\": 2, \"bandwidth_gbs\": 390}]}";

typedef struct making {
    gantry_schedule *s;
    const char *prefix;
    uint32_t compute[2], up[2], down[2], together[2];
    uint32_t frames, blurred, gradient, sum[2], last[2];
} making;

static uint32_t launch(making *m, const char *what, int number, uint32_t device, double us)
{
    char id[400];
    snprintf(id, sizeof id, "%s%s[%d]", m->prefix, what, number);
    return hand_launch(m->s, id, m->compute[device], us);
}

static uint32_t host_rows(making *m, uint32_t value, int64_t first, int64_t last, gy_space space)
{
    uint32_t i = hand_instance(m->s, value, 0, first, last);
    m->s->slab.at[0] = 0;
    m->s->instances.at[i].space = (uint8_t)space;
    m->s->instances.at[i].role = GY_ROLE_EXTERNAL;
    return i;
}

static void add_batch(making *m, int number, uint32_t d, int64_t rows)
{
    int64_t first = number * rows, last = first + rows;
    uint32_t in = hand_instance(m->s, m->frames, 1 + d, first, last),
             out = hand_instance(m->s, m->blurred, 1 + d, first, last);
    uint32_t up = hand_copy(m->s, m->up[d], host_rows(m, m->frames, first, last, GY_SPACE_INPUT), in);
    uint32_t blur = launch(m, "blur", number, d, 300);
    hand_use(m->s, in, GANTRY_READ);
    hand_use(m->s, out, GANTRY_WRITE);
    hand_wait(m->s, up, blur);
    m->last[d] = launch(m, "train", number, d, d ? 420 : 140);
    hand_use(m->s, out, GANTRY_READ);
    hand_use(m->s, m->sum[d], GANTRY_SUM);
    uint32_t down = hand_copy(m->s, m->down[d], out, host_rows(m, m->blurred, first, last, GY_SPACE_OUTPUT));
    hand_wait(m->s, blur, down);
}

static void add_end(making *m)
{
    uint32_t all = hand_collective(m->s, GANTRY_ALL_REDUCE, 2, m->together, 300);
    for (int way = 0; way < 2; way++)
        for (int d = 0; d < 2; d++)
            hand_use(m->s, m->sum[d], way ? GANTRY_WRITE : GANTRY_READ);
    m->s->ops.at[all].ins = 2;
    m->s->ops.at[all].reduce = GANTRY_SUM;
    uint32_t update[2];
    for (uint32_t d = 0; d < 2; d++) {
        hand_wait(m->s, m->last[d], all);
        update[d] = launch(m, "update", (int)d, d, 200);
        hand_use(m->s, m->sum[d], GANTRY_READWRITE);
        hand_wait(m->s, all, update[d]);
    }
    uint32_t to = hand_instance(m->s, m->gradient, 2, 0, 500), copy = hand_copy(m->s, m->down[1], m->sum[0], to);
    hand_wait(m->s, update[0], copy);
    uint32_t evaluate = launch(m, "evaluate", 0, 1, 400);
    hand_use(m->s, to, GANTRY_READ);
    hand_wait(m->s, copy, evaluate);
}

gantry_schedule *example_new(int batches, const char *prefix)
{
    making m = { .s = hand_new(machine), .prefix = prefix };
    char name[400];
    m.s->graph_name = gy_arena_printf(&m.s->arena, "%sexample", prefix);
    for (uint32_t d = 0; d < 2; d++) {
        m.compute[d] = hand_lane(m.s, d, GY_LANE_COMPUTE);
        m.up[d] = hand_lane(m.s, d, GY_LANE_COPY);
        m.down[d] = hand_lane(m.s, d, GY_LANE_COPY);
        m.together[d] = hand_lane(m.s, d, GY_LANE_COLLECTIVE);
    }
    int64_t rows = 100;
    snprintf(name, sizeof name, "%sframes", prefix);
    m.frames = hand_value(m.s, name, 2 * batches * rows, 60000);
    snprintf(name, sizeof name, "%sblurred", prefix);
    m.blurred = hand_value(m.s, name, 2 * batches * rows, 60000);
    m.gradient = hand_value(m.s, "gradient", 1000, 4000);
    for (uint32_t d = 0; d < 2; d++) {
        m.sum[d] = hand_instance(m.s, m.gradient, 1 + d, 0, 1000);
        m.s->instances.at[m.sum[d]].role = GY_ROLE_ACCUMULATOR;
    }
    for (int i = 0; i < 2 * batches; i++)
        add_batch(&m, i, (uint32_t)i % 2, rows);
    add_end(&m);
    gantry_error err = { 0 };
    ck_assert_msg(gy_sim_run(m.s, &err) == GANTRY_OK, "%s", err.text);
    m.s->bound = m.s->makespan / 2;
    return m.s;
}

char *example_export(const gantry_schedule *s, gantry_format format, size_t *length)
{
    gantry_error err = { 0 };
    char *text = NULL;
    size_t bytes = 0;
    gantry_status status = gantry_schedule_export(s, format, &text, &bytes, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    ck_assert_uint_eq(strlen(text), bytes);
    if (length)
        *length = bytes;
    return text;
}

char *example_trace(size_t ops)
{
    gy_text trace = { 0 };
    gy_text_add(&trace, "{\"traceEvents\": [{\"ph\": \"M\"}");
    for (size_t i = 0; i < ops; i++)
        gy_text_printf(&trace, ", {\"ph\": \"X\", \"pid\": 0, \"ts\": %zu, \"dur\": 0.5, \"args\": {\"op\": %zu}}", i,
                       i);
    gy_text_add(&trace, "]}");
    char *text = gy_text_take(&trace, NULL);
    ck_assert_ptr_nonnull(text);
    return text;
}

void example_save(char *path, size_t size, const char *name, const char *text)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, size, "%s/gantry-export-%ld-%s", folder ? folder : "/tmp", (long)getpid(), name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}
