/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char folder[64], cache[80];

void make_folder(void)
{
    strcpy(folder, "/tmp/gantry-code-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", cache, 1);
    unsetenv("CC");
}

void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

int cached(void)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/gantry", cache);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        count += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

const char triple_c[] = "#include <gantry/kernel.h>\n"
                        "#include \"factor.h\"\n"
                        "gantry_status triple(const gantry_launch *l);\n"
                        "gantry_status triple(const gantry_launch *l)\n"
                        "{\n"
                        "    const float *x = l->arg[0].data;\n"
                        "    float *y = l->arg[1].data;\n"
                        "    for (long i = 0; i < l->arg[0].rows; i++) y[i] = FACTOR * x[i];\n"
                        "    return GANTRY_OK;\n"
                        "}\n";

static const char graph_json[] =
    "{ \"gantry\": 1, \"name\": \"user\","
    "  \"buffers\": { \"x\": { \"dtype\": \"f32\", \"shape\": [8], \"init\": \"iota\" },"
    "                 \"y\": { \"dtype\": \"f32\", \"shape\": [8], \"output\": true } },"
    "  \"kernels\": { \"triple\": { \"host\": \"%s\", \"args\": ["
    "      { \"name\": \"x\", \"access\": \"read\", \"dtype\": \"f32\" },"
    "      { \"name\": \"y\", \"access\": \"write\", \"dtype\": \"f32\" } ] } },"
    "  \"nodes\": [ { \"id\": \"t\", \"kernel\": \"triple\", \"args\": { \"x\": \"x\", \"y\": \"y\" } } ] }";

gantry_schedule *schedule_of(const char *file)
{
    char text[1024];
    snprintf(text, sizeof text, graph_json, file);
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "user.json", folder, &options, MUST_ERR));
    gantry_schedule *s = build_schedule(g, 1);
    gantry_graph_free(g);
    uint32_t xs = build_instance(s, 0, 1, 0, 8), ys = build_instance(s, 1, 1, 0, 8);
    build_copy(s, 0, build_input(s, 0), xs);
    build_op(s, GY_OP_LAUNCH, 0, 0);
    build_use_all(s, xs, GANTRY_READ);
    build_use_all(s, ys, GANTRY_WRITE);
    build_copy(s, 0, ys, build_output(s, 1));
    return s;
}

gantry_status try_new(gantry_run **run, gantry_schedule *s, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.allow_code = 1;
    return gantry_run_new(run, s, &options, err);
}

void expect_product(gantry_run *run, float factor)
{
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, (gantry_buffer){ .id = 1 }, &host, &bytes, MUST_ERR));
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(((const float *)host)[i], factor * (float)i);
}

void expect_factor(const char *file, float factor)
{
    gantry_schedule *s = schedule_of(file);
    gantry_run *run = NULL;
    MUST(try_new(&run, s, MUST_ERR));
    expect_product(run, factor);
    gantry_run_free(run);
    gantry_schedule_free(s);
}

void expect_refused(const char *file, gantry_status status, const char *begin, const char *within)
{
    gantry_schedule *s = schedule_of(file);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    char path[256];
    if (strcmp(file, "gone.c") == 0) { /* the reader of the graph wants it to be there */
        snprintf(path, sizeof path, "%s/gone.c", folder);
        ck_assert_int_eq(unlink(path), 0);
    }
    snprintf(path, sizeof path, begin, folder);
    ck_assert_int_eq(try_new(&run, s, &err), status);
    ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s\ndoes not begin with\n%s", err.text, path);
    ck_assert_msg(strstr(err.text, within) != NULL, "%s\ndoes not contain\n%s", err.text, within);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    gantry_schedule_free(s);
}
