/* SPDX-License-Identifier: Apache-2.0 */
/* gantry_graph_differentiate as a call: what it adds, when it is refused, and that it survives a lack of memory. That
 * derivatives are right is shown by tests/property/adjoint. */
#include <gantry/gantry.h>

#include "support/run_suite.h"
#include "support/survive.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static const char *const weights[] = { "layer.*.gain", "w" };

static gantry_train_options options_of(gantry_optimizer optimizer)
{
    gantry_train_options o = GANTRY_TRAIN_OPTIONS_INIT;
    o.loss = "loss";
    o.weights = weights;
    o.weight_count = 2;
    o.optimizer = optimizer;
    return o;
}

/* h = x w, twice y = tanh(h) gain, loss = the mean of y^2 */
static gantry_graph *model(void)
{
    gantry_graph *g = gantry_graph_new("model");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 2, SHAPE(4, 3));
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 2, SHAPE(3, 3));
    gantry_buffer from = gantry_graph_buffer(g, "h", GANTRY_F32, 2, SHAPE(4, 3));
    gantry_buffer_init_normal(g, x, 1, 0, 1);
    gantry_buffer_init_normal(g, w, 2, 0, 1);
    gantry_node node = gantry_graph_kernel(g, "product", "gemm");
    gantry_node_arg(g, node, "a", gantry_all(x));
    gantry_node_arg(g, node, "b", gantry_all(w));
    gantry_node_arg(g, node, "c", gantry_all(from));
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d.gain", i);
        gantry_buffer gain = gantry_graph_buffer(g, name, GANTRY_F32, 1, SHAPE(3));
        gantry_buffer_init_value(g, gain, 1);
        snprintf(name, sizeof name, "y%d", i);
        gantry_buffer y = gantry_graph_buffer(g, name, GANTRY_F32, 2, SHAPE(4, 3));
        node = gantry_graph_map(g, name, "y = tanh(x) * gain");
        gantry_node_arg(g, node, "y", gantry_all(y));
        gantry_node_arg(g, node, "x", gantry_all(from));
        gantry_node_arg(g, node, "gain", gantry_all(gain));
        from = y;
    }
    gantry_buffer loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, SHAPE(1));
    node = gantry_graph_reduce(g, "loss", "l = mean(square(y))");
    gantry_node_arg(g, node, "l", gantry_all(loss));
    gantry_node_arg(g, node, "y", gantry_all(from));
    return g;
}

static gantry_buffer_info info_of(const gantry_graph *g, const char *name)
{
    gantry_error err;
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    gantry_buffer buffer = gantry_graph_find_buffer(g, name);
    ck_assert_msg(buffer.id != GANTRY_NONE, "no buffer %s", name);
    ck_assert_int_eq(gantry_graph_buffer_info(g, buffer, &info, &err), GANTRY_OK);
    return info;
}

