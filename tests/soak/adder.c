/* SPDX-License-Identifier: Apache-2.0 */
#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool told(gantry_status status, const gantry_error *err)
{
    char text[1024];
    if (status == GANTRY_OK)
        return false;
    gantry_error_format(err, text, sizeof text);
    fprintf(stderr, "%s: %s\n", gantry_status_name(status), text);
    return true;
}

static bool is_gpu(const gantry_machine *m, size_t i)
{
    gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
    return gantry_machine_device(m, i, &info, NULL) == GANTRY_OK && info.gpu;
}

bool count_gpus(const settings *s)
{
    gantry_machine *m = NULL;
    int gpus = 0;
    if (gantry_machine_detect(&m, NULL, NULL))
        return false;
    for (size_t i = 0; i < gantry_machine_device_count(m); i++)
        gpus += is_gpu(m, i);
    gantry_machine_free(m);
    return gpus >= s->devices;
}

gantry_machine *make_machine(const settings *s, int devices)
{
    gantry_error err = { 0 };
    gantry_machine *all = NULL, *some = NULL;
    char count[20];
    snprintf(count, sizeof count, "%d", devices);
    if (strcmp(s->backend, "cuda") != 0) {
        told(gantry_machine_virtual(&some, devices, &err), &err);
        return some;
    }
    if (!told(gantry_machine_detect(&all, NULL, &err), &err))
        told(gantry_machine_select(&some, all, count, &err), &err);
    gantry_machine_free(all);
    return some;
}

static gantry_buffer add_buffer(gantry_graph *g, const char *name, int64_t rows, int parts)
{
    gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_F64, 1, &rows);
    if (parts > 1)
        gantry_buffer_split(g, b, parts);
    return b;
}

const char *device_id(const gantry_machine *machine, const settings *s, int nth)
{
    gantry_device_info info = GANTRY_DEVICE_INFO_INIT;
    bool gpus = strcmp(s->backend, "cuda") == 0;
    size_t count = machine ? gantry_machine_device_count(machine) : 0;
    nth %= s->devices;
    for (size_t i = 0; i < count; i++)
        if (gantry_machine_device(machine, i, &info, NULL) == GANTRY_OK && (info.gpu || !gpus) && nth-- == 0)
            return info.id;
    return "0";
}

static void add_nodes(gantry_graph *g, const adder *a, const settings *s, gantry_buffer total, int parts)
{
    for (int i = 0; i < parts; i++) {
        const char *where = device_id(a->machine, s, i);
        gantry_region in = parts > 1 ? gantry_part(a->in, i) : gantry_all(a->in);
        gantry_region sum = parts > 1 ? gantry_part(total, i) : gantry_all(total);
        gantry_region out = parts > 1 ? gantry_part(a->out, i) : gantry_all(a->out);
        gantry_node n = gantry_graph_kernel(g, "add", "saxpy");
        gantry_node_on(g, n, where);
        gantry_node_scalar(g, n, "a", 1);
        gantry_node_arg(g, n, "x", in);
        gantry_node_arg(g, n, "y", sum);
        n = gantry_graph_kernel(g, "twice", "scale");
        gantry_node_on(g, n, where);
        gantry_node_scalar(g, n, "a", 2);
        gantry_node_arg(g, n, "x", sum);
        gantry_node_arg(g, n, "y", out);
        n = gantry_graph_kernel(g, "most", "reduce_max");
        gantry_node_on(g, n, where);
        gantry_node_arg(g, n, "x", in);
        gantry_node_arg(g, n, "out", gantry_all(a->most));
    }
}

static gantry_graph *make_graph(adder *a, const settings *s, int parts)
{
    gantry_graph *g = gantry_graph_new("adder");
    a->in = add_buffer(g, "in", a->rows, parts);
    gantry_buffer_init_value(g, a->in, 0);
    gantry_buffer total = add_buffer(g, "total", a->rows, parts);
    gantry_buffer_set_class(g, total, GANTRY_STATE);
    gantry_buffer_init_value(g, total, 0);
    a->out = add_buffer(g, "out", a->rows, parts);
    gantry_buffer_output(g, a->out);
    a->most = add_buffer(g, "most", 1, 1);
    gantry_buffer_init_value(g, a->most, -1);
    gantry_buffer_output(g, a->most);
    add_nodes(g, a, s, total, parts);
    return g;
}

bool open_run(gantry_schedule **schedule, gantry_run **run, gantry_graph *g, const gantry_machine *machine,
              const settings *s, double deadline_us)
{
    gantry_error err = { 0 };
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_run_options how = GANTRY_RUN_OPTIONS_INIT;
    options.effort = 0; /* devices are said */
    options.replay = s->replay;
    how.backend = s->backend;
    how.deadline_us = deadline_us;
    return !told(gantry_schedule_new(schedule, g, machine, &options, &err), &err) &&
           !told(gantry_run_new(run, *schedule, &how, &err), &err);
}

static bool open_all(adder *a, const settings *s, gantry_graph *g)
{
    gantry_error err = { 0 };
    return a->machine && open_run(&a->schedule, &a->run, g, a->machine, s, 0) &&
           !told(gantry_run_bind(a->run, a->in, a->input, (uint64_t)a->rows * sizeof(double), &err), &err);
}

bool adder_make(adder *a, const settings *s, int rows, int parts)
{
    *a = (adder){ .rows = rows };
    a->machine = make_machine(s, s->devices);
    gantry_graph *g = make_graph(a, s, parts);
    bool fine = open_all(a, s, g);
    gantry_graph_free(g);
    return fine;
}

void adder_free(adder *a)
{
    gantry_run_free(a->run);
    gantry_schedule_free(a->schedule);
    gantry_machine_free(a->machine);
}

static bool is_right(const adder *a, const double *out, double most)
{
    double largest = -1;
    for (int i = 0; i < a->rows; i++) {
        if (out[i] != 2 * a->total[i])
            return false;
        largest = a->input[i] > largest ? a->input[i] : largest;
    }
    return most == largest;
}

bool adder_start(adder *a)
{
    gantry_error err = { 0 };
    uint64_t ticket;
    const void *out, *most;
    a->starts++;
    for (int i = 0; i < a->rows; i++) {
        a->input[i] = (double)((a->starts * 7 + (uint64_t)i * 13) % 1009);
        a->total[i] += a->input[i];
    }
    if (told(gantry_run_start(a->run, &ticket, &err), &err) || told(gantry_run_wait(a->run, ticket, &err), &err) ||
        told(gantry_run_output(a->run, a->out, &out, NULL, &err), &err) ||
        told(gantry_run_output(a->run, a->most, &most, NULL, &err), &err))
        return false;
    if (!is_right(a, out, *(const double *)most) && a->wrong++ == 0)
        fprintf(stderr, "start %" PRIu64 ": wrong result\n", a->starts);
    return true;
}
