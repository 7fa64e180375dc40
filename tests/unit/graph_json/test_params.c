/* SPDX-License-Identifier: Apache-2.0 */
/* Params: what the file says, what --param says, what the sizes of --input files say. */
#include "base/npy.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "{\"gantry\": 1, \"params\": {\"n\": 10, \"m\": 4, \"half\": \"n // 2\", \"lr\": 0.5, \"inv\": \"1 / m\"},"
    "\"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [\"n\", \"m\"], \"init\": 0},"
    "\"y\": {\"dtype\": \"f32\", \"shape\": [\"half\"], \"init\": 0},"
    "\"z\": {\"dtype\": \"f32\", \"shape\": [\"n\", 3], \"init\": 0}}, \"nodes\": []}";

static void check_shapes(const gantry_graph *g, int64_t n, int64_t m, int64_t half)
{
    ck_assert_int_eq(g->buffers.at[0].shape[0], n);
    ck_assert_int_eq(g->buffers.at[0].shape[1], m);
    ck_assert_int_eq(g->buffers.at[1].shape[0], half);
    ck_assert_int_eq(g->buffers.at[2].shape[0], n);
}

START_TEST(values)
{
    gantry_graph *g = graph_of(text);
    check_shapes(g, 10, 4, 5);
    ck_assert_uint_eq(g->params.count, 5);
    ck_assert(!g->params.at[0].is_real && g->params.at[0].integer == 10);
    ck_assert(!g->params.at[2].is_real && g->params.at[2].integer == 5);
    ck_assert(g->params.at[3].is_real && g->params.at[3].real == 0.5);
    ck_assert(g->params.at[4].is_real && g->params.at[4].real == 0.25);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

/* Sizes follow the params in them; the last --param wins; a param may be given as an expression over those above. */
START_TEST(overrides)
{
    static const char *const params[] = { "n=1", "n=3*4", "m=n+1", "lr=1e-3" };
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.params = params;
    options.param_count = 4;
    gantry_graph *g = graph_with(text, &options);
    check_shapes(g, 12, 13, 6);
    ck_assert(g->params.at[3].real == 1e-3);
    gantry_graph_free(g);
}
END_TEST

static const char *error_of_param(const char *param)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.params = &param;
    options.param_count = 1;
    return error_with(text, &options);
}

START_TEST(wrong_overrides)
{
    ck_assert_str_eq(error_of_param("nn=3"),
                     "t:1:25: /params: --param nn: the graph has no param of that name (did you mean \"n\"?)");
    ck_assert_str_eq(error_of_param("zebra=3"), "t:1:25: /params: --param zebra: the graph has no param of that name; "
                                                "it has \"n\", \"m\", \"half\", \"lr\", \"inv\"");
    ck_assert_str_eq(error_of_param("n"), "--param n: write name=value");
    ck_assert_str_eq(error_of_param("=3"), "--param =3: write name=value");
    ck_assert_str_eq(error_of_param("n=12x"), "t:1:31: /params/n: --param n=12x: in expression \"12x\": at character "
                                              "1: badly written number: write 12, 0.5, 1e-3 or 2*n");
    ck_assert_str_eq(
        error_of_param("n=m"),
        "t:1:31: /params/n: --param n=m: param \"m\" is given further down: a param may use those above it only");
    ck_assert_str_eq(
        error_of_param("n=2.5"),
        "t:1:132: /buffers/x/shape/0: in expression \"n\": \"n\" is 2.5, and only whole numbers are allowed here");
    ck_assert_str_eq(error_of_param("n=1e2"),
                     "t:1:132: /buffers/x/shape/0: in expression \"n\": \"n\" is the real number 100.0, and only whole "
                     "numbers are allowed here: give it as 100");
    ck_assert_str_eq(error_of_param("n=-2"), "t:1:132: /buffers/x/shape/0: a size must be at least 0, not -2");
}
END_TEST

/* ---- devices ---- */

static const char by_devices[] =
    "{\"gantry\":1,\"params\":{\"parts\":\"2 * devices\"},"
    "\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[\"10 * devices\"],\"split\":\"parts\",\"init\":0},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[\"10 * devices\"],\"split\":\"parts\",\"output\":true}},"
    "\"nodes\":[{\"id\":\"n[i]\",\"for\":{\"i\":\"parts\"},\"kernel\":\"scale\",\"on\":\"i % devices\","
    "\"args\":{\"a\":\"devices / 2\",\"x\":\"x[i]\",\"y\":\"y[i]\"}}]}";