START_TEST(gradients_are_outputs)
{
    gantry_error err;
    gantry_graph *g = model();
    gantry_train_options o = options_of(GANTRY_OPTIMIZER_NONE);
    ck_assert_msg(gantry_graph_differentiate(g, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq((int)gantry_graph_loss(g).id, (int)gantry_graph_find_buffer(g, "loss").id);
    ck_assert_int_eq(info_of(g, "loss").output, 1);
    ck_assert_int_eq(info_of(g, "w.grad").output, 1);
    ck_assert_int_eq(info_of(g, "layer.0.gain.grad").output, 1);
    ck_assert_int_eq(info_of(g, "h.grad").output, 0);
    ck_assert_int_eq(info_of(g, "w").cls, GANTRY_INPUT);
    ck_assert_int_eq((int)gantry_graph_find_buffer(g, "x.grad").id, (int)GANTRY_NONE); /* nobody asked for it */
    ck_assert_int_ne((int)gantry_graph_find_node(g, "product.grad.b").id, (int)GANTRY_NONE);
    gantry_graph_free(g);
}
END_TEST

START_TEST(optimisers_have_their_states)
{
    static const struct {
        gantry_optimizer optimizer;
        int m, v, step;
    } rows[] = { { GANTRY_OPTIMIZER_SGD, 0, 0, 0 },
                 { GANTRY_OPTIMIZER_MOMENTUM, 1, 0, 0 },
                 { GANTRY_OPTIMIZER_ADAM, 1, 1, 1 },
                 { GANTRY_OPTIMIZER_ADAMW, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gantry_error err;
        gantry_graph *g = model();
        gantry_train_options o = options_of(rows[i].optimizer);
        ck_assert_msg(gantry_graph_differentiate(g, &o, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_int_eq(info_of(g, "layer.1.gain").cls, GANTRY_STATE);
        ck_assert_int_eq(info_of(g, "x").cls, GANTRY_INPUT);
        ck_assert_int_eq(gantry_graph_find_buffer(g, "w.m").id != GANTRY_NONE, rows[i].m);
        ck_assert_int_eq(gantry_graph_find_buffer(g, "w.v").id != GANTRY_NONE, rows[i].v);
        ck_assert_int_eq(gantry_graph_find_buffer(g, "train.step").id != GANTRY_NONE, rows[i].step);
        gantry_graph_free(g);
    }
}
END_TEST

/* Names that a model has stay its own. */
START_TEST(names_that_are_taken)
{
    gantry_error err;
    gantry_graph *g = model();
    gantry_train_options o = options_of(GANTRY_OPTIMIZER_ADAM);
    static const char *const taken[] = { "h.grad", "w.m", "train.step" };
    for (int i = 0; i < 3; i++)
        (void)gantry_graph_buffer(g, taken[i], GANTRY_F32, 1, SHAPE(1));
    (void)gantry_graph_work(g, "product.grad.b");
    ck_assert_msg(gantry_graph_differentiate(g, &o, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    ck_assert_int_eq(info_of(g, "h.grad_").rank, 2);
    ck_assert_int_eq(info_of(g, "w.m_").rank, 2);
    ck_assert_int_eq(info_of(g, "train.step_").dtype, GANTRY_F64);
    ck_assert_int_ne((int)gantry_graph_find_node(g, "product.grad.b#1").id, (int)GANTRY_NONE);
    gantry_graph_free(g);
}
END_TEST

/* ---- what is refused ---- */

static void refused(gantry_graph *g, const gantry_train_options *o, gantry_status status, const char *text)
{
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_graph_differentiate(g, o, &err), status);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
    ck_assert_int_eq(gantry_graph_differentiate(g, o, NULL) != GANTRY_OK, 1);
    gantry_graph_free(g);
}

START_TEST(calls_out_of_order)
{
    gantry_error err;
    gantry_train_options o = options_of(GANTRY_OPTIMIZER_SGD);
    gantry_graph *g = model();
    refused(g, NULL, GANTRY_E_GRAPH, "does not say what training it means");
    g = model();
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_OK);
    refused(g, &o, GANTRY_E_INVALID, "was checked and is sealed");
    g = model();
    ck_assert_int_eq(gantry_graph_differentiate(g, &o, &err), GANTRY_OK);
    refused(g, &o, GANTRY_E_INVALID, "was differentiated before");
    g = model();
    gantry_graph_repeat(g, 2);
    refused(g, &o, GANTRY_E_INVALID, "a repeat of the graph has no end");
    g = model();
    (void)gantry_graph_kernel(g, "wrong", "no such kernel");
    refused(g, &o, GANTRY_E_GRAPH, "there is no kernel");
}
END_TEST

START_TEST(options_that_are_wrong)
{
    gantry_train_options o = options_of((gantry_optimizer)17);
    refused(model(), &o, GANTRY_E_INVALID, "optimizer 17 is none");
    o = options_of(GANTRY_OPTIMIZER_SGD);
    o.reserved = 1;
    refused(model(), &o, GANTRY_E_UNSUPPORTED, "reserved");
    o = options_of(GANTRY_OPTIMIZER_SGD);
    o.loss = "lost";
    refused(model(), &o, GANTRY_E_INVALID, "no buffer \"lost\" (did you mean \"loss\"?)");
}
END_TEST

/* A mistake of a node names the line of the program that added it, and sticks to the graph. */
START_TEST(mistakes_have_lines)
{
    gantry_error err, again;
    gantry_graph *g = model();
    gantry_train_options o = options_of(GANTRY_OPTIMIZER_SGD);
    gantry_node node = gantry_graph_map(g, "late", "w = w * 2");
    int line = __LINE__ - 1;
    gantry_node_arg(g, node, "w", gantry_all(gantry_graph_find_buffer(g, "w")));
    ck_assert_int_eq(gantry_graph_differentiate(g, &o, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "node \"late\" writes weight \"w\""), "%s", err.text);
    ck_assert_int_eq(err.line, line);
    ck_assert_int_eq(gantry_graph_check(g, &again), GANTRY_E_GRAPH);
    ck_assert_str_eq(again.text, err.text);
    gantry_graph_free(g);
}
END_TEST

START_TEST(optimisers_have_names)
{
    ck_assert_str_eq(gantry_optimizer_name(GANTRY_OPTIMIZER_NONE), "none");
    ck_assert_str_eq(gantry_optimizer_name(GANTRY_OPTIMIZER_ADAMW), "adamw");
    ck_assert_ptr_null(gantry_optimizer_name((gantry_optimizer)5));
    ck_assert_ptr_null(gantry_optimizer_name((gantry_optimizer)-1));
}
END_TEST

/* ---- without memory ---- */

static bool trains(void)
{
    gantry_error err;
    gantry_graph *g = model();
    gantry_train_options o = options_of(GANTRY_OPTIMIZER_ADAMW);
    o.schedule = "min(1, step / 10)";
    o.clip_norm = 1;
    gantry_status status = gantry_graph_differentiate(g, &o, &err);
    status = status ? status : gantry_graph_check(g, &err);
    ck_assert_msg(status == GANTRY_OK || status == GANTRY_E_NOMEM, "%s", err.text);
    gantry_graph_free(g);
    return status == GANTRY_OK;
}

START_TEST(memory_that_runs_out)
{
    assert_survives(trains, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("differentiate");
    TCase *tests = tcase_create("calls");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, gradients_are_outputs);
    tcase_add_test(tests, optimisers_have_their_states);
    tcase_add_test(tests, names_that_are_taken);
    tcase_add_test(tests, calls_out_of_order);
    tcase_add_test(tests, options_that_are_wrong);
    tcase_add_test(tests, mistakes_have_lines);
    tcase_add_test(tests, optimisers_have_names);
    tcase_add_test(tests, memory_that_runs_out);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
