/* SPDX-License-Identifier: Apache-2.0 */
/* Programs can say what graph files can: a graph that is built by calls has the normal form of the file that it equals.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(a)   (sizeof(a) / sizeof *(a))

static char folder[40];

/* ---- files that are used ---- */

static const char layer[] = "{\"gantry\": 1, \"params\": {\"rows\": 8, \"a\": 2, \"b\": \"a * 3 + devices\"},\n"
                            " \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [\"rows\"]},\n"
                            "  \"gain\": {\"dtype\": \"f32\", \"shape\": [1], \"init\": 4, \"class\": \"const\"},\n"
                            "  \"y\": {\"dtype\": \"f32\", \"shape\": [\"rows\"]}},\n"
                            " \"nodes\": [{\"id\": \"norm\", \"map\": {\"y\": \"x * s + g\"},\n"
                            "  \"args\": {\"x\": \"x\", \"y\": \"y\", \"g\": \"gain\", \"s\": \"step * b + a\"}},\n"
                            "  {\"id\": \"sub\", \"use\": \"twice.json\", \"with\": {\"v\": \"y\", \"n\": \"rows\"}}]}";
static const char twice[] = "{\"gantry\": 1, \"params\": {\"n\": 1},\n"
                            " \"buffers\": {\"v\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"init\": 0}},\n"
                            " \"kernels\": {\"mine\": {\"args\": [{\"name\": \"v\", \"access\": [\"readwrite\"]}]}},\n"
                            " \"nodes\": [{\"id\": \"scale\", \"kernel\": \"mine\", \"args\": {\"v\": \"v\"}}]}";

static void write_file(const char *name, const char *text)
{
    FILE *to = fopen(name, "w");
    ck_assert(to && fputs(text, to) >= 0 && fclose(to) == 0);
}

static void enter(void)
{
    strcpy(folder, "/tmp/gantry_program_XXXXXX");
    ck_assert(mkdtemp(folder) && chdir(folder) == 0);
    write_file("layer.json", layer);
    write_file("twice.json", twice);
}

static void leave(void)
{
    ck_assert(remove("layer.json") == 0 && remove("twice.json") == 0 && chdir("/") == 0 && rmdir(folder) == 0);
}

/* ---- the same graph, both ways ---- */

static char *checked_json(gantry_graph *g)
{
    gantry_error err;
    char line[1024];
    if (gantry_graph_check(g, &err)) {
        gantry_error_format(&err, line, sizeof line);
        ck_abort_msg("%s", line);
    }
    return json_of(g);
}

static void expect_same(gantry_graph *program, const char *text, const gantry_load_options *options)
{
    gantry_graph *file = graph_with(text, options);
    char *ours = checked_json(program), *theirs = json_of(file);
    ck_assert_str_eq(ours, theirs);
    check_stable(program);
    gantry_free(ours);
    gantry_free(theirs);
    gantry_graph_free(file);
    gantry_graph_free(program);
}

static gantry_buffer floats(gantry_graph *g, const char *name, int64_t n)
{
    return gantry_graph_buffer(g, name, GANTRY_F32, 1, SHAPE(n));
}

