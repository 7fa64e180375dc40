/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that a graph file brings along as C code. */
#include "code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    ck_assert_str_eq(err.text,
                     "cannot start the C compiler no-such-compiler: No such file or directory; kernels in C need one: "
                     "install it, or name it by the environment variable CC");
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

START_TEST(mistakes_in_code_are_told)
{
    make_folder();
    write_file("broken.c", "#include <gantry/kernel.h>\nint x = ;\n");
    write_file("other.c", "int other(void);\nint other(void) { return 1; }\n");
    write_file("bad.so", "this is no shared object");
    expect_refused("broken.c", GANTRY_E_GRAPH, "%s/broken.c does not compile: ", "expected expression");
    expect_refused("other.c", GANTRY_E_GRAPH, "%s/other.c has no function \"triple\" for kernel \"triple\"; define",
                   "\"gantry_status triple(const gantry_launch *)\", not static, or name another with \"entry\"");
    /* The preprocessor says so behind what it made of the text before. */
    write_file("lost.c", "#include <gantry/kernel.h>\n#include \"nowhere.h\"\n");
    expect_refused("lost.c", GANTRY_E_GRAPH, "%s/lost.c does not compile: ", "nowhere.h: No such file");
    write_file("gone.c", triple_c);
    expect_refused("gone.c", GANTRY_E_IO, "cannot open %s/gone.c: ", "No such file");
    expect_refused("bad.so", GANTRY_E_GRAPH, "cannot load %s/bad.so: ", "file too short");
    remove_folder();
}
END_TEST

/* Words for the compiler, smuggled in behind the name of the file, of which tests make "host". */
#define WITH(words) "\", \"compile\": { " words " }, \"entry\": \"triple"

