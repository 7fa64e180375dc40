/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gantry machine cluster: a machine file of many GPUs that are alike, in islands. Within an island every GPU has a port
 * of NVLink; each island has so many rails to the others, which its GPUs share by turns. The figures are round ones of
 * an H200, the links those that the options say: to plan with, not to predict a machine that is there.
 */
#include "command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 4096, MOST_RAILS = 256 }; /* shared rails of all islands: each pair of them is a route of the file */

#define RAIL_US 8.0 /* latency from island to island */

typedef struct cluster {
    int islands, gpus, rails; /* GPUs and rails of one island */
    double nic;               /* GB/s of one rail, a direction */
} cluster;

static int refuse_shape(const char *text)
{
    fprintf(
        stderr,
        "gantry machine: --islands \"%s\" must be ISLANDSxGPUS, such as 8x8: one island or more, one GPU or more in "
        "each, at most %d GPUs in all\n",
        text ? text : "", MOST_GPUS);
    return EXIT_USAGE;
}

static int read_shape(cluster *c, const options *o)
{
    char rest;
    if (!o->islands || sscanf(o->islands, "%dx%d%c", &c->islands, &c->gpus, &rest) != 2 || c->islands < 1 ||
        c->gpus < 1 || c->islands > MOST_GPUS || c->gpus > MOST_GPUS / c->islands)
        return refuse_shape(o->islands);
    c->rails = o->rails ? (int)o->rails : c->gpus;
    c->nic = o->nic > 0 ? o->nic : 50;
    if (c->rails == c->gpus || (c->rails < c->gpus && c->islands * c->rails <= MOST_RAILS))
        return EXIT_FINE;
    complain("gantry machine: --rails %d in each of %d islands of %d GPUs: there can be one for each GPU, or fewer, at "
             "most %d in all islands together; use --rails %d, or leave it out\n",
             c->rails, c->islands, c->gpus, MOST_RAILS, c->rails > c->gpus ? c->gpus : 1);
    return EXIT_USAGE;
}

static json_t *gpu_name(int island, int gpu)
{
    return json_sprintf("i%dg%d", island, gpu);
}

/* The GPUs of an island that use the rail. */
static json_t *gpus_of(const cluster *c, int island, int rail)
{
    json_t *list = json_array();
    for (int g = rail; g < c->gpus; g += c->rails)
        json_array_append_new(list, gpu_name(island, g));
    return list;
}

static void add_gpu(const cluster *c, json_t *memories, json_t *devices, json_t *resources, int island, int gpu)
{
    static const char *const links[] = { "nvlink.in", "nvlink.out", "pcie.in", "pcie.out" };
    char id[64], link[96];
    snprintf(id, sizeof id, "i%dg%d", island, gpu);
    json_array_append_new(memories, json_pack("{ssss}", "id", id, "capacity", "140GiB"));
    json_array_append_new(devices, json_pack("{ssssssss si si s{si si si} si sf si}", "id", id, "kind", "gpu", "type",
                                             "gpu", "memory", id, "lanes", 4, "copy_engines", 3, "gflops", "f16",
                                             800000, "f32", 60000, "f64", 30000, "bandwidth_gbs", 4800, "launch_us",
                                             1.25, "ordinal", island * c->gpus + gpu));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(link, sizeof link, "%s.%s", id, links[i]);
        json_object_set_new(resources, link, json_integer(i < 2 ? 400 : 50));
    }
}

static json_t *route(json_t *from, json_t *to, double latency, double rate, const char *out, const char *in)
{
    json_t *via = json_array();
    if (out)
        json_array_append_new(via, json_string(out));
    if (in)
        json_array_append_new(via, json_string(in));
    return json_pack("{so so sf sf so}", "from", from, "to", to, "latency_us", latency, "bandwidth_gbs", rate, "via",
                     via);
}

static void add_rate(json_t *resources, double rate, const char *format, int island, int number, const char *end)
{
    char name[96];
    snprintf(name, sizeof name, format, island, number, end);
    json_object_set_new(resources, name, json_real(rate));
}

