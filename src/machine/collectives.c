/* SPDX-License-Identifier: Apache-2.0 */
/* Names of algorithms, and measured times of collectives. */
#include "machine/build.h"
#include <string.h>

static const char *const NAMES[] = { NULL,
#define GY_X(name, text) #text,
                                     GY_ALGORITHM_MAP(GY_X)
#undef GY_X
};

const char *gy_algorithm_name(gy_algorithm algorithm)
{
    return (unsigned)algorithm < GY_ALGORITHM_COUNT ? NAMES[algorithm] : NULL;
}

gy_algorithm gy_algorithm_find(const char *name)
{
    for (int i = 1; i < GY_ALGORITHM_COUNT; i++)
        if (!strcmp(NAMES[i], name))
            return (gy_algorithm)i;
    return GY_ALGORITHM_NONE;
}

const gy_collective_table *gy_machine_table(const gantry_machine *m, gantry_collective collective,
                                            gy_algorithm algorithm, const char *kind, uint32_t ranks)
{
    for (uint32_t i = 0; i < m->tables; i++) {
        const gy_collective_table *t = &m->table[i];
        if (t->collective == collective && t->algorithm == algorithm && t->ranks == ranks && !strcmp(t->kind, kind))
            return t;
    }
    return NULL;
}

bool gy_machine_add_table(gantry_machine *m, const gy_collective_table *table)
{
    gy_collective_table *grown = gy_arena_calloc(&m->arena, (size_t)m->tables + 1, sizeof *grown);
    gy_point *point = gy_arena_alloc(&m->arena, table->points * sizeof *point);
    const char *kind = table->kind ? gy_machine_text(m, table->kind) : NULL;
    if (!grown || !point || !kind)
        return false;
    if (m->tables)
        memcpy(grown, m->table, m->tables * sizeof *grown);
    memcpy(point, table->point, table->points * sizeof *point);
    grown[m->tables] = *table;
    grown[m->tables].kind = kind;
    grown[m->tables].point = point;
    m->table = grown;
    m->tables++;
    return true;
}
