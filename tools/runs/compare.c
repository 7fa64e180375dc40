/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --compare: predicted against measured, op by op. Both are in the trace of the last start: process 0 (with
 * phases: each even one) is what was measured, and each of its slices carries the prediction. */
#include "runs/run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 10 };

typedef struct op_time {
    const char *name, *kind, *kernel, *dtype; /* the last two: NULL where it calls no kernel */
    double predicted, measured;
} op_time;

/* Ops that should take alike: of one kernel and element type, else of one kind. */
typedef struct op_class {
    const op_time *first;
    json_int_t ops;
    double predicted, measured; /* sums */
} op_class;

static int by_difference(const void *a, const void *b)
{
    const op_time *x = a, *y = b;
    double dx = fabs(x->measured - x->predicted), dy = fabs(y->measured - y->predicted);
    if (dx != dy)
        return dx < dy ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* A collective has a slice for each of its lanes, one after another: it counts once. */
static size_t collect(json_t *events, op_time *ops)
{
    size_t i, count = 0;
    json_t *event;
    json_int_t last = -1, process = 0;
    json_array_foreach(events, i, event)
    {
        json_t *args = json_object_get(event, "args"), *op = json_object_get(args, "op");
        json_int_t pid = json_integer_value(json_object_get(event, "pid"));
        if (!op || pid % 2 != 0 || (pid == process && json_integer_value(op) == last))
            continue;
        last = json_integer_value(op);
        process = pid;
        ops[count++] = (op_time){
            json_string_value(json_object_get(event, "name")),        json_string_value(json_object_get(event, "cat")),
            json_string_value(json_object_get(args, "kernel")),       json_string_value(json_object_get(args, "dtype")),
            json_number_value(json_object_get(args, "predicted_us")), json_number_value(json_object_get(event, "dur"))
        };
    }
    return count;
}

/* ---- sums ---- */

static void add_to_kind(json_t *kinds, const op_time *op)
{
    json_t *kind = json_object_get(kinds, op->kind);
    if (!kind) {
        kind = json_pack("{s:i, s:f, s:f}", "ops", 0, "predicted_us", 0.0, "measured_us", 0.0);
        json_object_set_new(kinds, op->kind, kind);
    }
    json_t *predicted = json_object_get(kind, "predicted_us"), *measured = json_object_get(kind, "measured_us");
    json_object_set_new(kind, "ops", json_integer(json_integer_value(json_object_get(kind, "ops")) + 1));
    json_real_set(predicted, json_real_value(predicted) + op->predicted);
    json_real_set(measured, json_real_value(measured) + op->measured);
}

static int by_text(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static int by_class(const void *a, const void *b)
{
    const op_time *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);
    order = order ? order : by_text(x->kernel, y->kernel);
    return order ? order : by_text(x->dtype, y->dtype);
}

/* The class whose ops are furthest off together comes first. */
static int worst_first(const void *a, const void *b)
{
    const op_class *x = a, *y = b;
    double dx = fabs(x->measured - x->predicted), dy = fabs(y->measured - y->predicted);
    if (dx != dy)
        return dx < dy ? 1 : -1;
    return by_class(x->first, y->first);
}

/* Sorts `ops`. */
static size_t find_classes(op_time *ops, size_t count, op_class *classes)
{
    size_t found = 0;
    qsort(ops, count, sizeof *ops, by_class);
    for (size_t i = 0; i < count; i++) {
        if (!found || by_class(classes[found - 1].first, &ops[i]) != 0)
            classes[found++] = (op_class){ .first = &ops[i] };
        op_class *c = &classes[found - 1];
        c->ops++;
        c->predicted += ops[i].predicted;
        c->measured += ops[i].measured;
    }
    qsort(classes, found, sizeof *classes, worst_first);
    return found;
}

static json_t *classes_json(op_time *ops, size_t count)
{
    op_class *classes = malloc((count + 1) * sizeof *classes);
    json_t *list = classes ? json_array() : NULL;
    size_t found = list ? find_classes(ops, count, classes) : 0;
    for (size_t i = 0; i < found; i++) {
        const op_class *c = &classes[i];
        double ops_of = (double)c->ops;
        json_array_append_new(list, json_pack("{s:s, s:s?, s:s?, s:I, s:f, s:f}", "kind", c->first->kind, "kernel",
                                              c->first->kernel, "dtype", c->first->dtype, "ops", c->ops, "predicted_us",
                                              c->predicted / ops_of, "measured_us", c->measured / ops_of));
    }
    free(classes);
    return list;
}

static json_t *largest_json(op_time *ops, size_t count)
{
    json_t *largest = json_array();
    qsort(ops, count, sizeof *ops, by_difference);
    for (size_t i = 0; i < count && i < LARGEST; i++)
        json_array_append_new(largest, json_pack("{s:s, s:s, s:f, s:f}", "op", ops[i].name, "kind", ops[i].kind,
                                                 "predicted_us", ops[i].predicted, "measured_us", ops[i].measured));
    return largest;
}

static json_t *summarize(const session *s, op_time *ops, size_t count)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    json_t *kinds = json_object();
    for (size_t i = 0; i < count; i++)
        add_to_kind(kinds, &ops[i]);
    double predicted = gantry_run_get_info(s->run, &info, NULL) ? 0 : info.predicted_us;
    json_t *classes = classes_json(ops, count), *largest = largest_json(ops, count);
    return json_pack("{s:f, s:{s:f, s:f}, s:o, s:o, s:o}", "measured_over_predicted",
                     predicted > 0 ? s->measured_us / predicted : 0.0, "makespan", "predicted_us", predicted,
                     "measured_us", s->measured_us, "kinds", kinds, "classes", classes, "largest", largest);
}