START_TEST(a_used_file_is_that_of_use)
{
    static const char text[] =
        "{\"gantry\": 1, \"name\": \"model\", \"buffers\": {\"h\": {\"dtype\": \"f32\", \"shape\": [24], \"split\": 4, "
        "\"init\": 1, \"output\": true}, \"flag\": {\"dtype\": \"i32\", \"shape\": [2], \"init\": 1}}, \"nodes\": [{"
        "\"repeat\": 5, \"index\": \"step\", \"nodes\": [{\"id\": \"layer[i]\", \"for\": {\"i\": 3}, \"use\": "
        "\"layer.json\", \"with\": {\"x\": \"h[i]\", \"y\": \"h{6*i+6:6*i+12}\", \"rows\": 6, \"a\": \"i + 2\"}, "
        "\"when\": {\"buffer\": \"flag{1:2}\"}}]}]}";
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    load.devices = 2;
    enter();
    gantry_graph *g = gantry_graph_new("model");
    gantry_buffer h = floats(g, "h", 24), flag = gantry_graph_buffer(g, "flag", GANTRY_I32, 1, SHAPE(2));
    gantry_buffer_split(g, h, 4);
    gantry_buffer_init_value(g, h, 1);
    gantry_buffer_output(g, h);
    gantry_buffer_init_value(g, flag, 1);
    gantry_graph_repeat(g, 5);
    gantry_graph_index(g, "step");
    for (int i = 0; i < 3; i++) {
        char id[20], a[20];
        snprintf(id, sizeof id, "layer[%d]", i);
        snprintf(a, sizeof a, "a=%d", i + 2);
        gantry_region when = gantry_rows(flag, 1, 2);
        const char *const params[] = { "rows=6", a };
        const gantry_use_buffer buffers[] = { { "x", gantry_part(h, i) },
                                              { "y", gantry_rows(h, 6 * i + 6, 6 * i + 12) } };
        gantry_use_options options = GANTRY_USE_OPTIONS_INIT;
        options.params = params;
        options.param_count = COUNT(params);
        options.buffers = buffers;
        options.buffer_count = COUNT(buffers);
        options.when = &when;
        options.devices = 2;
        gantry_graph_use(g, id, "layer.json", &options);
    }
    gantry_graph_repeat_end(g);
    expect_same(g, text, &load);
    leave();
}
END_TEST

/* Both uses read the file once, and their kernels, ids and buffers are their own. */
START_TEST(uses_without_an_id_are_named_by_the_file)
{
    enter();
    gantry_graph *g = gantry_graph_new("ids");
    gantry_node before = gantry_graph_work(g, "twice.scale"); /* as a use would call it */
    gantry_graph_use(g, NULL, "./twice.json", NULL);
    gantry_graph_use(g, NULL, "./twice.json", NULL);
    gantry_graph_use(g, "twice", "./twice.json", NULL);
    gantry_error err;
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "\"twice.scale\" is taken by an earlier node: ids are unique") != NULL, "%s",
                  err.text);
    ck_assert_uint_eq(before.id, 0);
    gantry_graph_free(g);

    g = gantry_graph_new("ids");
    for (int i = 0; i < 3; i++)
        gantry_graph_use(g, i < 2 ? NULL : "twice", "./twice.json", NULL);
    gantry_graph_work(g, "w");
    gantry_graph_work(g, "w"); /* ids of the program are numbered as before */
    char *json = checked_json(g);
    ck_assert_uint_eq(gantry_graph_find_node(g, "twice.scale").id, 0);
    ck_assert_uint_eq(gantry_graph_find_node(g, "twice#1.scale").id, 1);
    ck_assert_uint_eq(gantry_graph_find_node(g, "twice#2.scale").id, 2);
    ck_assert_uint_eq(gantry_graph_find_buffer(g, "twice#2.v").id, 2);
    ck_assert_uint_eq(gantry_graph_find_node(g, "w#1").id, 4);
    gantry_free(json);
    gantry_graph_free(g);
    leave();
}
END_TEST

/* ---- what nodes, loops and contents have ---- */

START_TEST(scalars_depend_on_loops_that_have_names)
{
    static const char text[] =
        "{\"gantry\": 1, \"name\": \"g\", \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [4], \"init\": 1}, "
        "\"y\": "
        "{\"dtype\": \"f32\", \"shape\": [4], \"output\": true}}, \"nodes\": [{\"repeat\": 3, \"index\": \"step\", "
        "\"nodes\": [{\"repeat\": 2, \"nodes\": [{\"id\": \"s\", \"kernel\": \"scale\", \"args\": {\"a\": \"step * 100 "
        "+ "
        "it\", \"x\": \"x\", \"y\": \"y\"}}]}]}, {\"id\": \"t\", \"kernel\": \"scale\", \"args\": {\"a\": \"1 / 4\", "
        "\"x\": "
        "\"x\", \"y\": \"y\"}}]}";
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = floats(g, "x", 4), y = floats(g, "y", 4);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_graph_repeat(g, 3);
    gantry_graph_index(g, "step");
    gantry_graph_repeat(g, 2);
    gantry_graph_index(g, "it");
    gantry_node s = gantry_graph_kernel(g, "s", "scale");
    gantry_node_scalar_expr(g, s, "a", "step * 100 + it");
    gantry_node_arg(g, s, "x", gantry_all(x));
    gantry_node_arg(g, s, "y", gantry_all(y));
    gantry_graph_repeat_end(g);
    gantry_graph_repeat_end(g);
    gantry_node t = gantry_graph_kernel(g, "t", "scale");
    gantry_node_scalar_expr(g, t, "a", "1 / 4");
    gantry_node_arg(g, t, "x", gantry_all(x));
    gantry_node_arg(g, t, "y", gantry_all(y));
    expect_same(g, text, NULL);
}
END_TEST

