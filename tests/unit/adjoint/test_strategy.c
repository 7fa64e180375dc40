/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_parallelize and gantry_strategy_parse as calls: what they add, when they are refused, and that they
 * survive a lack of memory. That what is computed is right is shown by tests/property/adjoint/check_strategy.py. */
#include <gantry/gantry.h>

#include "support/run_suite.h"
#include "support/survive.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static const char *const weights[] = { "w", "gain" }, *const batch[] = { "x" };

static gantry_train_options adamw(void)
{
    gantry_train_options o = GANTRY_TRAIN_OPTIONS_INIT;
    o.loss = "loss";
    o.weights = weights;
    o.weight_count = 2;
    o.batch = batch;
    o.batch_count = 1;
    o.optimizer = GANTRY_OPTIMIZER_ADAMW;
    o.schedule = "min(1, step / 10)";
    o.clip_norm = 1;
    return o;
}

/* h = x w, y = dropout(tanh(h) gain), loss = the mean of y^2 */
static gantry_graph *model(void)
{
    gantry_graph *g = gantry_graph_new("model");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(8, 6));
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 2, SHAPE(6, 6));
    gantry_buffer gain = gantry_graph_buffer(g, "gain", GANTRY_F32, 2, SHAPE(1, 6));
    gantry_buffer h = gantry_graph_buffer(g, "h", GANTRY_F32, 2, SHAPE(8, 6));
    gantry_buffer t = gantry_graph_buffer(g, "t", GANTRY_F32, 2, SHAPE(8, 6));
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, SHAPE(8, 6));
    gantry_buffer loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, SHAPE(1));
    gantry_buffer_init_normal(g, x, 1, 0, 1);
    gantry_buffer_init_normal(g, w, 2, 0, 1);
    gantry_buffer_init_value(g, gain, 1);
    gantry_node node = gantry_graph_kernel(g, "product", "gemm");
    gantry_node_arg(g, node, "a", gantry_all(x));
    gantry_node_arg(g, node, "b", gantry_all(w));
    gantry_node_arg(g, node, "c", gantry_all(h));
    node = gantry_graph_map(g, "tanh", "y = tanh(x) * gain");
    gantry_node_time(g, node, NULL, 8);
    gantry_node_arg(g, node, "y", gantry_all(t));
    gantry_node_arg(g, node, "x", gantry_all(h));
    gantry_node_arg(g, node, "gain", gantry_all(gain));
    node = gantry_graph_kernel(g, "drop", "dropout");
    gantry_node_scalar(g, node, "p", 0.5);
    gantry_node_scalar(g, node, "seed", 3);
    gantry_node_arg(g, node, "x", gantry_all(t));
    gantry_node_arg(g, node, "y", gantry_all(y));
    node = gantry_graph_reduce(g, "loss", "l = mean(square(y))");
    gantry_node_arg(g, node, "l", gantry_all(loss));
    gantry_node_arg(g, node, "y", gantry_all(y));
    return g;
}

/* h = x w, t = tanh(h), y = t v, loss = the mean of y^2: a pair of products */
static gantry_graph *pair(void)
{
    static const char *const names[] = { "x", "w", "h", "t", "v", "y" };
    gantry_graph *g = gantry_graph_new("pair");
    gantry_buffer b[6], loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, SHAPE(1));
    for (size_t i = 0; i < sizeof b / sizeof *b; i++) {
        b[i] = gantry_graph_buffer(g, names[i], GANTRY_F32, 2, SHAPE(8, 8));
        if (strchr("xwv", names[i][0]))
            gantry_buffer_init_normal(g, b[i], i, 0, 1);
    }
    for (size_t i = 0; i < 2; i++) {
        gantry_node node = gantry_graph_kernel(g, i ? "second" : "first", "gemm");
        gantry_node_arg(g, node, "a", gantry_all(b[3 * i]));
        gantry_node_arg(g, node, "b", gantry_all(b[1 + 3 * i]));
        gantry_node_arg(g, node, "c", gantry_all(b[2 + 3 * i]));
        node = i ? gantry_graph_reduce(g, "loss", "l = mean(square(y))") : gantry_graph_map(g, "tanh", "t = tanh(h)");
        gantry_node_arg(g, node, i ? "y" : "h", gantry_all(b[2 + 3 * i]));
        gantry_node_arg(g, node, i ? "l" : "t", gantry_all(i ? loss : b[3]));
    }
    return g;
}