/* A number in params, shapes, counts and scalars; in `on` it stays open, since fewer devices may do the work. */
START_TEST(devices_are_a_number)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    char *json;
    options.devices = 3;
    gantry_graph *g = graph_with(by_devices, &options);
    ck_assert_int_eq(g->params.at[0].integer, 6);
    ck_assert_int_eq(g->buffers.at[0].rows, 30);
    ck_assert_uint_eq(g->nodes.count, 6);
    ck_assert(g->scalar.at[0].number.real == 1.5);
    ck_assert_int_eq(gantry_graph_json(g, &json, NULL, NULL), GANTRY_OK);
    ck_assert_ptr_nonnull(strstr(json, "\"5 % devices\""));
    gantry_free(json);
    check_stable(g);
    gantry_graph_free(g);
}
END_TEST

START_TEST(devices_are_not_known)
{
    gantry_graph *g;
    gantry_error err;
    ck_assert_int_eq(gantry_graph_parse(&g, by_devices, strlen(by_devices), "t", NULL, NULL, &err),
                     GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text, "\"devices\" is used as a number, and how many there are is not known: give `devices` "
                               "where the graph is loaded (the command counts those of its machine, but for a graph on "
                               "standard input)");
    ck_assert_str_eq(err.where, "/params/parts");
}
END_TEST

/* ---- sizes of files ---- */

static char folder[] = "/tmp/gantry-test-XXXXXX";

static void write_npy(const char *name, int rank, const int64_t *shape)
{
    char path[256];
    gy_text header = { 0 };
    gy_npy_header_write(&header, GANTRY_F32, rank, shape);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(header.at, 1, header.length, file), header.length);
    ck_assert_int_eq(fclose(file), 0);
    gy_text_free(&header);
}

static gantry_status load_with(const char *const *inputs, size_t count, const char *const *params, size_t param_count,
                               gantry_graph **g, gantry_error *err)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.inputs = inputs;
    options.input_count = count;
    options.params = params;
    options.param_count = param_count;
    return gantry_graph_parse(g, text, strlen(text), "t", NULL, &options, err);
}

START_TEST(sizes_of_files)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_npy("x.npy", 2, (int64_t[]){ 20, 6 });
    write_npy("z.npy", 2, (int64_t[]){ 21, 3 });
    write_npy("flat.npy", 1, (int64_t[]){ 21 });
    static const char *const x[] = { "x=x.npy", "z=z.npy" }, *const flat[] = { "x=flat.npy" },
                             *const raw[] = { "x=x.raw" }, *const missing[] = { "x=none.npy" }, *const n[] = { "n=21" },
                             *const unknown[] = { "xx=x.npy" }, *const nothing[] = { "x=" };
    gantry_graph *g;
    gantry_error err;
    ck_assert_int_eq(load_with(x, 1, NULL, 0, &g, &err), GANTRY_OK);
    check_shapes(g, 20, 6, 10);
    gantry_graph_free(g);
    /* --param wins over a file, and files must agree. */
    ck_assert_int_eq(load_with(x, 2, n, 1, &g, &err), GANTRY_OK);
    check_shapes(g, 21, 6, 10);
    gantry_graph_free(g);
    ck_assert_int_eq(load_with(x, 2, NULL, 0, &g, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, "/buffers/z/shape/0");
    ck_assert_str_eq(err.text, "--input files disagree about \"n\": x.npy has 20, z.npy has 21");
    ck_assert_int_eq(load_with(flat, 1, NULL, 0, &g, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, "has 2 axes, but the file flat.npy has 1; reshape the array, or change the shape");
    ck_assert_int_eq(load_with(raw, 1, NULL, 0, &g, &err), GANTRY_OK); /* a raw file says no sizes */
    check_shapes(g, 10, 4, 5);
    gantry_graph_free(g);
    ck_assert_int_eq(load_with(missing, 1, NULL, 0, &g, &err), GANTRY_E_IO);
    ck_assert_int_eq(load_with(unknown, 1, NULL, 0, &g, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "--input xx: the graph has no buffer of that name (did you mean \"x\"?)");
    ck_assert_int_eq(load_with(nothing, 1, NULL, 0, &g, &err), GANTRY_E_INVALID);
}
END_TEST

int main(void)
{
    const TTest *const cases[] = {
        values, overrides, wrong_overrides, devices_are_a_number, devices_are_not_known, sizes_of_files
    };
    return RUN_CASES("params of graph files", cases);
}
