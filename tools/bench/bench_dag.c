/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_dag.h"
#include <string.h>

enum { LEAST_WIDTH = 8 };

uint64_t bench_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool bench_is_dag(const char *shape)
{
    return strcmp(shape, "tree") == 0 || strcmp(shape, "random") == 0;
}

bench_dag bench_dag_of(const char *shape, int64_t nodes, int devices, int64_t lanes)
{
    bench_dag d = { .tree = strcmp(shape, "tree") == 0, .tasks = nodes, .width = 1, .devices = devices };
    while (d.tree && 4 * d.width - 1 <= nodes)
        d.width *= 2;
    if (d.tree)
        d.tasks = 2 * d.width - 1;
    else
        d.width = devices * lanes > LEAST_WIDTH ? devices * lanes : LEAST_WIDTH;
    return d;
}

/* The task is the k-th of its level, and joins 2 k and 2 k + 1 of the level below. */
static bench_task tree_task(const bench_dag *d, int64_t i)
{
    int64_t width = d->width, first = 0;
    while (i >= first + width) {
        first += width;
        width /= 2;
    }
    int64_t left = first - 2 * width + 2 * (i - first);
    return (bench_task){ { left, left + 1 }, first > 0 ? 2 : 0, (int)((i - first) * d->devices / width) };
}

static bench_task random_task(const bench_dag *d, int64_t i)
{
    uint64_t seed = (uint64_t)i * 4; /* a task takes three numbers at most */
    int64_t before = (i / d->width - 1) * d->width;
    bench_task t = { .device = (int)(i % d->width * d->devices / d->width) };
    t.froms = before < 0 ? 0 : 1 + (int)(bench_next(&seed) % 2);
    for (int k = 0; k < t.froms; k++)
        t.from[k] = before + (int64_t)(bench_next(&seed) % (uint64_t)d->width);
    if (t.froms == 2 && t.from[0] == t.from[1])
        t.froms = 1;
    return t;
}

bench_task bench_dag_task(const bench_dag *d, int64_t i)
{
    return d->tree ? tree_task(d, i) : random_task(d, i);
}
