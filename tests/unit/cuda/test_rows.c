/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over rows: sparse matrices that are odd or wrong, logits that are masked or far apart, labels that are not
 * there; and the two kernels that are made for tests. The real gantry-cuda.so on the emulator of
 * tests/support/cuda_emulator. */
#include "control.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct work {
    gantry_graph *graph;
    gantry_machine *machine;
    gantry_schedule *schedule;
    gantry_run *run;
} work;

static work begin(const char *text, const char *backend)
{
    work w;
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_graph_parse(&w.graph, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    w.machine = gpu_machine(1, false);
    w.schedule = make_schedule(w.graph, w.machine, "stream", NULL);
    w.run = open_run(w.schedule, backend);
    return w;
}

static void end(work *w)
{
    gantry_run_free(w->run);
    gantry_schedule_free(w->schedule);
    gantry_machine_free(w->machine);
    gantry_graph_free(w->graph);
}

static void bind(work *w, const char *name, const void *data, size_t bytes)
{
    MUST(gantry_run_bind(w->run, gantry_graph_find_buffer(w->graph, name), data, bytes, MUST_ERR));
}

static void bind_output(work *w, const char *name, void *data, size_t bytes)
{
    MUST(gantry_run_bind_output(w->run, gantry_graph_find_buffer(w->graph, name), data, bytes, MUST_ERR));
}

static gantry_status carry_out(work *w, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(w->run, &ticket, err);
    return status ? status : gantry_run_wait(w->run, ticket, err);
}

/* ---- spmv_csr ---- */

enum { ROWS = 700, COLUMNS = 90, ENTRIES = 9000 };

typedef struct sparse {
    int32_t row[ROWS + 1], column[ENTRIES];
    double value[ENTRIES], vector[COLUMNS];
} sparse;

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* A few long rows, many short and empty ones. */
static void make(sparse *m)
{
    uint32_t state = 1;
    for (int r = 0; r <= ROWS; r++) {
        m->row[r] = r < 20   ? r * 5
                    : r < 30 ? 95 + (r - 19) * 700
                             : 7795 + (int)((ENTRIES - 7795.0) * (r - 29) / (ROWS - 29));
    }
    for (int k = 0; k < ENTRIES; k++) {
        m->column[k] = (int32_t)(draw(&state) % COLUMNS);
        m->value[k] = draw(&state) / 1e6 - 8;
    }
    for (int c = 0; c < COLUMNS; c++)
        m->vector[c] = ldexp(draw(&state), (int)(draw(&state) % 60) - 50);
}

static gantry_status multiply(const sparse *m, const char *backend, double *y, gantry_error *err)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"r\":{\"dtype\":\"i32\",\"shape\":[%d],\"class\":\"input\"},\"c\":{\"dtype\":"
             "\"i32\",\"shape\":[%d],\"class\":\"input\"},\"v\":{\"dtype\":\"f64\",\"shape\":[%d],\"class\":\"input\"},"
             "\"x\":{\"dtype\":\"f64\",\"shape\":[%d],\"class\":\"input\"},\"y\":{\"dtype\":\"f64\",\"shape\":[%d],"
             "\"output\":true}},\"nodes\":[{\"id\":\"k\",\"kernel\":\"spmv_csr\",\"args\":{\"row_ptr\":\"r\",\"col\":"
             "\"c\",\"val\":\"v\",\"x\":\"x\",\"y\":\"y\"}}]}",
             ROWS + 1, ENTRIES, ENTRIES, COLUMNS, ROWS);
    work w = begin(text, backend);
    bind(&w, "r", m->row, sizeof m->row);
    bind(&w, "c", m->column, sizeof m->column);
    bind(&w, "v", m->value, sizeof m->value);
    bind(&w, "x", m->vector, sizeof m->vector);
    bind_output(&w, "y", y, ROWS * sizeof *y);
    gantry_status status = carry_out(&w, err);
    end(&w);
    return status;
}

/* In the host's order: sums whose bits depend on it. 0: as it should be; 1: rows that do not follow each other; 2: rows
 * that share their entries. */
START_TEST(sparse_rows)
{
    static sparse m;
    double y[ROWS];
    make(&m);
    if (_i == 1) {
        m.row[25] = m.row[30];
        m.row[400] = 0;
    } else if (_i == 2) {
        for (int r = 0; r <= ROWS; r += 2)
            m.row[r] = 0;
    }
    MUST(multiply(&m, "cuda", y, MUST_ERR));
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int k = m.row[r]; k < m.row[r + 1]; k++)
            sum += m.value[k] * m.vector[m.column[k]];
        ck_assert_msg(memcmp(&sum, &y[r], sizeof sum) == 0, "row %d: %.17g, not %.17g", r, y[r], sum);
    }
}
END_TEST

