/* SPDX-License-Identifier: Apache-2.0 */
/* Map nodes that programs build. */
#include "graph/graph.h"

#include "support/run_suite.h"
#include <check.h>
#include <string.h>

static const int64_t eight[] = { 8 }, one[] = { 1 };

typedef struct things {
    gantry_graph *g;
    gantry_buffer x, y, n, s;
} things;

static things new_graph(void)
{
    things t = { .g = gantry_graph_new("maps") };
    t.x = gantry_graph_buffer(t.g, "x", GANTRY_F32, 1, eight);
    t.y = gantry_graph_buffer(t.g, "y", GANTRY_F32, 1, eight);
    t.n = gantry_graph_buffer(t.g, "n", GANTRY_I32, 1, eight);
    t.s = gantry_graph_buffer(t.g, "s", GANTRY_F32, 1, one);
    gantry_buffer_init_value(t.g, t.x, 1);
    gantry_buffer_init_value(t.g, t.n, 1);
    gantry_buffer_init_value(t.g, t.s, 1);
    return t;
}

static gantry_node add(const things *t, const char *formulas, gantry_buffer s)
{
    gantry_node node = gantry_graph_map(t->g, NULL, formulas);
    gantry_node_arg(t->g, node, "x", gantry_all(t->x));
    gantry_node_arg(t->g, node, "y", gantry_all(t->y));
    if (s.id == GANTRY_NONE)
        gantry_node_scalar(t->g, node, "s", 0.5);
    else
        gantry_node_arg(t->g, node, "s", gantry_all(s));
    return node;
}

static const gantry_buffer nothing = { GANTRY_NONE, 0 };

START_TEST(nodes_with_equal_formulas_and_types_share_a_kernel)
{
    things t = new_graph();
    uint32_t a = add(&t, "y = x * s", nothing).id, b = add(&t, "y = x * s", nothing).id;
    uint32_t c = add(&t, "y = x * s", t.s).id, d = add(&t, "y = y + x * s", nothing).id;
    gantry_error err;
    ck_assert_msg(gantry_graph_check(t.g, &err) == GANTRY_OK, "%s", err.text);
    const gy_node *node = t.g->nodes.at;
    ck_assert_str_eq(node[a].id, "map");
    ck_assert_uint_eq(node[a].kernel, node[b].kernel);
    ck_assert_uint_ne(node[a].kernel, node[c].kernel);
    ck_assert_uint_ne(node[a].kernel, node[d].kernel);
    ck_assert_int_eq(t.g->access.at[node[a].access].mode, GANTRY_WRITE);
    ck_assert_int_eq(t.g->access.at[node[d].access].mode, GANTRY_READWRITE);
    /* One product, or a product and a sum, for each of 8 elements: two flops each, as without fusing. */
    ck_assert_double_eq(node[a].flops, 16);
    ck_assert_double_eq(node[d].flops, 32);
    ck_assert_double_eq(node[a].bytes, 64);
    ck_assert_double_eq(node[c].bytes, 68);
    gantry_graph_free(t.g);
}
END_TEST

static uint64_t hash_of(const char *formulas)
{
    things t = new_graph();
    gantry_error err;
    add(&t, formulas, nothing);
    ck_assert_msg(gantry_graph_check(t.g, &err) == GANTRY_OK, "%s", err.text);
    uint64_t hash = t.g->hash;
    gantry_graph_free(t.g);
    return hash;
}

START_TEST(the_hash_of_a_graph_covers_formulas)
{
    ck_assert_uint_eq(hash_of("y = x * s"), hash_of("y = x * s"));
    ck_assert_uint_ne(hash_of("y = x * s"), hash_of("y = x + s"));
}
END_TEST