static const char *const pair_weights[] = { "w", "v" };

/* y = table[ids] head, the loss by classes, of which the vocabulary has 8 */
static gantry_graph *words(void)
{
    gantry_graph *g = gantry_graph_new("words");
    gantry_buffer ids = gantry_graph_buffer(g, "x", GANTRY_I32, 1, SHAPE(8)), y, h, loss, table, head;
    gantry_buffer_init_value(g, ids, 3);
    table = gantry_graph_buffer(g, "table", GANTRY_F32, 2, SHAPE(8, 4));
    head = gantry_graph_buffer(g, "head", GANTRY_F32, 2, SHAPE(4, 8));
    h = gantry_graph_buffer(g, "h", GANTRY_F32, 2, SHAPE(8, 4));
    y = gantry_graph_buffer(g, "y", GANTRY_F32, 2, SHAPE(8, 8));
    loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, SHAPE(1));
    gantry_buffer_init_normal(g, table, 1, 0, 1);
    gantry_buffer_init_normal(g, head, 2, 0, 1);
    gantry_node node = gantry_graph_kernel(g, "look", "embedding");
    gantry_node_arg(g, node, "table", gantry_all(table));
    gantry_node_arg(g, node, "ids", gantry_all(ids));
    gantry_node_arg(g, node, "y", gantry_all(h));
    node = gantry_graph_kernel(g, "last", "gemm");
    gantry_node_arg(g, node, "a", gantry_all(h));
    gantry_node_arg(g, node, "b", gantry_all(head));
    gantry_node_arg(g, node, "c", gantry_all(y));
    node = gantry_graph_kernel(g, "loss", "softmax_xent");
    gantry_node_arg(g, node, "logits", gantry_all(y));
    gantry_node_arg(g, node, "labels", gantry_all(ids));
    gantry_node_arg(g, node, "loss", gantry_all(loss));
    return g;
}

static const char *const word_weights[] = { "table", "h*d" };

enum { DEPTH = 9 };
static const char *const deep_weights[] = { "w" };

/* h1 = tanh(x w), h2 = tanh(h1 w), and so on; loss = the mean of the squares of the last */
static gantry_graph *deep(void)
{
    char name[20];
    gantry_graph *g = gantry_graph_new("deep");
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 2, SHAPE(8, 8));
    gantry_buffer h = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(8, 8));
    gantry_buffer loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, SHAPE(1));
    gantry_buffer_init_normal(g, w, 1, 0, 1);
    gantry_buffer_init_normal(g, h, 2, 0, 1);
    for (int i = 0; i < DEPTH; i++) {
        snprintf(name, sizeof name, "z%d", i);
        gantry_buffer z = gantry_graph_buffer(g, name, GANTRY_F32, 2, SHAPE(8, 8));
        snprintf(name, sizeof name, "fc%d", i);
        gantry_node node = gantry_graph_kernel(g, name, "gemm");
        gantry_node_arg(g, node, "a", gantry_all(h));
        gantry_node_arg(g, node, "b", gantry_all(w));
        gantry_node_arg(g, node, "c", gantry_all(z));
        snprintf(name, sizeof name, "h%d", i + 1);
        h = gantry_graph_buffer(g, name, GANTRY_F32, 2, SHAPE(8, 8));
        snprintf(name, sizeof name, "tanh%d", i);
        node = gantry_graph_map(g, name, "h = tanh(z)");
        gantry_node_time(g, node, NULL, 8);
        gantry_node_arg(g, node, "h", gantry_all(h));
        gantry_node_arg(g, node, "z", gantry_all(z));
    }
    gantry_node node = gantry_graph_reduce(g, "loss", "l = mean(square(h))");
    gantry_node_arg(g, node, "l", gantry_all(loss));
    gantry_node_arg(g, node, "h", gantry_all(h));
    return g;
}