START_TEST(a_collective_has_its_algorithm)
{
    static const char text[] =
        "{\"gantry\": 1, \"name\": \"g\", \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [4], \"init\": 1, "
        "\"split\": 2, "
        "\"output\": true}}, \"nodes\": [{\"id\": \"c\", \"collective\": \"all_reduce\", \"op\": \"sum\", \"in\": "
        "[\"x[0]\", "
        "\"x[1]\"], \"out\": [\"x[0]\", \"x[1]\"], \"algorithm\": \"ring\"}, {\"id\": \"d\", \"collective\": "
        "\"all_reduce\", \"op\": \"sum\", \"in\": [\"x[0]\", \"x[1]\"], \"out\": [\"x[0]\", \"x[1]\"], \"algorithm\": "
        "\"auto\"}]}";
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = floats(g, "x", 4);
    gantry_buffer_split(g, x, 2);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, x);
    const gantry_region ranks[] = { gantry_part(x, 0), gantry_part(x, 1) };
    for (int i = 0; i < 2; i++) {
        gantry_node c = gantry_graph_collective(g, i ? "d" : "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, ranks, 2, ranks, 0);
        gantry_node_algorithm(g, c, i ? "auto" : "ring");
    }
    expect_same(g, text, NULL);
}
END_TEST

static gantry_contents contents_of(gantry_contents_kind kind, double first, double second)
{
    gantry_contents c = GANTRY_CONTENTS_INIT;
    c.kind = kind;
    c.seed = 7;
    c.first = first;
    c.second = second;
    return c;
}

static gantry_contents whole(gantry_contents_kind kind, const char *first, const char *second)
{
    gantry_contents c = contents_of(kind, 0, 1);
    c.exact[0] = first;
    c.exact[1] = second;
    return c;
}

START_TEST(contents_are_those_of_files)
{
    static const char text[] =
        "{\"gantry\": 1, \"name\": \"g\", \"buffers\": {"
        "\"x\": {\"dtype\": \"f32\", \"shape\": [8], \"init\": {\"iota\": {\"start\": 0.5, \"step\": -2}}, \"output\": "
        "true}, "
        "\"n\": {\"dtype\": \"i64\", \"shape\": [8], \"init\": -9007199254740993}, "
        "\"u\": {\"dtype\": \"u64\", \"shape\": [8], \"init\": \"18446744073709551615\"}}, \"nodes\": ["
        "{\"id\": \"a\", \"fill\": {\"to\": \"x{0:2}\", \"normal\": {\"seed\": 7, \"mean\": 3, \"deviation\": 0.5}}}, "
        "{\"id\": \"b\", \"fill\": {\"to\": \"n\", \"iota\": {\"start\": 9007199254740993, \"step\": 3}}}, "
        "{\"id\": \"c\", \"fill\": {\"to\": \"n{1:2}\", \"random\": {\"seed\": 7, \"low\": -3, \"high\": "
        "9007199254740992}}}, "
        "{\"id\": \"d\", \"fill\": {\"to\": \"u\", \"value\": 9007199254740995}}]}";
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = floats(g, "x", 8), n = gantry_graph_buffer(g, "n", GANTRY_I64, 1, SHAPE(8)),
                  u = gantry_graph_buffer(g, "u", GANTRY_U64, 1, SHAPE(8));
    gantry_contents a = contents_of(GANTRY_IOTA, 0.5, -2), b = whole(GANTRY_VALUE, "-9007199254740993", NULL),
                    c = whole(GANTRY_VALUE, "18446744073709551615", NULL), d = contents_of(GANTRY_NORMAL, 3, 0.5),
                    e = whole(GANTRY_IOTA, "9007199254740993", "3"),
                    f = whole(GANTRY_UNIFORM, "-3", "9007199254740992"),
                    h = whole(GANTRY_VALUE, "2 * 4503599627370497 + 1", NULL);
    gantry_buffer_init_with(g, x, &a);
    gantry_buffer_output(g, x);
    gantry_buffer_init_with(g, n, &b);
    gantry_buffer_init_with(g, u, &c);
    gantry_graph_fill_with(g, "a", gantry_rows(x, 0, 2), &d);
    gantry_graph_fill_with(g, "b", gantry_all(n), &e);
    gantry_graph_fill_with(g, "c", gantry_rows(n, 1, 2), &f);
    gantry_graph_fill_with(g, "d", gantry_all(u), &h);
    expect_same(g, text, NULL);
}
END_TEST