/* The first row that is wrong is named, as by the host. */
START_TEST(sparse_wrong)
{
    static sparse m;
    double y[ROWS];
    char row[80];
    make(&m);
    int first = 0;
    switch (_i) {
    case 0: /* columns that are not there */
        for (int r = 27; r < ROWS; r++)
            m.column[m.row[r]] = r % 2 ? COLUMNS : -1;
        first = 27;
        break;
    case 1: /* entries that are not there */
        m.row[ROWS] = ENTRIES + 1;
        first = ROWS - 1;
        break;
    default:
        m.row[0] = -3;
        first = 0;
        break;
    }
    gantry_error cuda = { 0 }, host = { 0 };
    ck_assert_int_eq(multiply(&m, "cuda", y, &cuda), GANTRY_E_KERNEL);
    ck_assert_int_eq(multiply(&m, "host", y, &host), GANTRY_E_KERNEL);
    snprintf(row, sizeof row, "its kernel left %d in the status word", first + 1);
    ck_assert_msg(strstr(cuda.text, row) != NULL, "%s", cuda.text);
}
END_TEST

/* ---- softmax_xent and its gradient ---- */

enum { MOST = 3000 };

typedef struct cross {
    int rows, classes;
    double logits[MOST];
    int32_t label[MOST];
} cross;

static gantry_status both(const cross *c, const char *dtype, double *loss, double *grad, gantry_error *err)
{
    char text[1024];
    float f[MOST], g[MOST], l = 1.5f;
    size_t n = (size_t)c->rows * (size_t)c->classes, size = strcmp(dtype, "f32") == 0 ? 4 : 8;
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"class\":\"input\"},\"t\":{"
             "\"dtype\":\"i32\",\"shape\":[%d],\"class\":\"input\"},\"loss\":{\"dtype\":\"%s\",\"shape\":[1],\"init\":"
             "1.5,\"output\":true},\"grad\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"output\":true}},\"nodes\":[{\"id\":"
             "\"l\",\"kernel\":\"softmax_xent\",\"args\":{\"scale\":0.5,\"logits\":\"x\",\"labels\":\"t\",\"loss\":"
             "\"loss\"}},{\"id\":\"g\",\"kernel\":\"softmax_xent_grad\",\"args\":{\"scale\":0.5,\"logits\":\"x\","
             "\"labels\":\"t\",\"grad\":\"grad\"}}]}",
             dtype, c->rows, c->classes, c->rows, dtype, dtype, c->rows, c->classes);
    work w = begin(text, "cuda");
    for (size_t i = 0; i < n; i++)
        f[i] = (float)c->logits[i];
    bind(&w, "x", size == 4 ? (const void *)f : c->logits, n * size);
    bind(&w, "t", c->label, (size_t)c->rows * sizeof *c->label);
    bind_output(&w, "loss", size == 4 ? (void *)&l : loss, size);
    bind_output(&w, "grad", size == 4 ? (void *)g : grad, n * size);
    gantry_status status = carry_out(&w, err);
    for (size_t i = 0; i < n && size == 4; i++)
        grad[i] = (double)g[i];
    *loss = size == 4 ? (double)l : *loss;
    end(&w);
    return status;
}

/* Logits that are multiples of 1/8 and large, so that f32 holds them and a sum without its largest would overflow;
 * some masked. */
static cross logits_of(int rows, int classes)
{
    cross c = { .rows = rows, .classes = classes };
    uint32_t state = 7;
    for (int r = 0; r < rows; r++) {
        c.label[r] = (int32_t)(draw(&state) % (uint32_t)classes);
        for (int k = 0; k < classes; k++) {
            double x = (double)(draw(&state) % 400) / 8 + (r % 2 ? 1000 : -1000);
            c.logits[r * classes + k] = k != c.label[r] && draw(&state) % 5 == 0 ? (double)-INFINITY : x;
        }
    }
    return c;
}

/* By the definition, in long double. */
START_TEST(cross_entropy)
{
    static const int shapes[][2] = { { 1, 1 }, { 9, 3 }, { 20, 33 }, { 2, 1025 }, { 1, 3000 }, { 1000, 3 } };
    static cross c;
    static double grad[MOST];
    const char *dtype = _i % 2 ? "f32" : "f64";
    double loss = 0, unit = _i % 2 ? 0x1p-24 : 0x1p-53, bound = 64 * unit; /* 50 and more u from rounding x - largest */
    long double total = 0;
    c = logits_of(shapes[_i / 2][0], shapes[_i / 2][1]);
    MUST(both(&c, dtype, &loss, grad, MUST_ERR));
    for (int r = 0; r < c.rows; r++) {
        const double *x = c.logits + r * c.classes;
        long double top = -INFINITY, sum = 0;
        for (int k = 0; k < c.classes; k++)
            top = x[k] > top ? x[k] : top;
        for (int k = 0; k < c.classes; k++)
            sum += expl(x[k] - top);
        total += logl(sum) + top - x[c.label[r]];
        for (int k = 0; k < c.classes; k++) {
            double want = (double)(0.5L * (expl(x[k] - top) / sum - (k == c.label[r])));
            ck_assert_msg(fabs(grad[r * c.classes + k] - want) <= bound, "%s row %d class %d: %.17g, not %.17g", dtype,
                          r, k, grad[r * c.classes + k], want);
        }
    }
    double want = (double)(1.5L + 0.5L * total);
    ck_assert_msg(fabs(loss - want) <= (bound + 4 * 0x1p-53 * 1050) * c.rows + 4 * unit * fabs(want),
                  "%s: %.17g, not %.17g", dtype, loss, want);
}
END_TEST