static gantry_strategy parsed(const char *text)
{
    gantry_error err;
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    ck_assert_msg(gantry_strategy_parse(&s, text, &err) == GANTRY_OK, "%s", err.text);
    return s;
}

static bool has_node(const gantry_graph *g, const char *id)
{
    return gantry_graph_find_node(g, id).id != GANTRY_NONE;
}

static int64_t parts_of(const gantry_graph *g, const char *name)
{
    gantry_error err;
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    ck_assert_int_eq(gantry_graph_buffer_info(g, gantry_graph_find_buffer(g, name), &info, &err), GANTRY_OK);
    return info.parts;
}

START_TEST(texts)
{
    gantry_strategy s = parsed("zero=3,micro=4,pp=5,tp=6,dp=2,interleave=3");
    ck_assert_int_eq(s.interleave, 3);
    ck_assert_int_eq(s.dp, 2);
    ck_assert_int_eq(s.tp, 6);
    ck_assert_int_eq(s.pp, 5);
    ck_assert_int_eq(s.micro, 4);
    ck_assert_int_eq(s.zero, 3);
    s = parsed("micro=7");
    ck_assert_int_eq(s.interleave, 1);
    ck_assert_int_eq(s.dp, 1);
    ck_assert_int_eq(s.tp, 1);
    ck_assert_int_eq(s.pp, 1);
    ck_assert_int_eq(s.zero, 0);
    ck_assert_int_eq(s.recompute, 0);
    ck_assert_int_eq(s.ordered, 0);
    ck_assert_int_eq(parsed("dp=2,ordered=1").ordered, 1);
    static const struct {
        const char *text;
        int32_t value;
    } rows[] = { { "recompute=all", GANTRY_RECOMPUTE_ALL },
                 { "recompute=auto", GANTRY_RECOMPUTE_AUTO },
                 { "dp=2,recompute=5", 5 },
                 { "recompute=1", 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        s = parsed(rows[i].text);
        ck_assert_int_eq(s.recompute, rows[i].value);
        ck_assert_uint_eq(gantry_strategy_text(&s, text, sizeof text), strlen(rows[i].text));
        ck_assert_str_eq(text, rows[i].text);
    }
    s = parsed("recompute=none");
    ck_assert_int_eq(s.recompute, 0);
}
END_TEST

/* Each candidate once, and its text is read back as it was. */
START_TEST(candidates)
{
    static const struct {
        int32_t devices;
        size_t count;
    } rows[] = { { 1, 5 }, { 2, 25 }, { 3, 25 }, { 6, 115 } }; /* 5 numbers of micro-batches each, twice where dp > 1 */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        size_t i = 0;
        gantry_strategy s = GANTRY_STRATEGY_INIT;
        for (; gantry_strategy_candidate(i, rows[k].devices, &s); i++) {
            char text[64];
            ck_assert_uint_eq(gantry_strategy_text(&s, text, sizeof text), strlen(text));
            gantry_strategy again = parsed(text);
            ck_assert_mem_eq(&again, &s, sizeof s);
            ck_assert_int_eq(rows[k].devices % (s.dp * s.tp * s.pp), 0);
        }
        ck_assert_uint_eq(i, rows[k].count);
    }
}
END_TEST

