/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that a graph file brings along as C code. */
#include "build.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], cache[80];

static void make_folder(void)
{
    strcpy(folder, "/tmp/gantry-code-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", cache, 1);
    unsetenv("CC");
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static int cached(void)
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

static const char triple_c[] = "#include <gantry/kernel.h>\n"
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

/* The schedule of a graph whose kernel is in `file`. */
static gantry_schedule *schedule_of(const char *file)
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

static gantry_status try_new(gantry_run **run, gantry_schedule *s, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.allow_code = 1;
    return gantry_run_new(run, s, &options, err);
}

static void expect_factor(const char *file, float factor)
{
    gantry_schedule *s = schedule_of(file);
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(try_new(&run, s, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, (gantry_buffer){ .id = 1 }, &host, &bytes, MUST_ERR));
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(((const float *)host)[i], factor * (float)i);
    gantry_run_free(run);
    gantry_schedule_free(s);
}

START_TEST(c_files_are_compiled_once)
{
    make_folder();
    write_file("triple.c", triple_c);
    write_file("factor.h", "#define FACTOR 3\n");
    expect_factor("triple.c", 3);
    ck_assert_int_eq(cached(), 1);
    expect_factor("triple.c", 3);
    ck_assert_int_eq(cached(), 1);
    write_file("factor.h", "#define FACTOR 5\n"); /* an included file counts too */
    expect_factor("triple.c", 5);
    ck_assert_int_eq(cached(), 2);
    setenv("CC", "false", 1); /* a compiler that cannot even read */
    gantry_schedule *s = schedule_of("triple.c");
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(try_new(&run, s, &err), GANTRY_E_GRAPH);
    setenv("CC", "no-such-compiler -O2", 1);
    ck_assert_int_eq(try_new(&run, s, &err), GANTRY_E_IO);
    ck_assert_str_eq(err.text, "cannot start the C compiler no-such-compiler: No such file or directory");
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

START_TEST(shared_objects_are_loaded)
{
    char command[512];
    make_folder();
    write_file("triple.c", triple_c);
    write_file("factor.h", "#define FACTOR 7\n");
    snprintf(command, sizeof command, "cc -shared -fPIC -I%s/include -o %s/triple.so %s/triple.c", GANTRY_SOURCE_DIR,
             folder, folder);
    ck_assert_int_eq(system(command), 0);
    expect_factor("triple.so", 7);
    ck_assert_int_eq(cached(), 0);
    remove_folder();
}
END_TEST

static void expect_refused(const char *file, gantry_status status, const char *begin, const char *within)
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

START_TEST(mistakes_in_code_are_told)
{
    make_folder();
    write_file("broken.c", "#include <gantry/kernel.h>\nint x = ;\n");
    write_file("other.c", "int other(void);\nint other(void) { return 1; }\n");
    write_file("bad.so", "this is no shared object");
    expect_refused("broken.c", GANTRY_E_GRAPH, "%s/broken.c does not compile: ", "expected expression");
    expect_refused("other.c", GANTRY_E_GRAPH, "%s/other.c has no function \"triple\" for kernel \"triple\"; define",
                   "\"gantry_status triple(const gantry_launch *)\", not static, or name another with \"entry\"");
    write_file("gone.c", triple_c);
    expect_refused("gone.c", GANTRY_E_IO, "cannot open %s/gone.c: ", "No such file");
    expect_refused("bad.so", GANTRY_E_GRAPH, "cannot load %s/bad.so: ", "file too short");
    remove_folder();
}
END_TEST

START_TEST(code_needs_permission)
{
    make_folder();
    write_file("triple.c", triple_c);
    gantry_schedule *s = schedule_of("triple.c");
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_run_new(&run, s, NULL, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(
        strstr(err.text, "which is not compiled or loaded unless you say so; use --allow-code (allow_code = 1)"), "%s",
        err.text);
    ck_assert_str_eq(err.where, "/nodes/0");
    gantry_schedule_free(s);
    remove_folder();
}
END_TEST

/* Somebody else could put code there that we would load. */
START_TEST(a_cache_that_others_can_write_to_is_refused)
{
    char path[128];
    make_folder();
    write_file("triple.c", triple_c);
    write_file("factor.h", "#define FACTOR 3\n");
    mkdir(cache, 0700);
    snprintf(path, sizeof path, "%s/gantry", cache);
    mkdir(path, 0700);
    chmod(path, 0777);
    expect_refused("triple.c", GANTRY_E_IO,
                   "the cache folder %s/cache/gantry is not a folder that only you can write to", "set XDG_CACHE_HOME");
    remove_folder();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("user code");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, c_files_are_compiled_once);
    tcase_add_test(all, shared_objects_are_loaded);
    tcase_add_test(all, mistakes_in_code_are_told);
    tcase_add_test(all, code_needs_permission);
    tcase_add_test(all, a_cache_that_others_can_write_to_is_refused);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