/* ---- mistakes ---- */

/* The error of a graph with one use of the file, as people see it; lines and folders of this program are left out. */
static const char *error_of_use(const char *path, const gantry_use_options *options, gantry_graph *g)
{
    static char line[1024];
    gantry_error err;
    gantry_graph_at(g, "here.c", 7);
    (gantry_graph_use)(g, "layer", path, options);
    ck_assert_int_ne(gantry_graph_check(g, &err), GANTRY_OK);
    gantry_error_format(&err, line, sizeof line);
    gantry_graph_free(g);
    return line;
}

static const char *error_with_buffers(size_t count, const gantry_use_buffer *buffers, gantry_graph *g)
{
    gantry_use_options options = GANTRY_USE_OPTIONS_INIT;
    options.buffers = buffers;
    options.buffer_count = count;
    options.devices = 1;
    return error_of_use("twice.json", &options, g);
}

static const char *error_with_param(const char *path, const char *param)
{
    gantry_use_options options = GANTRY_USE_OPTIONS_INIT;
    options.params = &param;
    options.param_count = 1;
    return error_of_use(path, &options, gantry_graph_new("g"));
}

START_TEST(mistakes_of_the_call_have_the_line_of_the_program)
{
    enter();
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = floats(g, "x", 1);
    gantry_region halo = gantry_halo(gantry_all(x), 1, 1);
    ck_assert_str_eq(error_with_buffers(1, (gantry_use_buffer[]){ { "v", halo } }, g),
                     "here.c:7: use of \"twice.json\": gives a halo for buffer \"v\": give a whole buffer, parts or "
                     "rows");
    g = gantry_graph_new("g");
    x = floats(g, "x", 1);
    ck_assert_str_eq(error_with_buffers(1, (gantry_use_buffer[]){ { "vv", gantry_all(x) } }, g),
                     "here.c:7: use of \"twice.json\": twice.json has no buffer \"vv\" (did you mean \"v\"?)");
    g = gantry_graph_new("g");
    x = floats(g, "x", 1);
    ck_assert_str_eq(error_with_buffers(2, (gantry_use_buffer[]){ { "v", gantry_all(x) }, { "v", gantry_all(x) } }, g),
                     "here.c:7: use of \"twice.json\": gives something for buffer \"v\" twice; give it once");
    g = gantry_graph_new("g");
    x = floats(g, "x", 1);
    ck_assert_str_eq(error_with_buffers(1, (gantry_use_buffer[]){ { "v", gantry_rows(x, 0, 2) } }, g),
                     "here.c:7: x{0:2} is out of range: \"x\" has 1 rows, and the first may not be behind the last");
    ck_assert_str_eq(error_of_use("", NULL, gantry_graph_new("g")),
                     "here.c:7: a use of another graph has no file; give the name of its file, and an id or NULL");
    const char *text = error_of_use("none.json", NULL, gantry_graph_new("g"));
    ck_assert_msg(strstr(text, "here.c:7: use of \"none.json\": ") == text && strstr(text, "No such file"), "%s", text);
    leave();
}
END_TEST