int compare_times(const session *s, json_t **comparison)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_run_trace(s->run, &text, &length, &err))
        return fail(&err);
    json_t *trace = json_loadb(text, length, 0, NULL), *events = json_object_get(trace, "traceEvents");
    gantry_free(text);
    op_time *ops = malloc((json_array_size(events) + 1) * sizeof *ops);
    *comparison = ops && trace ? summarize(s, ops, collect(events, ops)) : NULL;
    free(ops);
    json_decref(trace);
    if (*comparison)
        return EXIT_FINE;
    return fail_nomem();
}

/* ---- text ---- */

static void print_heading(FILE *to, const char *title, bool counted)
{
    fprintf(to, "\n  %-40s %8s %12s %12s %8s\n", title, counted ? "ops" : "", "predicted", "measured", "ratio");
}

static void print_line(FILE *to, const char *name, json_t *times)
{
    char text[2][UNIT_TEXT];
    double predicted = json_real_value(json_object_get(times, "predicted_us"));
    double measured = json_real_value(json_object_get(times, "measured_us"));
    json_t *ops = json_object_get(times, "ops");
    fprintf(to, "  %-40s ", name);
    if (ops)
        fprintf(to, "%8lld", (long long)json_integer_value(ops));
    else
        fprintf(to, "%8s", "");
    fprintf(to, " %12s %12s", time_text(text[0], predicted), time_text(text[1], measured));
    if (predicted > 0)
        fprintf(to, " %8.2f", measured / predicted);
    fprintf(to, "\n");
}

/* "gemm f32", "copy" */
static void print_class(FILE *to, json_t *class)
{
    char name[128];
    const char *kernel = json_string_value(json_object_get(class, "kernel"));
    const char *dtype = json_string_value(json_object_get(class, "dtype"));
    snprintf(name, sizeof name, "%s%s%s", kernel ? kernel : json_string_value(json_object_get(class, "kind")),
             dtype ? " " : "", dtype ? dtype : "");
    print_line(to, name, class);
}

void print_comparison(FILE *to, json_t *comparison)
{
    const char *kind;
    json_t *times;
    size_t i;
    fprintf(to, "  measured / predicted = %.3f\n",
            json_real_value(json_object_get(comparison, "measured_over_predicted")));
    print_heading(to, "all of it", false);
    print_line(to, "a start", json_object_get(comparison, "makespan"));
    print_heading(to, "all ops of a kind", true);
    json_object_foreach(json_object_get(comparison, "kinds"), kind, times) print_line(to, kind, times);
    print_heading(to, "one op on average, worst first", true);
    json_array_foreach(json_object_get(comparison, "classes"), i, times) print_class(to, times);
    print_heading(to, "ops furthest off", false);
    json_array_foreach(json_object_get(comparison, "largest"), i, times)
        print_line(to, json_string_value(json_object_get(times, "op")), times);
    fprintf(to, "\n");
}