/* A rail of its own for each GPU: one route to all of other islands. */
static void add_own_rails(const cluster *c, json_t *routes, json_t *resources, int island)
{
    char name[64];
    json_t *others = json_array();
    snprintf(name, sizeof name, "i%dg*", island);
    for (int i = 0; i < c->islands; i++)
        for (int g = 0; g < c->gpus && i != island; g++)
            json_array_append_new(others, gpu_name(i, g));
    for (int g = 0; g < c->gpus; g++) {
        add_rate(resources, c->nic, "i%dg%d.rail.%s", island, g, "in");
        add_rate(resources, c->nic, "i%dg%d.rail.%s", island, g, "out");
    }
    json_array_append_new(routes, route(json_string(name), others, RAIL_US, c->nic, "{from}.rail.out", "{to}.rail.in"));
}

/* GPUs that share rails: a route from each rail to each of other islands. */
static void add_shared_rails(const cluster *c, json_t *routes, json_t *resources, int island)
{
    char out[64], in[64];
    for (int mine = 0; mine < c->rails; mine++) {
        snprintf(out, sizeof out, "i%d.rail%d.out", island, mine);
        add_rate(resources, c->nic, "i%d.rail%d.%s", island, mine, "in");
        add_rate(resources, c->nic, "i%d.rail%d.%s", island, mine, "out");
        for (int other = 0; other < c->islands * c->rails; other++) {
            int i = other / c->rails, r = other % c->rails;
            snprintf(in, sizeof in, "i%d.rail%d.in", i, r);
            if (i != island)
                json_array_append_new(routes,
                                      route(gpus_of(c, island, mine), gpus_of(c, i, r), RAIL_US, c->nic, out, in));
        }
    }
}

static void add_island(const cluster *c, json_t *routes, json_t *resources, int island)
{
    char name[64];
    snprintf(name, sizeof name, "i%dg*", island);
    if (c->gpus > 1)
        json_array_append_new(
            routes, route(json_string(name), json_string(name), 3, 400, "{from}.nvlink.out", "{to}.nvlink.in"));
    if (c->islands > 1 && c->rails == c->gpus)
        add_own_rails(c, routes, resources, island);
    else if (c->islands > 1)
        add_shared_rails(c, routes, resources, island);
}

static json_t *describe(const cluster *c)
{
    json_t *memories = json_array(), *devices = json_array(), *resources = json_object(), *routes = json_array();
    json_array_append_new(memories, json_pack("{ssss sb}", "id", "host", "capacity", "4TiB", "pinned", 1));
    json_array_append_new(routes, route(json_string("host"), json_string("host"), 0.5, 100, NULL, NULL));
    json_array_append_new(routes, route(json_string("host"), json_string("i*"), 8, 50, NULL, "{to}.pcie.in"));
    json_array_append_new(routes, route(json_string("i*"), json_string("host"), 8, 50, "{from}.pcie.out", NULL));
    for (int i = 0; i < c->islands; i++) {
        for (int g = 0; g < c->gpus; g++)
            add_gpu(c, memories, devices, resources, i, g);
        add_island(c, routes, resources, i);
    }
    json_array_append_new(devices, json_pack("{ssssssssss s{si si} si sf}", "id", "cpu", "kind", "cpu", "type", "cpu",
                                             "use", "host", "memory", "host", "gflops", "f32", 500, "f64", 250,
                                             "bandwidth_gbs", 200, "launch_us", 0.3));
    return json_pack("{si so ss so so so so s{ss}}", "gantry_machine", 1, "name",
                     json_sprintf("cluster-%dx%d", c->islands, c->gpus), "source",
                     "gantry machine cluster: round figures, not of a machine that is there", "memories", memories,
                     "devices", devices, "resources", resources, "routes", routes, "model", "contention", "on");
}

int write_cluster(const options *o)
{
    cluster c = { 0 };
    int code = read_shape(&c, o);
    if (code)
        return code;
    json_t *document = describe(&c);
    char *text = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    if (!text) {
        complain("gantry machine: out of memory\n");
        return EXIT_RUNNING;
    }
    code = write_text(o->out ? o->out : "-", text, strlen(text));
    free(text);
    return code;
}