START_TEST(words_for_the_compiler)
{
    char path[128];
    make_folder();
    snprintf(path, sizeof path, "%s/more", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    write_file("more/elsewhere.h", "#define FACTOR 11\n#include <math.h>\n");
    write_file("factor.h", "");
    write_file("triple.c", triple_c);
    expect_factor("triple.c" WITH("\"flags\": [\"-DFACTOR=9\"]"), 9);
    expect_factor(
        "triple.c" WITH("\"flags\": [\"-DFACTOR=7\", \"-O0\", \"-ffp-contract=fast\"], \"libraries\": [\"m\"]"), 7);
    ck_assert_int_eq(cached(), 2); /* one file, compiled in two ways */
    expect_factor("triple.c" WITH("\"flags\": [\"-DFACTOR=9\"]"), 9);
    ck_assert_int_eq(cached(), 2);
    write_file("factor.h", "#include \"elsewhere.h\"\n");
    expect_factor("triple.c" WITH("\"include\": [\"more\"]"), 11);
    expect_refused("triple.c" WITH("\"flags\": []"), GANTRY_E_GRAPH,
                   "%s/triple.c does not compile: ", "elsewhere.h: No such file");
    expect_refused("triple.c" WITH("\"include\": [\"more\"], \"libraries\": [\"there_is_no_such_library\"]"),
                   GANTRY_E_GRAPH, "%s/triple.c does not compile: ", "-lthere_is_no_such_library");
    expect_refused("triple.c" WITH("\"include\": [\"more\"], \"flags\": [\"-Werror\", \"-DFACTOR=3\"]"), GANTRY_E_GRAPH,
                   "%s/triple.c does not compile: ", "\"FACTOR\" redefined");
    remove_folder();
}
END_TEST

/* Kernels in one file that are compiled in two ways are two objects. */
START_TEST(one_file_in_two_ways)
{
    static const char text[] =
        "{ \"gantry\": 1, \"buffers\": { \"x\": { \"dtype\": \"f32\", \"shape\": [8], \"init\": \"iota\" },"
        "  \"y\": { \"dtype\": \"f32\", \"shape\": [8] }, \"z\": { \"dtype\": \"f32\", \"shape\": [8], \"output\": "
        "true } },"
        "  \"kernels\": { \"five\": { \"host\": \"triple.c\", \"entry\": \"triple\", \"compile\": { \"flags\": "
        "[\"-DFACTOR=5\"] },"
        "    \"args\": [{ \"name\": \"x\", \"access\": \"read\" }, { \"name\": \"y\", \"access\": \"write\" }] },"
        "  \"two\": { \"host\": \"triple.c\", \"entry\": \"triple\", \"compile\": { \"flags\": [\"-DFACTOR=2\"] },"
        "    \"args\": [{ \"name\": \"x\", \"access\": \"read\" }, { \"name\": \"y\", \"access\": \"write\" }] } },"
        "  \"nodes\": [{ \"id\": \"a\", \"kernel\": \"five\", \"args\": { \"x\": \"x\", \"y\": \"y\" } },"
        "    { \"id\": \"b\", \"kernel\": \"two\", \"args\": { \"x\": \"y\", \"y\": \"z\" } }] }";
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL, *again = NULL;
    gantry_machine *machine = NULL;
    gantry_schedule *s = NULL;
    gantry_run *run = NULL;
    const void *host = NULL;
    char *normal = NULL, *twice = NULL;
    size_t length = 0;
    options.allow_code = 1;
    make_folder();
    write_file("factor.h", "");
    write_file("triple.c", triple_c);
    MUST(gantry_graph_parse(&g, text, sizeof text - 1, NULL, folder, &options, MUST_ERR));
    MUST(gantry_machine_virtual(&machine, 1, MUST_ERR));
    MUST(gantry_schedule_new(&s, g, machine, NULL, MUST_ERR));
    MUST(try_new(&run, s, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, gantry_graph_find_buffer(g, "z"), &host, NULL, MUST_ERR));
    ck_assert_float_eq(((const float *)host)[7], 70);
    MUST(gantry_graph_json(g, &normal, &length, MUST_ERR)); /* the normal form has the words, and is one */
    ck_assert_msg(strstr(normal, "\"compile\": { \"flags\": [\"-DFACTOR=5\"] }"), "%s", normal);
    MUST(gantry_graph_parse(&again, normal, length, NULL, folder, &options, MUST_ERR));
    MUST(gantry_graph_json(again, &twice, &length, MUST_ERR));
    ck_assert_str_eq(twice, normal);
    gantry_free(normal);
    gantry_free(twice);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(machine);
    gantry_graph_free(again);
    gantry_graph_free(g);
    remove_folder();
}
END_TEST

static int times_heard;

static void hear(void *user, const char *text, size_t length)
{
    ck_assert_uint_eq(strlen(text), length);
    snprintf(user, 8000, "%s", text);
    times_heard++;
}

/* The words of cc on its own, with the same flags. */
static void say_by_itself(char *to, size_t size, const char *name)
{
    char command[600];
    snprintf(command, sizeof command, "cc -std=gnu11 -O2 -fPIC -I%s/include -shared -o /dev/null %s/%s -lm 2>&1",
             GANTRY_SOURCE_DIR, folder, name);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    to[fread(to, 1, size - 1, pipe)] = '\0';
    pclose(pipe);
}

static gantry_status run_hearing(const char *name, char *heard, gantry_error *err)
{
    gantry_run *run = NULL;
    gantry_schedule *s = schedule_of(name);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.allow_code = 1;
    options.compiler_output = hear;
    options.user = heard;
    times_heard = 0;
    gantry_status status = gantry_run_new(&run, s, &options, err);
    gantry_run_free(run);
    gantry_schedule_free(s);
    return status;
}

/* Byte for byte, with carets and lines beyond what an error has room for; warnings too, once. */
START_TEST(compilers_are_heard)
{
    char alone[8000], heard[8000] = "";
    gantry_error err = { 0 };
    make_folder();
    write_file("broken.c", "int a = one_thing_that_is_nowhere;\nint b = another_thing_that_is_nowhere;\n"
                           "int c = a_third_thing_that_is_nowhere;\nint d = and_the_last_of_them_is_nowhere_either;\n");
    ck_assert_int_eq(run_hearing("broken.c", heard, &err), GANTRY_E_GRAPH);
    say_by_itself(alone, sizeof alone, "broken.c");
    ck_assert_str_eq(heard, alone);
    ck_assert_uint_gt(strlen(heard), 512);
    ck_assert_msg(strstr(err.text, "/broken.c does not compile: the output of its compiler says why"), "%s", err.text);
    write_file("lost.c", "#include \"nowhere.h\"\n");
    ck_assert_int_eq(run_hearing("lost.c", heard, &err), GANTRY_E_GRAPH);
    say_by_itself(alone, sizeof alone, "lost.c");
    ck_assert_str_eq(heard, alone);
    write_file("factor.h", "#define FACTOR 3\n#warning so it is\n");
    write_file("triple.c", triple_c);
    ck_assert_int_eq(run_hearing("triple.c", heard, &err), GANTRY_OK);
    ck_assert_msg(times_heard == 1 && strstr(heard, "#warning so it is"), "%d: %s", times_heard, heard);
    ck_assert_int_eq(run_hearing("triple.c", heard, &err), GANTRY_OK); /* from the cache */
    ck_assert_int_eq(times_heard, 0);
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
    tcase_add_test(all, compilers_are_heard);
    tcase_add_test(all, words_for_the_compiler);
    tcase_add_test(all, one_file_in_two_ways);
    tcase_add_test(all, code_needs_permission);
    tcase_add_test(all, a_cache_that_others_can_write_to_is_refused);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
