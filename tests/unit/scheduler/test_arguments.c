/* SPDX-License-Identifier: Apache-2.0 */
/* The text that says on which arguments of a node its time depends: what is in it, and what is not. */
#include "graph/graph.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS                                                                                                        \
    "\"buffers\":{\"a\":{\"dtype\":\"f32\",\"shape\":[64,128],\"init\":1},"                                            \
    "\"b\":{\"dtype\":\"f32\",\"shape\":[128,32],\"init\":1},\"c\":{\"dtype\":\"f32\",\"shape\":[64,32],\"init\":1},"  \
    "\"at\":{\"dtype\":\"f32\",\"shape\":[128,64],\"init\":1},"                                                        \
    "\"x\":{\"dtype\":\"f32\",\"shape\":[12,5],\"split\":3,\"init\":1},"                                               \
    "\"y\":{\"dtype\":\"f32\",\"shape\":[12,5],\"split\":3,\"init\":1},"                                               \
    "\"v\":{\"dtype\":\"u8\",\"shape\":[2,9,9,3],\"init\":1},\"w\":{\"dtype\":\"u8\",\"shape\":[2,9,9,3]},"            \
    "\"t\":{\"dtype\":\"f64\",\"shape\":[10,7],\"tiles\":[4,4],\"init\":1},"                                           \
    "\"k\":{\"dtype\":\"i32\",\"shape\":[12],\"init\":0},\"l\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0}}"

static const char OWN[] =
    "\"kernels\":{\"mine\":{\"host\":\"mine.c\",\"args\":["
    "{\"name\":\"weight\",\"type\":\"f32\"},{\"name\":\"x\",\"access\":\"read\",\"dtype\":\"f32\"},"
    "{\"name\":\"y\",\"access\":\"readwrite\",\"dtype\":\"f32\"},{\"name\":\"taps\",\"type\":\"i32\"},"
    "{\"name\":\"width\",\"type\":\"f64\"},{\"name\":\"n\",\"type\":\"i64\",\"default\":\"x.size\"}],"
    "\"cost\":{\"flops\":\"x.size * width\"}}}";

static const struct {
    const char *node, *text;
} rows[] = {
    { "'kernel':'gemm','args':{'a':'a','b':'b','c':'c'}", "64x128 128x32 64x32" },
    { "'kernel':'gemm','args':{'a':'a','b':'b','c':'c','alpha':-3,'ta':0}", "64x128 128x32 64x32" },
    { "'kernel':'gemm','args':{'a':'at','b':'b','c':'c','ta':1}", "128x64 128x32 64x32 ta=1" },
    { "'kernel':'gemm','args':{'a':'a','b':'b','c':'c'},'access':{'c':'sum'}", "64x128 128x32 64x32:sum" },
    { "'kernel':'saxpy','args':{'a':2,'x':'x[1]','y':'y[1]'}", "4x5 4x5" },
    { "'kernel':'saxpy','args':{'a':3,'x':'x{2:6}','y':'y{0:4}'}", "4x5 4x5" }, /* elsewhere, with another factor */
    { "'kernel':'jacobi2d','args':{'x':'x[1]~1','y':'y[1]'}", "6x5~1 4x5" },
    { "'kernel':'jacobi2d','args':{'x':'x[0]~1','y':'y[0]'}", "5x5~0:1 4x5" },
    { "'kernel':'relu','args':{'x':'t[1][1]','y':'t[3][3]'}", "3x2 3x2" }, /* tiles of 10 x 7 in 4 x 4 */
    { "'kernel':'gaussian_blur','args':{'sigma':1.5,'image':'v','out':'w'}", "2x9x9x3 2x9x9x3 sigma=1.5" },
    { "'kernel':'softmax_xent','args':{'logits':'x','labels':'k','loss':'l','scale':0.25}", "12x5 12:i32 1" },
    { "'kernel':'mine','args':{'weight':2,'x':'x','y':'y','taps':7,'width':2.5}", "12x5 12x5 taps=7 width=2.5" },
    { "'repeat':2,'nodes':[{'id':'n','kernel':'mine','args':{'weight':2,'x':'x','y':'y','taps':'it','width':2.5}}]",
      "12x5 12x5 width=2.5" }, /* not what changes from iteration to iteration */
};

static char folder[] = "/tmp/gantry-case-XXXXXX";

/* The code of the own kernel, which is named and never built. */
static void set_up(void)
{
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.c", folder);
    FILE *file = fopen(path, "w");
    ck_assert(file && !fclose(file));
}

static void tear_down(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/mine.c", folder);
    remove(path);
    remove(folder);
}

static gantry_graph *graph_of(const char *node)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    char text[4096];
    bool block = strncmp(node, "'repeat'", 8) == 0;
    int length = snprintf(text, sizeof text, "{\"gantry\":1,%s,%s,\"nodes\":[{%s%s}]}", OWN, BUFFERS,
                          block ? "" : "\"id\":\"n\",", node);
    for (int i = 0; i < length; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    load.allow_code = 1;
    ck_assert_msg(!gantry_graph_parse(&g, text, (size_t)length, "g", folder, &load, &err), "%s: %s", err.where,
                  err.text);
    return g;
}

START_TEST(texts)
{
    gantry_graph *g = graph_of(rows[_i].node);
    gy_text text = { 0 };
    ck_assert(gy_node_case(&text, g, &g->nodes.at[gantry_graph_find_node(g, "n").id]));
    ck_assert_str_eq(text.at, rows[_i].text);
    ck_assert(gy_node_case(&text, g, &g->nodes.at[gantry_graph_find_node(g, "n").id])); /* it replaces what was there */
    ck_assert_str_eq(text.at, rows[_i].text);
    gy_text_free(&text);
    gantry_graph_free(g);
}
END_TEST

/* Nodes that no kernel runs have no such text; they take no arguments. */
START_TEST(no_text)
{
    gantry_graph *g = graph_of("'copy':{'from':'x','to':'y'}");
    gy_text text = { 0 };
    ck_assert(!gy_node_case(&text, g, &g->nodes.at[0]));
    gantry_graph_free(g);
    gy_text_free(&text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph: arguments");
    TCase *c = tcase_create("arguments");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, texts, 0, sizeof rows / sizeof *rows);
    tcase_add_test(c, no_text);
    suite_add_tcase(s, c);
    return run_suite(s);
}
