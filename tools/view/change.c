/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Changes of a schedule in words. Rates are changed in the machine's own format, whose normal form has an entry for
 * each pair of memories. A route that is given a rate reaches it: what it goes through is made as fast where it is
 * slower, so that a copy that is alone takes its latency and its bytes over that rate.
 */
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A negative number: as it was. */
typedef struct rates {
    char from[64], to[64];
    double gbs, latency_us;
} rates;

/* ---- words ---- */

static int refuse_route(const char *word)
{
    complain("--route \"%s\" must be FROM:TO=GBps=RATE,latency_us=US, or one of the two, such as "
             "gpu0:gpu1=GBps=50; FROM and TO are memories of the machine, and * behind a beginning is all of them\n",
             word);
    return EXIT_USAGE;
}

static bool read_number(const char **at, const char *name, double *to)
{
    char *end;
    size_t length = strlen(name);
    if (strncmp(*at, name, length) != 0)
        return false;
    double number = strtod(*at + length, &end);
    if (end == *at + length || !(number >= 0) || number > 1e300)
        return false;
    *to = number;
    *at = end;
    return true;
}

static int read_route(rates *r, const char *word)
{
    int length = 0;
    *r = (rates){ .gbs = -1, .latency_us = -1 };
    if (sscanf(word, "%63[^:=]:%63[^:=]=%n", r->from, r->to, &length) != 2 || !length)
        return refuse_route(word);
    const char *at = word + length;
    for (bool more = true; more; at += more) {
        if (!read_number(&at, "GBps=", &r->gbs) && !read_number(&at, "latency_us=", &r->latency_us))
            return refuse_route(word);
        more = *at == ',';
    }
    return *at || r->gbs == 0 ? refuse_route(word) : EXIT_FINE;
}

/* "gpu*" is every id that begins so. */
static bool is_meant(const char *pattern, const char *id)
{
    size_t length = strlen(pattern);
    bool open = length && pattern[length - 1] == '*';
    return open ? strncmp(pattern, id, length - 1) == 0 : strcmp(pattern, id) == 0;
}

/* ---- the machine ---- */

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A curve as the latency and the rate that it has at its ends. */
static void straighten(json_t *route, double *latency_us, double *gbs)
{
    json_t *points = json_object_get(route, "points");
    size_t count = json_array_size(points);
    if (count < 2) {
        *latency_us = json_number_value(json_object_get(route, "latency_us"));
        *gbs = json_number_value(json_object_get(route, "bandwidth_gbs"));
        return;
    }
    double at[2][2];
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            at[i][k] = json_number_value(json_array_get(json_array_get(points, count - 2 + i), k));
    *latency_us = json_number_value(json_array_get(json_array_get(points, 0), 1));
    *gbs = (at[1][0] - at[0][0]) / (at[1][1] - at[0][1]) / 1000;
    json_object_del(route, "points");
}

static int set_number(json_t *object, const char *key, double number)
{
    return json_object_set_new(object, key, json_real(number)) ? fail_nomem() : EXIT_FINE;
}

static int widen(json_t *machine, json_t *route, double gbs)
{
    size_t i;
    json_t *name, *resources = json_object_get(machine, "resources");
    int code = EXIT_FINE;
    json_array_foreach(json_object_get(route, "via"), i, name)
    {
        const char *key = json_string_value(name);
        if (!code && json_number_value(json_object_get(resources, key)) < gbs)
            code = set_number(resources, key, gbs);
    }
    return code;
}

static int change_route(json_t *machine, json_t *route, const rates *r)
{
    double latency_us, gbs;
    straighten(route, &latency_us, &gbs);
    int code = set_number(route, "latency_us", r->latency_us >= 0 ? r->latency_us : latency_us);
    if (!code)
        code = set_number(route, "bandwidth_gbs", r->gbs > 0 ? r->gbs : gbs);
    return code || r->gbs < 0 ? code : widen(machine, route, r->gbs);
}

static int change_routes(json_t *machine, const char *word)
{
    rates r;
    size_t i, changed = 0;
    json_t *route, *routes = json_object_get(machine, "routes");
    int code = read_route(&r, word);
    json_array_foreach(routes, i, route)
    {
        const char *from = text_of(route, "from"), *to = text_of(route, "to");
        bool exact = strcmp(r.from, from) == 0 && strcmp(r.to, to) == 0;
        if (code || !is_meant(r.from, from) || !is_meant(r.to, to) || (strcmp(from, to) == 0 && !exact))
            continue;
        code = change_route(machine, route, &r);
        changed++;
    }
    if (code || changed)
        return code;
    json_t *first = json_array_get(routes, 0);
    complain("--route \"%s\": machine \"%s\" has no direct route from \"%s\" to \"%s\"; its first goes from \"%s\" to "
             "\"%s\", and `gantry machine FILE` shows all\n",
             word, text_of(machine, "name"), r.from, r.to, text_of(first, "from"), text_of(first, "to"));
    return EXIT_USAGE;
}