START_TEST(mistakes_of_programs_are_found)
{
    static const struct {
        const char *formulas, *number, *part;
    } cases[] = {
        { "y = x +", NULL, "node \"map\": in formula \"x +\": at character 4: expected a number, a name or '('" },
        { "x * s", NULL, "\"x * s\" does not say what it gives: write \"y = sqrt(x)\"" },
        { "y = x * s", "y", "argument \"y\" of node \"map\" is given by a formula, so it is a region of a buffer" },
        { "y = x * s", "x", "argument \"x\" of node \"map\" is given twice" },
        { "y = x * s", "z", "node \"map\" has no argument \"z\"; it has y, x, s" },
        { "y = x * s * t", NULL,
          "node \"map\": argument \"t\" of its formulas is missing; give it a region or a number" },
        { "y = x * s; z = x", NULL, "argument \"z\" of its formulas is missing; give it a region of a buffer" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        things t = new_graph();
        gantry_error err;
        gantry_node node = gantry_graph_map(t.g, NULL, cases[i].formulas);
        if (!cases[i].number || strcmp(cases[i].number, "y") != 0)
            gantry_node_arg(t.g, node, "y", gantry_all(t.y));
        gantry_node_arg(t.g, node, "x", gantry_all(t.x));
        gantry_node_scalar(t.g, node, "s", 2);
        if (cases[i].number)
            gantry_node_scalar(t.g, node, cases[i].number, 2);
        ck_assert_int_eq(gantry_graph_check(t.g, &err), GANTRY_E_GRAPH);
        ck_assert_msg(strstr(err.text, cases[i].part), "%s", err.text);
        gantry_graph_free(t.g);
    }
}
END_TEST

/* Pieces that do not fit are told with their rows, and with what is wrong about them. */
START_TEST(pieces_that_do_not_fit_are_told_apart)
{
    static const char *const parts[] = {
        "region \"x\" is 5 (rows 5 to 9 of 20) and \"y\" is 10 (rows 10 to 19 of 20); these are pieces of different "
        "sizes: "
        "cut both buffers into as many parts, and name the same one of each",
        "region \"x\" is 20 and \"y\" is 10 (rows 10 to 19 of 20); name the same piece of both, such as x[i] and y[i]",
        "region \"x\" is 6 (rows 4 to 9 of 20) and \"y\" is 5 (rows 5 to 9 of 20); a formula takes element by element "
        "and "
        "reads no neighbours: leave the halo (~) out",
        "region \"x\" is 19 and \"y\" is 20; all that a map gives has one shape",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        gantry_error err;
        gantry_graph *g = gantry_graph_new("pieces");
        gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (int64_t[]){ i < 3 ? 20 : 19 });
        gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, (int64_t[]){ 20 });
        gantry_buffer_split(g, x, 4);
        gantry_buffer_split(g, y, i == 2 ? 4 : 2);
        gantry_node n = gantry_graph_map(g, NULL, "y = x + 1");
        gantry_node_arg(g, n, "x",
                        i == 1 || i == 3 ? gantry_all(x)
                        : i == 2         ? gantry_halo(gantry_part(x, 1), 1, 0)
                                         : gantry_part(x, 1));
        gantry_node_arg(g, n, "y", i == 3 ? gantry_all(y) : gantry_part(y, 1));
        ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
        ck_assert_msg(strstr(err.text, parts[i]), "%s", err.text);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(a_kernel_cannot_take_the_name_of_formulas)
{
    things t = new_graph();
    gantry_error err;
    add(&t, "y = x * s", nothing);
    ck_assert_int_eq(gantry_graph_check(t.g, &err), GANTRY_OK);
    gantry_kernel own = *gantry_kernel_find("scale");
    own.name = t.g->kernels.at[t.g->nodes.at[0].kernel].manifest->name;
    things u = new_graph();
    gantry_graph_add_kernel(u.g, &own);
    add(&u, "y = x * s", nothing);
    ck_assert_int_eq(gantry_graph_check(u.g, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "has the name of the formulas \"y = x * s"), "%s", err.text);
    gantry_graph_free(u.g);
    gantry_graph_free(t.g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("map nodes");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, nodes_with_equal_formulas_and_types_share_a_kernel);
    tcase_add_test(tests, the_hash_of_a_graph_covers_formulas);
    tcase_add_test(tests, mistakes_of_programs_are_found);
    tcase_add_test(tests, pieces_that_do_not_fit_are_told_apart);
    tcase_add_test(tests, a_kernel_cannot_take_the_name_of_formulas);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
