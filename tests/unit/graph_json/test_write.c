/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form: of files, of the documentation's examples, and of graphs that programs build. */
#include "base/file.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t files;

static void check_file(const char *path)
{
    gantry_graph *g = NULL;
    gantry_error err;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    options.devices = 4; /* what graphs that count them are written for */
    char line[1024];
    if (gantry_graph_load(&g, path, &options, &err)) {
        gantry_error_format(&err, line, sizeof line);
        ck_abort_msg("%s", line);
    }
    check_stable(g);
    gantry_graph_free(g);
    files++;
}

START_TEST(all_graphs)
{
    files = 0;
    each_json("graphs", check_file);
    each_json("graphs/reference", check_file);
    ck_assert_uint_ge(files, 11);
}
END_TEST

/* Complete graphs in the documentation begin with {"gantry": 1; what does not is a fragment. */
START_TEST(examples_of_the_documentation)
{
    char *page, *at, *end;
    size_t length, graphs = 0, blocks = 0;
    gantry_error err;
    ck_assert_int_eq(gy_file_read(&page, &length, GANTRY_SOURCE_DIR "/docs/graph-format.md", &err), GANTRY_OK);
    for (at = strstr(page, "```json\n"); at; at = strstr(end, "```json\n")) {
        at += 8;
        end = strstr(at, "```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        blocks++;
        if (strstr(at, "\"gantry\": 1")) {
            gantry_graph *g = graph_of(at);
            check_stable(g);
            gantry_graph_free(g);
            graphs++;
        } else {
            ck_assert_msg(strncmp(at - 8 - 12, "(fragment)\n", 11) == 0 ||
                              strncmp(at - 8 - 11, "(fragment)\n", 11) == 0,
                          "a block that is no graph is not marked (fragment): %.60s", at);
        }
        end++;
    }
    ck_assert_uint_ge(graphs, 8);
    ck_assert_uint_ge(blocks, graphs);
    gy_free(page);
}
END_TEST

static gantry_status nothing(const gantry_launch *launch)
{
    (void)launch;
    return GANTRY_OK;
}

/* A graph that a program builds, on a page: functions become work, its own kernel a manifest. */
START_TEST(program)
{
    static const gantry_kernel_arg arg[] = {
        { .name = "x",
          .access = GANTRY_READ,
          .accesses = GANTRY_ACCESS_BIT(GANTRY_READ) | GANTRY_ACCESS_BIT(GANTRY_SUM),
          .same = 'a',
          .summary = "" },
        { .name = "k", .scalar = 1, .optional = 1, .fallback = 2.5, .summary = "" },
        { .name = "z", .access = GANTRY_READ, .optional = 1, .summary = "" },
    };
    static const gantry_kernel mine = { .struct_size = sizeof mine,
                                        .name = "mine",
                                        .summary = "",
                                        GANTRY_KERNEL_ARGS(arg),
                                        .flags = GANTRY_KERNEL_VARIADIC,
                                        .flops = "2*x.size",
                                        .host = nothing };
    gantry_graph *g = gantry_graph_new("prog\"ram");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, (int64_t[]){ 8, 2 });
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, (int64_t[]){ 8, 2 });
    gantry_buffer_split(g, x, 2);
    gantry_buffer_split(g, y, 2);
    gantry_buffer_init_uniform(g, x, UINT64_MAX, -1, 1);
    gantry_buffer_set_class(g, y, GANTRY_STATE);
    gantry_buffer_init_value(g, y, -0.0);
    gantry_graph_add_kernel(g, &mine);
    gantry_node a = gantry_graph_launch(g, "step", nothing, NULL);
    gantry_node_write(g, a, gantry_part(x, 1));
    gantry_node_read(g, a, gantry_rows(y, 2, 4));
    gantry_node b = gantry_graph_host(g, "step", nothing, NULL);
    gantry_node_readwrite(g, b, gantry_all(y));
    gantry_node_reduce(g, b, gantry_all(x), GANTRY_SUM);
    gantry_node_cost(g, b, 10, 20);
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, x, y);
    gantry_node c = gantry_graph_kernel(g, "k", "mine");
    gantry_node_arg_as(g, c, "x", gantry_halo(gantry_part(x, 0), 0, 1), GANTRY_SUM);
    gantry_node_scalar_dynamic(g, c, "k", 3);
    gantry_node_write(g, c, gantry_all(y));
    gantry_node_time(g, c, NULL, 5);
    gantry_node_time(g, c, "gpu0", 0.1);
    gantry_node_after(g, c, a);
    gantry_graph_repeat_end(g);
    gantry_error err;
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    char *text = json_of(g);
    ck_assert_str_eq(
        text,
        "{\n"
        "  \"gantry\": 1,\n"
        "  \"name\": \"prog\\\"ram\",\n"
        "  \"kernels\": {\n"
        "    \"mine\": { \"args\": [{ \"name\": \"x\", \"access\": [\"read\", \"sum\"], \"same\": \"a\" }, "
        "{ \"name\": \"k\", \"type\": \"f64\", \"default\": 2.5 }, { \"name\": \"z\", "
        "\"access\": \"read\", \"optional\": true }], \"variadic\": true, \"cost\": { \"flops\": \"2 * "
        "x.size\" } }\n"
        "  },\n"
        "  \"buffers\": {\n"
        "    \"x\": { \"dtype\": \"f32\", \"shape\": [8, 2], \"split\": 2, \"class\": \"input\", "
        "\"init\": { \"random\": { \"seed\": -1, \"low\": -1, \"high\": 1 } } },\n"
        "    \"y\": { \"dtype\": \"f32\", \"shape\": [8, 2], \"split\": 2, \"class\": \"state\", \"init\": -0.0 }\n"
        "  },\n"
        "  \"nodes\": [\n"
        "    { \"id\": \"step\", \"work\": {}, \"reads\": [\"y{2:4}\"], \"writes\": [\"x[1]\"], \"cost\": { \"flops\": "
        "0, \"bytes\": 48 } },\n"
        "    { \"id\": \"step#1\", \"work\": {}, \"writes\": [{ \"readwrite\": \"y\" }, { \"sum\": \"x\" }], "
        "\"cost\": { \"flops\": 10, \"bytes\": 20 } },\n"
        "    { \"repeat\": 3, \"carry\": { \"x\": \"y\" }, \"nodes\": [\n"
        "      { \"id\": \"k\", \"kernel\": \"mine\", \"args\": { \"x\": \"x[0]~0:1\", \"k\": { \"dynamic\": 3 } }, "
        "\"access\": { \"x\": \"sum\" }, \"writes\": [\"y\"], \"after\": [\"step\"], \"cost\": { \"time_us\": { \"*\": "
        "5, \"gpu0\": 0.1 } } }\n"
        "    ] }\n"
        "  ]\n"
        "}\n");
    gantry_free(text);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