/* All of a row masked, or one that is infinite: no number, here as on the host, and only there. */
START_TEST(no_number)
{
    static cross c;
    double loss = 0, grad[MOST];
    c = logits_of(4, 40);
    for (int k = 0; k < 40; k++)
        c.logits[40 + k] = (double)-INFINITY;
    c.logits[80 + 17] = (double)INFINITY;
    c.logits[120 + 3] = (double)NAN;
    MUST(both(&c, _i ? "f32" : "f64", &loss, grad, MUST_ERR));
    ck_assert(isnan(loss));
    for (int k = 0; k < 160; k++) {
        ck_assert_msg(isnan(grad[k]) == (k >= 40 && !(k >= 80 && k < 120 && k != 97)) || (k >= 80 && k < 120),
                      "element %d is %g", k, grad[k]);
    }
}
END_TEST

START_TEST(label_is_not_there)
{
    static cross c;
    double loss = 0, grad[MOST];
    gantry_error err = { 0 };
    c = logits_of(30, 20);
    c.label[13] = _i ? -2 : 20;
    ck_assert_int_eq(both(&c, "f32", &loss, grad, &err), GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, _i ? "left -2 in" : "left 21 in") != NULL, "%s", err.text);
}
END_TEST

/* ---- fail, busy ---- */

static gantry_status failing(int how, int from, float *y, gantry_error *err)
{
    char text[600];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[70],\"init\":\"iota\"},\"y\":{\"dtype\":"
             "\"f32\",\"shape\":[70],\"output\":true}},\"nodes\":[{\"repeat\":3,\"nodes\":[{\"id\":\"k\",\"kernel\":"
             "\"fail\",\"args\":{\"how\":%d,\"from\":%d,\"x\":\"x\",\"y\":\"y\"}}]}]}",
             how, from);
    work w = begin(text, "cuda");
    bind_output(&w, "y", y, 70 * sizeof *y);
    gantry_status status = carry_out(&w, err);
    end(&w);
    return status;
}

START_TEST(fails_as_told)
{
    float y[70];
    gantry_error err = { 0 };
    for (int how = 0; how <= 3; how++) {
        ck_assert_int_eq(failing(how, 3, y, &err), GANTRY_OK);
        ck_assert_float_eq(y[69], 69);
        ck_assert_float_eq(y[0], 0);
    }
    ck_assert_int_eq(failing(1, 2, y, &err), GANTRY_E_KERNEL);
    ck_assert_int_eq(failing(2, 2, y, &err), GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, "left 7 in the status word") != NULL, "%s", err.text);
    ck_assert_int_eq(failing(3, 2, y, &err), GANTRY_OK);
    ck_assert(isnan(y[0]) && y[1] == 1);
}
END_TEST

START_TEST(busy_scales)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"i8\",\"shape\":[1000],\"init\":\"iota\"},\"y\":{\"dtype\":"
        "\"i8\",\"shape\":[1000],\"output\":true}},\"nodes\":[{\"id\":\"k\",\"kernel\":\"busy\",\"args\":{\"us\":3,"
        "\"a\":-3,\"x\":\"x\",\"y\":\"y\"}}]}";
    int8_t y[1000];
    gantry_error err = { 0 };
    work w = begin(text, "cuda");
    bind_output(&w, "y", y, sizeof y);
    MUST(carry_out(&w, MUST_ERR));
    ck_assert_int_eq(carry_out(&w, &err), GANTRY_OK);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq((uint8_t)y[i], (uint8_t)(-3 * i));
    end(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda rows");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, sparse_rows, 0, 3);
    tcase_add_loop_test(tests, sparse_wrong, 0, 3);
    tcase_add_loop_test(tests, cross_entropy, 0, 12);
    tcase_add_loop_test(tests, no_number, 0, 2);
    tcase_add_loop_test(tests, label_is_not_there, 0, 2);
    tcase_add_test(tests, fails_as_told);
    tcase_add_test(tests, busy_scales);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
