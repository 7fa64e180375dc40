/* SPDX-License-Identifier: Apache-2.0 */
/* External buffers: a graph whose inputs and outputs are kept in memories of devices gives what it gives with all of
 * them in host memory, wherever they are, by any policy, with little memory too. On the host back end, whose memories
 * are all host memory; the checker runs on every schedule. */
#include "schedule/schedule.h"
#include "support/run_suite.h"

#include <check.h>
#include <gantry/gantry.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, DEVICES = 3 };

typedef struct subject {
    const char *file;
    const char *params[6];
} subject;
static const subject subjects[] = {
    { "saxpy", { "n=1003" } },
    { "image_blur", { "n=5", "height=30", "width=50" } },
    { "jacobi", { "n=37", "steps=5" } },
    { "reduce_sum", { "n=10007" } },
};
static const char *const policies[] = { NULL, "heft", "owner", "round-robin", "min-min", "cpop" };

/* Inputs lose their init, since both graphs are bound to the same arrays; `homes`: some buffers are kept elsewhere. */
static gantry_graph *load(const subject *s, bool homes)
{
    char path[512], home[16];
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.params = s->params;
    while (options.param_count < 6 && s->params[options.param_count])
        options.param_count++;
    snprintf(path, sizeof path, "%s/graphs/%s.json", GANTRY_SOURCE_DIR, s->file);
    json_t *root = json_load_file(path, 0, NULL), *b;
    const char *name;
    ck_assert_ptr_nonnull(root);
    json_object_foreach(json_object_get(root, "buffers"), name, b)
    {
        const char *cls = json_string_value(json_object_get(b, "class"));
        bool input = cls ? !strcmp(cls, "input") : json_object_get(b, "init") != NULL;
        if (input) {
            json_object_del(b, "init");
            json_object_set_new(b, "class", json_string("input"));
        }
        bool can = input || ((!cls || !strcmp(cls, "temp")) && json_is_true(json_object_get(b, "output")));
        snprintf(home, sizeof home, "dev%d", rand() % (DEVICES + 1));
        if (homes && can && rand() % 3)
            json_object_set_new(b, "external", json_string(strcmp(home, "dev3") ? home : "host"));
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    gantry_status status = gantry_graph_parse(&g, text, strlen(text), s->file, NULL, &options, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    free(text);
    return g;
}

typedef struct arrays {
    void *in[MOST], *out[MOST];
} arrays;

static gantry_buffer_info info_of(const gantry_graph *g, uint32_t b)
{
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_buffer_info(g, (gantry_buffer){ .id = b }, &info, &err), GANTRY_OK);
    return info;
}

/* Small whole numbers of the type, so that no sum depends on its order. */
static void fill(void *at, const gantry_buffer_info *info)
{
    size_t size = gantry_dtype_size(info->dtype);
    for (size_t i = 0; i < info->bytes / size; i++) {
        float f = (float)(rand() % 5 - 2);
        int32_t n = rand() % 5;
        if (info->dtype == GANTRY_F32)
            memcpy((char *)at + i * size, &f, size);
        else if (size == sizeof n)
            memcpy((char *)at + i * size, &n, size);
        else
            ((unsigned char *)at)[i * size] = (unsigned char)n;
    }
}

static void make(arrays *a, const gantry_graph *g)
{
    ck_assert_uint_le(gantry_graph_buffer_count(g), MOST);
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = info_of(g, b);
        a->in[b] = calloc(1, info.bytes + 1);
        a->out[b] = calloc(1, info.bytes + 1);
        fill(a->in[b], &info);
    }
}

static void drop(arrays *a)
{
    for (int i = 0; i < MOST; i++) {
        free(a->in[i]);
        free(a->out[i]);
    }
}

static gantry_schedule *plan(gantry_graph *g, const char *policy, const char *memory)
{
    gantry_error err = { 0 };
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.policy = policy;
    options.max_memory = memory;
    ck_assert_int_eq(gantry_machine_virtual(&m, DEVICES, &err), GANTRY_OK);
    gantry_status status = gantry_schedule_new(&s, g, m, &options, &err);
    ck_assert_msg(status == GANTRY_OK || (memory && status == GANTRY_E_CAPACITY), "%s", err.text);
    gantry_machine_free(m);
    return s;
}

static void run(gantry_schedule *s, const gantry_graph *g, arrays *a)
{
    gantry_error err = { 0 };
    gantry_run *r = NULL;
    uint64_t ticket;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    ck_assert_int_eq(gantry_run_new(&r, s, &options, &err), GANTRY_OK);
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = info_of(g, b);
        if (info.cls == GANTRY_INPUT)
            ck_assert_msg(gantry_run_bind(r, (gantry_buffer){ .id = b }, a->in[b], info.bytes, &err) == GANTRY_OK, "%s",
                          err.text);
        if (info.output)
            ck_assert_int_eq(gantry_run_bind_output(r, (gantry_buffer){ .id = b }, a->out[b], info.bytes, &err),
                             GANTRY_OK);
    }
    for (int start = 0; start < 2; start++)
        ck_assert_msg(!gantry_run_start(r, &ticket, &err) && !gantry_run_wait(r, ticket, &err), "%s", err.text);
    gantry_run_free(r);
}

/* No instance of a kept buffer is in another memory than it names. */
static void look(const gantry_schedule *s)
{
    for (size_t i = 0; i < s->instances.count; i++) {
        const gy_instance *in = &s->instances.at[i];
        const gy_buffer *b = &s->graph->buffers.at[s->values.at[in->value].buffer];
        if (in->role == GY_ROLE_EXTERNAL)
            ck_assert_uint_eq(in->memory,
                              b->external && strcmp(b->external, "host") ? (uint32_t)(b->external[3] - '0') + 1 : 0);
    }
}

START_TEST(same_results)
{
    const subject *sub = &subjects[_i % 4];
    srand((unsigned)_i);
    gantry_graph *g = load(sub, false), *kept = load(sub, true);
    arrays want = { 0 }, got = { 0 };
    make(&want, g);
    make(&got, g);
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++)
        memcpy(got.in[b], want.in[b], info_of(g, b).bytes);
    gantry_schedule *s = plan(g, NULL, NULL);
    run(s, g, &want);
    gantry_schedule_free(s);
    const char *limits[] = { NULL, "dev0=20KiB,dev1=12KiB" };
    for (int k = 0; k < 2 && (s = plan(kept, policies[(_i / 4) % 6], limits[k])); k++) {
        look(s);
        run(s, kept, &got);
        for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++)
            ck_assert_int_eq(memcmp(want.out[b], got.out[b], info_of(g, b).bytes), 0);
        gantry_schedule_free(s);
    }
    drop(&want);
    drop(&got);
    gantry_graph_free(g);
    gantry_graph_free(kept);
}
END_TEST

static const char text[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[8],\"class\":\"input\",\"external\":\"gpu7\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[8],\"output\":true}},"
    "\"nodes\":[{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}";

START_TEST(no_such_memory)
{
    gantry_error err = { 0 };
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    ck_assert_int_eq(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_schedule_new(&s, g, m, NULL, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "\"x\" is external, kept in \"gpu7\"") &&
                      strstr(err.text, "no memory and no device"),
                  "%s", err.text);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("external");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, same_results, 0, 4 * 6 * 2);
    tcase_add_test(tests, no_such_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