START_TEST(mistakes_of_the_file_have_both_places)
{
    enter();
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = floats(g, "x", 5);
    ck_assert_str_eq(error_with_buffers(1, (gantry_use_buffer[]){ { "v", gantry_all(x) } }, g),
                     "twice.json:2:19: /buffers/v: \"v\" stands for \"x\", which is 5, not 1: give params so that the "
                     "shapes are the same (used as \"layer\" at here.c:7)");
    ck_assert_str_eq(error_with_param("twice.json", "m=3"),
                     "twice.json:1:25: /params: --param m: the graph has no param of that name; it has \"n\" "
                     "(used as \"layer\" at here.c:7)");
    const char *text = error_of_use("layer.json", NULL, gantry_graph_new("g"));
    ck_assert_msg(strstr(text, "layer.json:1:50: /params/b: \"devices\" is used as a number, and how many there are is "
                               "not known") == text,
                  "%s", text);
    ck_assert_msg(strstr(text, " (used as \"layer\" at here.c:7)") != NULL, "%s", text);
    write_file("twice.json", "{\"gantry\": 1, \"buffers\": }");
    text = error_of_use("twice.json", NULL, gantry_graph_new("g"));
    ck_assert_msg(strstr(text, "twice.json:1:") == text && strstr(text, "(used as \"layer\" at here.c:7)"), "%s", text);
    write_file("twice.json", "{\"gantry\": 1, \"buffers\": {}, \"nodes\": [{\"id\": \"n\", \"use\": \"twice.json\"}]}");
    ck_assert_str_eq(
        error_of_use("twice.json", NULL, gantry_graph_new("g")),
        "twice.json:1:59: /nodes/0/use: \"twice.json\" uses itself: nodes cannot be made without end (used "
        "as \"layer.n\" at twice.json:1) (used as \"layer\" at here.c:7)");
    leave();
}
END_TEST

/* A mistake that is found when all is read: nothing has written what a node of the used file reads. */
START_TEST(mistakes_that_the_whole_shows_have_both_places)
{
    enter();
    write_file("twice.json", "{\"gantry\": 1, \"buffers\": {\"v\": {\"dtype\": \"f32\", \"shape\": [2]}},\n"
                             " \"nodes\": [{\"id\": \"n\", \"map\": {\"v\": \"v * 2\"}, \"args\": {\"v\": \"v\"}}]}");
    const char *text = error_of_use("twice.json", NULL, gantry_graph_new("g"));
    ck_assert_msg(strstr(text, "twice.json:") == text, "%s", text);
    ck_assert_msg(strstr(text, "\"layer.v\"") && strstr(text, " (used as \"layer\" at here.c:7)"), "%s", text);
    leave();
}
END_TEST

/* Reading the file sets the place of calls and of mistakes; behind it that is the program's again. */
START_TEST(the_line_of_the_program_stays)
{
    gantry_error err;
    enter();
    gantry_graph *g = gantry_graph_at(gantry_graph_new("g"), "here.c", 9);
    (gantry_graph_use)(g, "u", "twice.json", NULL);
    (gantry_buffer_output)(g, (gantry_buffer){ .id = 9 });
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.file, "here.c");
    ck_assert_int_eq(err.line, 9);
    gantry_graph_free(g);
    leave();
}
END_TEST

int main(void)
{
    const TTest *const cases[] = {
        a_used_file_is_that_of_use,
        scalars_depend_on_loops_that_have_names,
        a_collective_has_its_algorithm,
        contents_are_those_of_files,
        uses_without_an_id_are_named_by_the_file,
        mistakes_of_the_call_have_the_line_of_the_program,
        mistakes_of_the_file_have_both_places,
        mistakes_that_the_whole_shows_have_both_places,
        the_line_of_the_program_stays,
    };
    return RUN_CASES("program", cases);
}
