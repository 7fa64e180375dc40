/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that bytes choose, for the target `plan`: of a text that is changed, one in seventy is a graph, and hardly one
 * has a loop that is cut into phases, a collective, or more than a memory holds. Most of these are graphs and have
 * such.
 */
#include "plan_graph.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct maker {
    const uint8_t *at, *end;
    FILE *text;
    unsigned parts, rows, columns, buffers, nodes;
    bool automatic; /* splits may be: what is computed then depends on where they are cut */
} maker;

static unsigned choose(maker *m, unsigned below)
{
    return m->at < m->end ? *m->at++ % below : 0;
}

static void write_buffers(maker *m)
{
    static const char *const kinds[] = { "\"class\":\"input\",\"init\":1", "\"class\":\"state\",\"init\":2",
                                         "\"class\":\"temp\"", "\"class\":\"input\",\"init\":\"iota\"" };
    m->buffers = 2 + choose(m, 4);
    for (unsigned i = 0; i < m->buffers; i++) {
        unsigned kind = choose(m, 4);
        fprintf(m->text, "\"b%u\":{\"dtype\":\"f32\",\"shape\":[%u,%u],\"split\":", i, m->rows, m->columns);
        fprintf(m->text, choose(m, 8) || !m->automatic ? "%u" : "{\"auto\":%u}", m->parts);
        fprintf(m->text, ",%s%s},", kinds[kind], choose(m, 2) ? ",\"output\":true" : "");
    }
    fputs("\"s\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"output\":true},"
          "\"one\":{\"dtype\":\"i64\",\"shape\":[1],\"init\":1},\"flag\":{\"dtype\":\"i64\",\"shape\":[1]}},",
          m->text);
}

/* Rows of a buffer: all, a part, the part of the index, with a halo. */
static void write_ref(maker *m, unsigned buffer, unsigned how, unsigned part)
{
    static const char *const forms[] = { "\"b%u\"", "\"b%u[%u]\"", "\"b%u[%u]~1\"", "\"b%u[%u:]\"" };
    fprintf(m->text, how < 3 ? forms[how] : "\"b%u[i]\"", buffer, part);
}

static void write_kernel(maker *m, const char *key)
{
    static const char *const kernels[] = { "copy", "relu", "scale", "axpby", "jacobi2d", "saxpy" };
    static const char *const scalars[] = { "", "", "\"a\":1,", "\"a\":1,\"b\":1,", "", "\"a\":1," };
    unsigned kernel = choose(m, 6), how = choose(m, 4), x = choose(m, m->buffers);
    unsigned y = (x + 1 + choose(m, m->buffers - 1)) % m->buffers; /* nobody reads what it writes */
    unsigned from = choose(m, m->parts), to = choose(m, m->parts);
    if (how == 3)
        fprintf(m->text, "\"for\":{\"i\":%u},", m->parts);
    fprintf(m->text, "\"%s\":\"%s\",\"args\":{%s\"x\":", key, kernels[kernel], scalars[kernel]);
    write_ref(m, x, how == 2 && kernel != 4 ? 1 : how, from);
    fputs(",\"y\":", m->text);
    write_ref(m, y, how == 2 ? 1 : how, how == 2 ? from : to);
    fputs("}", m->text);
}

static void write_parts(maker *m, unsigned buffer)
{
    for (unsigned i = 0; i < m->parts; i++)
        fprintf(m->text, "%s\"b%u[%u]\"", i ? "," : "", buffer, i);
}