START_TEST(pieces_and_shards)
{
    gantry_error err;
    gantry_graph *g = model();
    gantry_train_options o = adamw();
    gantry_strategy s = parsed("dp=2,micro=2,zero=1");
    ck_assert_msg(gantry_graph_parallelize(g, &s, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_differentiate(g, NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert(has_node(g, "product[0]") && has_node(g, "product[3]") && !has_node(g, "product") &&
              !has_node(g, "product[4]"));
    ck_assert(has_node(g, "drop[3].grad.x") && has_node(g, "w.step[1]") && has_node(g, "gain.step"));
    ck_assert_int_eq(parts_of(g, "x"), 4);
    ck_assert_int_eq(parts_of(g, "w"), 2);
    ck_assert_int_eq(parts_of(g, "w.m"), 2);
    ck_assert_int_eq(parts_of(g, "gain"), 0); /* its one row is no shards */
    gantry_graph_free(g);
}
END_TEST

START_TEST(slices)
{
    gantry_error err;
    gantry_graph *g = pair();
    gantry_train_options o = adamw();
    o.weights = pair_weights;
    gantry_strategy s = parsed("dp=2,tp=2,zero=1");
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    ck_assert_msg(gantry_graph_parallelize(g, &s, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_differentiate(g, NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert(has_node(g, "first[0,0]") && has_node(g, "first[1,1]") && has_node(g, "tanh[1,0].grad.h"));
    ck_assert(has_node(g, "loss[3]") && has_node(g, "w.step[1]") && !has_node(g, "first[2,0]"));
    ck_assert_int_eq(parts_of(g, "x"), 2);
    ck_assert_int_eq(parts_of(g, "y"), 4);
    ck_assert_int_eq(parts_of(g, "v"), 4); /* two slices, each in a shard for each replica */
    ck_assert_int_eq(gantry_graph_buffer_info(g, gantry_graph_find_buffer(g, "w"), &info, &err), GANTRY_OK);
    ck_assert_int_eq(info.tiles[0], 1);
    ck_assert_int_eq(info.tiles[1], 2);
    ck_assert_int_eq(gantry_graph_buffer_info(g, gantry_graph_find_buffer(g, "t"), &info, &err), GANTRY_OK);
    ck_assert_int_eq(info.tiles[0], 2);
    ck_assert_int_eq(info.tiles[1], 2);
    gantry_graph_free(g);
}
END_TEST

/* Without layers a chain is cut into segments; the loss follows from the last one, of which nothing is computed again.
 */
START_TEST(computed_again)
{
    gantry_error err;
    gantry_graph *g = deep();
    gantry_train_options o = adamw();
    o.weights = deep_weights;
    o.weight_count = 1;
    gantry_strategy s = parsed("recompute=all");
    ck_assert_msg(gantry_graph_parallelize(g, &s, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_differentiate(g, NULL, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert(has_node(g, "fc0.again") && !has_node(g, "tanh8.again") && !has_node(g, "loss.again"));
    ck_assert(gantry_graph_find_buffer(g, "z0.again").id != GANTRY_NONE);
    gantry_graph_free(g);
}
END_TEST

static void refused(gantry_graph *g, const gantry_strategy *s, const gantry_train_options *o, gantry_status status,
                    const char *text)
{
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_graph_parallelize(g, s, o, &err), status);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
    gantry_graph_free(g);
}

START_TEST(calls_that_are_wrong)
{
    gantry_error err;
    gantry_train_options o = adamw();
    gantry_strategy s = parsed("dp=2");
    gantry_graph *g = model();
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    refused(g, &s, &o, GANTRY_E_INVALID, "call gantry_graph_parallelize before gantry_graph_check");
    g = model();
    ck_assert_int_eq(gantry_graph_differentiate(g, &o, &err), GANTRY_OK);
    refused(g, &s, &o, GANTRY_E_INVALID, "was differentiated before");
    refused(model(), &s, NULL, GANTRY_E_GRAPH,
            "cuts a model by its weights and its batch, and the graph names neither");
    g = model();
    (void)gantry_graph_kernel(g, "wrong", "no such kernel");
    refused(g, &s, &o, GANTRY_E_GRAPH, "there is no kernel");
    s.dp = 3;
    refused(model(), &s, &o, GANTRY_E_GRAPH, "8 rows of \"x\" for 3 pieces");
    s.dp = 0;
    refused(model(), &s, &o, GANTRY_E_INVALID, "dp is 0; 1 to 65536 are allowed");
    s = parsed("recompute=auto");
    refused(model(), &s, &o, GANTRY_E_INVALID, "recompute=auto is for who schedules");
    s.recompute = -2;
    refused(model(), &s, &o, GANTRY_E_INVALID, "recompute is -2; -1 to 2147483647 are allowed");
    s = parsed("dp=2");
    s.ordered = 2;
    refused(model(), &s, &o, GANTRY_E_INVALID, "ordered is 2; 0 to 1 are allowed");
    s = parsed("dp=2");
    o.batch_count = 0;
    refused(model(), &s, &o, GANTRY_E_GRAPH, "nothing says which buffers are the batch");
    o = adamw();
    s = parsed("tp=2");
    refused(model(), &s, &o, GANTRY_E_GRAPH, "tp=2 finds no weights that it can cut");
    o.weights = pair_weights;
    s.tp = 3;
    refused(pair(), &s, &o, GANTRY_E_GRAPH, "cuts buffer \"w\" along axis 1, which is 8 long and cannot be cut into 3");
    s.tp = 70000;
    refused(pair(), &s, &o, GANTRY_E_INVALID, "tp is 70000; 1 to 65536 are allowed");
    s.tp = 2;
    g = pair();
    gantry_graph_limit(g, 6);
    s.micro = 4;
    refused(g, &s, &o, GANTRY_E_GRAPH, "would be cut into 8 parts; 1 to 6 are allowed");
}
END_TEST

/* ---- without memory ---- */

static bool spreads(gantry_graph *g, const char *const *of, size_t count, const char *strategy)
{
    gantry_error err;
    gantry_train_options o = adamw();
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    o.weights = of;
    o.weight_count = count;
    gantry_status status = gantry_strategy_parse(&s, strategy, &err);
    status = status ? status : gantry_graph_parallelize(g, &s, &o, &err);
    status = status ? status : gantry_graph_differentiate(g, NULL, &err);
    status = status ? status : gantry_graph_check(g, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "%s", err.text);
    gantry_graph_free(g);
    return status == GANTRY_OK;
}

static bool spreads_pieces(void)
{
    return spreads(model(), weights, 2, "dp=2,pp=2,micro=2,zero=1");
}

static bool spreads_slices(void)
{
    return spreads(pair(), pair_weights, 2, "dp=2,tp=2,pp=2,zero=1");
}

static bool spreads_words(void)
{
    return spreads(words(), word_weights, 2, "dp=2,tp=2");
}

static bool spreads_and_recomputes(void)
{
    return spreads(deep(), deep_weights, 1, "pp=2,interleave=2,micro=2,recompute=all");
}

static bool spreads_in_order(void)
{
    return spreads(pair(), pair_weights, 2, "dp=2,tp=2,micro=2,zero=1,ordered=1");
}

START_TEST(memory_that_runs_out)
{
    assert_survives(spreads_in_order, 100);
    assert_survives(spreads_and_recomputes, 100);
    assert_survives(spreads_pieces, 100);
    assert_survives(spreads_slices, 100);
    assert_survives(spreads_words, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strategy");
    TCase *tests = tcase_create("calls");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, texts);
    tcase_add_test(tests, candidates);
    tcase_add_test(tests, pieces_and_shards);
    tcase_add_test(tests, slices);
    tcase_add_test(tests, computed_again);
    tcase_add_test(tests, calls_that_are_wrong);
    tcase_add_test(tests, memory_that_runs_out);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