static int no_resource(json_t *machine, const char *word, const char *name)
{
    json_t *value, *resources = json_object_get(machine, "resources");
    const char *key, **names = calloc(json_object_size(resources) + 1, sizeof *names);
    char near[256] = "";
    size_t count = 0;
    if (!names)
        return fail_nomem();
    json_object_foreach(resources, key, value) names[count++] = key;
    near_miss(near, sizeof near, name, names, count);
    complain("--resource \"%s\": machine \"%s\" has no resource \"%s\"%s\n", word, text_of(machine, "name"), name,
             near);
    free((void *)names);
    return EXIT_USAGE;
}

static int change_resource(json_t *machine, const char *word)
{
    char name[64], rest;
    double gbs;
    json_t *resources = json_object_get(machine, "resources");
    if (sscanf(word, "%63[^=]=%lf%c", name, &gbs, &rest) != 2 || !(gbs > 0) || gbs > 1e300) {
        complain("--resource \"%s\" must be NAME=GBps with a rate greater than 0, such as gpu0.link=25\n", word);
        return EXIT_USAGE;
    }
    if (!json_object_get(resources, name))
        return no_resource(machine, word, name);
    return set_number(resources, name, gbs);
}

static int change_document(json_t *machine, const changes *c)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < c->routes->count && !code; i++)
        code = change_routes(machine, c->routes->at[i]);
    for (size_t i = 0; i < c->resources->count && !code; i++)
        code = change_resource(machine, c->resources->at[i]);
    return code;
}

static int parse_machine(gantry_machine **machine, const char *text, const char *name)
{
    gantry_error err;
    if (!text)
        return fail_nomem();
    return gantry_machine_parse(machine, text, strlen(text), name, &err) ? fail(&err) : EXIT_FINE;
}

int change_machine(gantry_machine **machine, const gantry_machine *from, const changes *c)
{
    gantry_error err;
    char *text = NULL, *changed = NULL;
    if (!c->routes->count && !c->resources->count)
        return EXIT_FINE;
    if (gantry_machine_json(from, &text, NULL, &err))
        return fail(&err);
    json_t *document = json_loads(text, 0, NULL);
    gantry_free(text);
    int code = document ? change_document(document, c) : fail_nomem();
    if (!code) {
        changed = json_dumps(document, JSON_REAL_PRECISION(17));
        code = parse_machine(machine, changed, "the machine with the changes");
    }
    free(changed);
    json_decref(document);
    return code;
}

/* ---- moves ---- */

static int no_device(const char *word, const gantry_machine *m, const char *device)
{
    gantry_device_info first = GANTRY_DEVICE_INFO_INIT;
    if (gantry_machine_device(m, 0, &first, NULL))
        first.id = "";
    complain("--move \"%s\": machine \"%s\" has no device \"%s\"; its first is \"%s\"\n", word, gantry_machine_name(m),
             device, first.id);
    return EXIT_USAGE;
}

static int read_move(gantry_move *move, const gantry_machine *m, const gantry_graph *graph, const char *word)
{
    const char *equals = strrchr(word, '=');
    char *id = equals ? strndup(word, (size_t)(equals - word)) : NULL;
    if (equals && !id)
        return fail_nomem();
    if (!id) {
        complain("--move \"%s\" must be NODE=DEVICE, such as blur[1]=gpu0\n", word);
        return EXIT_USAGE;
    }
    int code = EXIT_FINE;
    move->node = gantry_graph_find_node(graph, id);
    if (move->node.id == GANTRY_NONE) {
        char where[160];
        snprintf(where, sizeof where, "--move \"%.120s\": ", word);
        code = fail_no_node(where, graph, id);
    }
    free(id);
    for (move->device = 0; !code; move->device++) {
        gantry_device_info d = GANTRY_DEVICE_INFO_INIT;
        if (gantry_machine_device(m, move->device, &d, NULL))
            return no_device(word, m, equals + 1);
        if (strcmp(d.id, equals + 1) == 0)
            break;
    }
    return code;
}

int read_moves(gantry_move **moves, const gantry_schedule *from, const gantry_graph *graph, const changes *c)
{
    int code = EXIT_FINE;
    *moves = calloc(c->moves->count + 1, sizeof **moves);
    if (!*moves)
        return fail_nomem();
    for (size_t i = 0; i < c->moves->count && !code; i++)
        code = read_move(&(*moves)[i], gantry_schedule_machine(from), graph, c->moves->at[i]);
    return code;
}