static void write_collective(maker *m)
{
    unsigned kind = choose(m, 5), x = choose(m, m->buffers), part = choose(m, m->parts);
    unsigned y = (x + 1 + choose(m, m->buffers - 1)) % m->buffers;
    static const char *const kinds[] = { "all_reduce", "broadcast", "scatter", "gather", "reduce" };
    fprintf(m->text, "\"collective\":\"%s\",%s\"in\":[", kinds[kind], kind % 4 ? "" : "\"op\":\"sum\",");
    if (kind == 1)
        fprintf(m->text, "\"b%u[%u]\"", x, part);
    else if (kind == 2)
        fprintf(m->text, "\"b%u\"", x);
    else
        write_parts(m, x);
    fputs("],\"out\":[", m->text);
    if (kind == 3)
        fprintf(m->text, "\"b%u\"", y);
    else if (kind == 4)
        fprintf(m->text, "\"b%u[%u]\"", y, part);
    else
        write_parts(m, kind ? y : x);
    fputs("]", m->text);
}

static void write_node(maker *m)
{
    unsigned kind = choose(m, 8), id = m->nodes++, buffer = choose(m, m->buffers), number = choose(m, 12);
    fprintf(m->text, "{\"id\":\"n%u[i]\",", id);
    if (kind < 4)
        write_kernel(m, kind ? "kernel" : "host");
    else if (kind == 4)
        fprintf(m->text, "\"fill\":{\"to\":\"b%u\",\"value\":%u}", buffer, number % 3);
    else if (kind == 5)
        write_collective(m);
    else if (kind == 6)
        fprintf(m->text, "\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"b%u[%u]\",\"out\":\"s\"}", buffer,
                number % m->parts);
    else
        fprintf(m->text, "\"for\":{\"i\":%u},\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"b%u[i]\",\"out\":\"s\"}",
                m->parts, buffer);
    if (choose(m, 4) == 1 && kind != 5)
        fprintf(m->text, ",\"on\":\"%u %% devices\"", choose(m, 4));
    if (id && choose(m, 6) == 1)
        fprintf(m->text, ",\"after\":\"n%u[i]\"", choose(m, id));
    fputs("}", m->text);
}

static void write_nodes(maker *m, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "," : "", m->text);
        write_node(m);
    }
}

/* A loop that carries, or ends by itself, or both. The sum of the loop begins anew in every iteration. */
static void write_loop(maker *m)
{
    unsigned ends = choose(m, 3), every = 1 + choose(m, 4), prev = choose(m, m->buffers), next = choose(m, m->buffers);
    fprintf(m->text, "{\"repeat\":%u,", choose(m, 24));
    if (prev != next)
        fprintf(m->text, "\"carry\":{\"b%u\":\"b%u\"},", prev, next);
    if (ends)
        fprintf(m->text, "\"until\":{\"buffer\":\"flag\",\"every\":%u},", every);
    fputs("\"nodes\":[{\"id\":\"clear\",\"fill\":{\"to\":\"s\",\"value\":0}},", m->text);
    write_nodes(m, 1 + choose(m, 4));
    fprintf(
        m->text,
        ",{\"id\":\"test\",\"kernel\":\"scale\",\"args\":{\"a\":\"max(0, it - %u)\",\"x\":\"one\",\"y\":\"flag\"}}]}",
        choose(m, 12));
}

char *fuzz_plan_graph(const uint8_t *data, size_t size, bool automatic)
{
    char *text = NULL;
    size_t length;
    maker m = { .at = data, .end = data + size, .automatic = automatic, .text = open_memstream(&text, &length) };
    if (!m.text)
        return NULL;
    m.parts = 1 + choose(&m, 4);
    m.rows = m.parts * (1 + choose(&m, 4));
    m.rows += choose(&m, 8) == 1;
    m.columns = 1 + choose(&m, 40);
    fputs("{\"gantry\":1,\"buffers\":{", m.text);
    write_buffers(&m);
    fputs("\"nodes\":[{\"id\":\"first\",\"fill\":{\"to\":\"s\",\"value\":0}},", m.text);
    if (choose(&m, 2)) {
        write_loop(&m);
        fputs(",", m.text);
    }
    write_nodes(&m, 1 + choose(&m, 8));
    fputs("]}", m.text);
    fclose(m.text);
    return text;
}