/* Blocks are resolved, loops stay where they are, and a name for an index is written where it is not `it`. */
START_TEST(nested_loops)
{
    gantry_graph *g =
        graph_of("{ \"gantry\": 1, \"buffers\": { \"x\": { \"dtype\": \"f32\", \"shape\": [4], \"init\": 0 }, "
                 "\"y\": { \"dtype\": \"f32\", \"shape\": [4], \"init\": 0 }, "
                 "\"z\": { \"dtype\": \"f32\", \"shape\": [4], \"init\": 0 } }, \"nodes\": ["
                 "{ \"repeat\": 5, \"index\": \"k\", \"carry\": { \"x\": \"y\" }, \"nodes\": ["
                 "{ \"for\": { \"i\": 2 }, \"nodes\": [ { \"repeat\": \"i + 1\", \"carry\": { \"y\": \"x\" }, "
                 "\"nodes\": [ { \"id\": \"s[i]\", \"kernel\": \"scale\", \"args\": { \"a\": \"k * i + it\", "
                 "\"x\": \"z\", \"y\": \"x\" } } ] } ] },"
                 "{ \"repeat\": 0, \"nodes\": [] },"
                 "{ \"id\": \"f\", \"fill\": { \"to\": \"y\", \"value\": 1 } } ] } ] }");
    char *text = json_of(g), *nodes = strstr(text, "  \"nodes\"");
    ck_assert_str_eq(nodes, "  \"nodes\": [\n"
                            "    { \"repeat\": 5, \"index\": \"k\", \"carry\": { \"x\": \"y\" }, \"nodes\": [\n"
                            "      { \"repeat\": 1, \"carry\": { \"y\": \"x\" }, \"nodes\": [\n"
                            "        { \"id\": \"s[0]\", \"kernel\": \"scale\", \"args\": { \"a\": \"k * 0 + it\", "
                            "\"x\": \"z\", \"y\": \"x\" } }\n"
                            "      ] },\n"
                            "      { \"repeat\": 2, \"carry\": { \"y\": \"x\" }, \"nodes\": [\n"
                            "        { \"id\": \"s[1]\", \"kernel\": \"scale\", \"args\": { \"a\": \"k * 1 + it\", "
                            "\"x\": \"z\", \"y\": \"x\" } }\n"
                            "      ] },\n"
                            "      { \"repeat\": 0, \"nodes\": [] },\n"
                            "      { \"id\": \"f\", \"fill\": { \"to\": \"y\", \"value\": 1 } }\n"
                            "    ] }\n"
                            "  ]\n"
                            "}\n");
    gantry_free(text);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(calls)
{
    gantry_error err;
    char *text = NULL;
    size_t length;
    gantry_graph *g = gantry_graph_new("g");
    ck_assert_int_eq(gantry_graph_json(g, &text, &length, &err), GANTRY_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "gantry_graph_check"));
    ck_assert_int_eq(gantry_graph_json(NULL, &text, &length, NULL), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_save(g, NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_save(g, "/tmp/never.json", &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_graph_json(g, NULL, &length, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(gantry_graph_save(g, "/nowhere/at/all.json", &err), GANTRY_E_IO);
    ck_assert_ptr_null(text);
    gantry_graph_free(g);
}
END_TEST

/* Files of a graph that has no folder, or lies in another one, stay as they are. */
START_TEST(paths)
{
    gantry_error err;
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ 8 });
    gantry_buffer_init_npy(g, x, "/data/x.npy");
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    char *line = line_with(g, "\"x\":");
    ck_assert_str_eq(
        line,
        "\"x\": { \"dtype\": \"f32\", \"shape\": [8], \"class\": \"input\", \"init\": { \"npy\": \"/data/x.npy\" } }");
    free(line);
    gantry_graph_free(g);
}
END_TEST

START_TEST(save_and_load)
{
    char folder[] = "/tmp/gantry-test-XXXXXX", path[64], *first, *second;
    gantry_graph *g = NULL, *again = NULL;
    gantry_error err;
    size_t length;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/g.json", folder);
    ck_assert_int_eq(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/graphs/reference/peft2014.json", NULL, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_graph_save(g, path, &err), GANTRY_OK);
    first = json_of(g);
    ck_assert_int_eq(gy_file_read(&second, &length, path, &err), GANTRY_OK);
    ck_assert_str_eq(first, second);
    ck_assert_int_eq(gantry_graph_load(&again, path, NULL, &err), GANTRY_OK);
    gantry_free(first);
    gy_free(second);
    gantry_graph_free(g);
    gantry_graph_free(again);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* The same graph by the C API and from a file, halos of all axes and of each. */
START_TEST(tiles)
{
    static const char text[] =
        "{\"gantry\":1,\"name\":\"tiles\",\"buffers\":{\"u\":{\"dtype\":\"f32\",\"shape\":[6,7,9],\"tiles\":[2,1,3],"
        "\"init\":0},\"v\":{\"dtype\":\"f32\",\"shape\":[6,7,9],\"tiles\":[2,1,3],\"output\":true}},\"nodes\":[{"
        "\"for\":{"
        "\"i\":2},\"nodes\":[{\"id\":\"s[i,j]\",\"for\":{\"j\":3},\"kernel\":\"jacobi3d\",\"args\":{\"x\":\"u[i][0][j]~"
        "1\","
        "\"y\":\"v[i][0][j]\"}}]},{\"id\":\"t\",\"work\":{},\"reads\":[\"u[1][0][2]~2:1,0,0:3\",\"v[0:2][*][1]\"]}]}";
    const int64_t shape[3] = { 6, 7, 9 }, cut[3] = { 2, 1, 3 };
    gantry_graph *g = gantry_graph_new("tiles"), *read = graph_of(text);
    gantry_buffer u = gantry_graph_buffer(g, "u", GANTRY_F32, 3, shape),
                  v = gantry_graph_buffer(g, "v", GANTRY_F32, 3, shape);
    gantry_buffer_tiles_by_axis(g, u, 3, cut);
    gantry_buffer_tiles_by_axis(g, v, 3, cut);
    gantry_buffer_init_value(g, u, 0);
    gantry_buffer_output(g, v);
    for (int i = 0; i < 6; i++) {
        char id[32];
        const int64_t first[3] = { i / 3, 0, i % 3 }, last[3] = { i / 3 + 1, 1, i % 3 + 1 };
        snprintf(id, sizeof id, "s[%d,%d]", i / 3, i % 3);
        gantry_node n = gantry_graph_kernel(g, id, "jacobi3d");
        gantry_node_arg(g, n, "x", gantry_halo(gantry_tiles_by_axis(u, 3, first, last), 1, 1));
        gantry_node_arg(g, n, "y", gantry_tiles_by_axis(v, 3, first, last));
    }
    gantry_node t = gantry_graph_work(g, "t");
    const int64_t first[3] = { 1, 0, 2 }, last[3] = { 2, 1, 3 }, low[3] = { 0, 0, 1 }, high[3] = { 2, 1, 2 };
    gantry_region wide = gantry_halo_axis(gantry_tiles_by_axis(u, 3, first, last), 0, 2, 1);
    gantry_node_read(g, t, gantry_halo_axis(wide, 2, 0, 3));
    gantry_node_read(g, t, gantry_tiles_by_axis(v, 3, low, high));
    gantry_error err;
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    char *mine = json_of(g), *other = json_of(read);
    ck_assert_str_eq(mine, other);
    ck_assert_ptr_nonnull(strstr(mine, "\"u.halo2-1_0-0_0-3\""));
    check_stable(g);
    gantry_free(mine);
    gantry_free(other);
    gantry_graph_free(g);
    gantry_graph_free(read);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = { tiles, all_graphs,   examples_of_the_documentation, program, nested_loops, calls,
                                   paths, save_and_load };
    return RUN_CASES("writing graph files", cases);
}
