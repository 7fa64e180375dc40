/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of the host back end, inserted ones and those of the graph, and kernels with a handle per device. */
#include "build.h"
#include <stdlib.h>

enum { N = 64 };

static double *data_of(const gantry_launch *l, int i)
{
    return l->arg[i].data;
}
static int64_t rows_of(const gantry_launch *l, int i)
{
    return l->arg[i].rows;
}

/* sum += everything in x */
static gantry_status add_up(const gantry_launch *l)
{
    for (int64_t i = 0; i < rows_of(l, 0); i++)
        data_of(l, 1)[0] += data_of(l, 0)[i];
    return GANTRY_OK;
}

static gantry_buffer vector(gantry_graph *g, const char *name, int64_t n)
{
    return gantry_graph_buffer(g, name, GANTRY_F64, 1, &n);
}

/* ---- collectives ---- */

/* Two contributions to "total" in accumulators on two devices and a previous value on the first. */
START_TEST(an_inserted_reduction_combines_in_order)
{
    gantry_graph *g = gantry_graph_new("reduce");
    gantry_buffer x = vector(g, "x", N), total = vector(g, "total", 1);
    gantry_buffer_init_iota(g, x);
    gantry_buffer_init_value(g, total, 1000);
    gantry_buffer_output(g, total);
    gantry_buffer_split(g, x, 2);
    for (int i = 0; i < 2; i++) {
        gantry_node n = gantry_graph_launch(g, "sum", add_up, NULL);
        gantry_node_read(g, n, gantry_part(x, i));
        gantry_node_reduce(g, n, gantry_all(total), GANTRY_SUM);
    }
    gantry_schedule *s = build_schedule(g, 2);
    uint32_t in = build_input(s, x.id), before = build_input(s, total.id), out = build_output(s, total.id);
    uint32_t previous = build_instance(s, total.id, 1, 0, 1), result[2], accumulator[2];
    build_copy(s, 0, before, previous);
    for (uint32_t d = 0; d < 2; d++) {
        uint32_t part = build_instance(s, x.id, d + 1, d * N / 2, (d + 1) * N / 2);
        accumulator[d] = build_accumulator(s, total.id, d + 1, GANTRY_SUM);
        build_copy(s, d, in, part);
        build_op(s, GY_OP_FILL, GY_NONE, d);
        s->ops.at[s->ops.count - 1].reduce = GANTRY_SUM;
        build_use_all(s, accumulator[d], GANTRY_WRITE);
        build_op(s, GY_OP_LAUNCH, d, d);
        build_use_all(s, part, GANTRY_READ);
        build_use_all(s, accumulator[d], GANTRY_SUM);
        result[d] = build_instance(s, total.id, d + 1, 0, 1);
    }
    build_collective(s, GANTRY_ALL_REDUCE, GANTRY_SUM, GY_NONE, 2);
    build_use_all(s, accumulator[0], GANTRY_READ);
    build_use_all(s, accumulator[1], GANTRY_READ);
    build_use_all(s, previous, GANTRY_READ);
    build_use_all(s, result[0], GANTRY_WRITE);
    build_use_all(s, result[1], GANTRY_WRITE);
    build_copy(s, 1, result[1], out);
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    for (int i = 0; i < 200; i++) {
        MUST(run_once(run, MUST_ERR));
        MUST(gantry_run_output(run, total, &host, &bytes, MUST_ERR));
        ck_assert_double_eq(*(const double *)host, 1000 + N * (N - 1) / 2);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* A collective node over `ranks` parts of "in" and "out"; what each kind means, spelled out again below. */
static void try_collective(gantry_collective kind, gantry_access op, int ranks, int64_t in_n, int ins, int64_t out_n,
                           int outs)
{
    gantry_graph *g = gantry_graph_new("collective");
    gantry_buffer in = vector(g, "in", in_n), out = vector(g, "out", out_n);
    gantry_buffer_init_iota(g, in);
    gantry_buffer_output(g, out);
    gantry_buffer_split(g, in, ins);
    gantry_buffer_split(g, out, outs);
    gantry_region from[8], to[8];
    for (int i = 0; i < ins; i++)
        from[i] = gantry_part(in, i);
    for (int i = 0; i < outs; i++)
        to[i] = gantry_part(out, i);
    gantry_node n = gantry_graph_collective(g, "c", kind, op, (size_t)ins, from, (size_t)outs, to, 0);
    gantry_schedule *s = build_schedule(g, ranks);
    uint32_t source = build_input(s, in.id), target = build_output(s, out.id), there[8], here[8];
    for (int i = 0; i < ins; i++) {
        there[i] = build_instance(s, in.id, (uint32_t)i + 1, in_n * i / ins, in_n * (i + 1) / ins);
        build_copy(s, (uint32_t)i, source, there[i]);
    }
    build_collective(s, kind, op, n.id, (uint32_t)ranks);
    for (int i = 0; i < ins; i++)
        build_use_all(s, there[i], GANTRY_READ);
    for (int i = 0; i < outs; i++) {
        here[i] = build_instance(s, out.id, (uint32_t)i + 1, out_n * i / outs, out_n * (i + 1) / outs);
        build_use_all(s, here[i], GANTRY_WRITE);
    }
    for (int i = 0; i < outs; i++) {
        build_op(s, GY_OP_COPY, GY_NONE, (uint32_t)i);
        build_use_all(s, here[i], GANTRY_READ);
        build_use(s, target, GANTRY_WRITE, s->instances.at[here[i]].first, s->instances.at[here[i]].last);
    }
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, out, &host, &bytes, MUST_ERR));
    /* in[e] = e; r: which part of out an element is in, e: its place there; p ranks */
    int64_t part_in = in_n / ins, part_out = out_n / outs, p = ranks;
    for (int64_t i = 0; i < out_n; i++) {
        int64_t r = i / part_out, e = i % part_out;
        double sum_of_place_e = (double)(p * e + part_in * p * (p - 1) / 2); /* sum over s of s part_in + e */
        double sum_of_slice = (double)(p * (r * part_out + e) + part_in * p * (p - 1) / 2);
        double expected = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE      ? sum_of_place_e
                          : kind == GANTRY_BROADCAST || kind == GANTRY_ALL_GATHER ? (double)e
                          : kind == GANTRY_SCATTER || kind == GANTRY_GATHER       ? (double)i
                          : kind == GANTRY_REDUCE_SCATTER
                              ? sum_of_slice
                              : (double)(e / (part_in / p) * part_in + r * (part_in / p) + e % (part_in / p));
        if (((const double *)host)[i] != expected) {
            ck_abort_msg("%s, element %d: %g, not %g", gantry_collective_name(kind), (int)i, ((const double *)host)[i],
                         expected);
        }
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}

START_TEST(collectives_of_the_graph)
{
    for (int p = 2; p <= 5; p++) {
        try_collective(GANTRY_ALL_REDUCE, GANTRY_SUM, p, 6 * p, p, 6 * p, p);
        try_collective(GANTRY_REDUCE, GANTRY_SUM, p, 6 * p, p, 6, 1);
        try_collective(GANTRY_BROADCAST, 0, p, 6, 1, 6 * p, p);
        try_collective(GANTRY_SCATTER, 0, p, 6 * p, 1, 6 * p, p);
        try_collective(GANTRY_GATHER, 0, p, 6 * p, p, 6 * p, 1);
        try_collective(GANTRY_ALL_GATHER, 0, p, 6 * p, p, 6 * p * p, p);
        try_collective(GANTRY_REDUCE_SCATTER, GANTRY_SUM, p, 6 * p * p, p, 6 * p, p);
        try_collective(GANTRY_ALL_TO_ALL, 0, p, 2 * p * p, p, 2 * p * p, p);
    }
}
END_TEST

/* in = out: block (s, r) of the 3 x 3 blocks changes places with block (r, s). Every block is overwritten and read. */
START_TEST(an_all_to_all_in_place_needs_room_aside)
{
    enum { P = 3, BLOCK = 2, ALL = P * P * BLOCK };
    gantry_graph *g = gantry_graph_new("place");
    gantry_buffer x = vector(g, "x", ALL);
    gantry_buffer_init_iota(g, x);
    gantry_buffer_output(g, x);
    gantry_buffer_split(g, x, P);
    gantry_region part[P];
    for (int i = 0; i < P; i++)
        part[i] = gantry_part(x, i);
    gantry_node n = gantry_graph_collective(g, "c", GANTRY_ALL_TO_ALL, 0, P, part, P, part, 0);
    gantry_schedule *s = build_schedule(g, P);
    uint32_t in = build_input(s, x.id), out = build_output(s, x.id), at[P];
    for (uint32_t i = 0; i < P; i++) {
        at[i] = build_instance(s, x.id, i + 1, i * P * BLOCK, (i + 1) * P * BLOCK);
        build_copy(s, i, in, at[i]);
    }
    build_collective(s, GANTRY_ALL_TO_ALL, 0, n.id, P);
    for (int k = 0; k < 2 * P; k++)
        build_use_all(s, at[k % P], k < P ? GANTRY_READ : GANTRY_WRITE);
    for (uint32_t i = 0; i < P; i++) {
        build_op(s, GY_OP_COPY, GY_NONE, i);
        build_use_all(s, at[i], GANTRY_READ);
        build_use(s, out, GANTRY_WRITE, s->instances.at[at[i]].first, s->instances.at[at[i]].last);
    }
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, x, &host, &bytes, MUST_ERR));
    for (int r = 0; r < P; r++) {
        for (int from = 0; from < P; from++) {
            for (int e = 0; e < BLOCK; e++) {
                double expected = from * P * BLOCK + r * BLOCK + e;
                ck_assert_double_eq(((const double *)host)[(r * P + from) * BLOCK + e], expected);
            }
        }
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

/* ---- handles ---- */

static int opened, closed;
static gantry_status open_status;

static gantry_status open_handle(void **handle, int32_t ordinal)
{
    ck_assert_int_eq(ordinal, -1);
    if (open_status)
        return open_status;
    opened++;
    *handle = malloc(1);
    return *handle ? GANTRY_OK : GANTRY_E_NOMEM;
}

static void close_handle(void *handle)
{
    closed++;
    free(handle);
}

static gantry_status use_handle(const gantry_launch *l)
{
    data_of(l, 0)[0] = l->handle ? 1 : 0;
    return GANTRY_OK;
}

START_TEST(kernels_get_a_handle_per_device)
{
    static const gantry_kernel_arg arg = { .name = "y", .access = GANTRY_WRITE };
    static const gantry_kernel kernel = { .struct_size = sizeof kernel,
                                          .name = "handled",
                                          .summary = "needs a handle",
                                          .arg = &arg,
                                          .arg_size = sizeof arg,
                                          .args = 1,
                                          .host = use_handle,
                                          .open = open_handle,
                                          .close = close_handle };
    gantry_graph *g = gantry_graph_new("handles");
    gantry_buffer y = vector(g, "y", 4);
    gantry_buffer_split(g, y, 4);
    gantry_buffer_output(g, y);
    gantry_graph_add_kernel(g, &kernel);
    for (int i = 0; i < 4; i++)
        gantry_node_arg(g, gantry_graph_kernel(g, "h", "handled"), "y", gantry_part(y, i));
    gantry_schedule *s = build_schedule(g, 2);
    uint32_t out = build_output(s, y.id);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t ys = build_instance(s, y.id, i % 2 + 1, i, i + 1);
        build_op(s, GY_OP_LAUNCH, i, i % 2);
        build_use_all(s, ys, GANTRY_WRITE);
        build_op(s, GY_OP_COPY, GY_NONE, i % 2);
        build_use_all(s, ys, GANTRY_READ);
        build_use(s, out, GANTRY_WRITE, i, i + 1);
    }
    gantry_run *run = NULL;
    const void *host = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_new(&run, s, NULL, MUST_ERR));
    ck_assert_int_eq(opened, 2);
    MUST(run_once(run, MUST_ERR));
    MUST(gantry_run_output(run, y, &host, &bytes, MUST_ERR));
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(((const double *)host)[i], 1);
    ck_assert_int_eq(closed, 0);
    gantry_run_free(run);
    ck_assert_int_eq(closed, 2);
    open_status = GANTRY_E_DEVICE;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_run_new(&run, s, NULL, &err), GANTRY_E_DEVICE);
    ck_assert_str_eq(err.text,
                     "kernel \"handled\" of node \"h\" could not be opened on device \"dev0\": a device, driver "
                     "or library call failed");
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run collectives");
    TCase *all = tcase_create("all");
    tcase_add_test(all, an_inserted_reduction_combines_in_order);
    tcase_add_test(all, collectives_of_the_graph);
    tcase_add_test(all, an_all_to_all_in_place_needs_room_aside);
    tcase_add_test(all, kernels_get_a_handle_per_device);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
