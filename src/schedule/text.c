/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and uses as people read them. */
#include "schedule/schedule.h"
#include "schedule/words.h"
#include <string.h>

void gy_value_rows_text(gy_text *to, const gantry_schedule *s, uint32_t value, int64_t first, int64_t last)
{
    const gy_schedule_value *v = &s->values.at[value];
    gy_named_rows names = {
        .name = v->name, .generation = v->generation, .rows = v->rows, .axes = v->axes, .tiles = v->tiles
    };
    for (size_t i = 0; i < s->bounds.count; i++) {
        if (strcmp(s->bounds.at[i].buffer, v->name) == 0) {
            names.parts = s->bounds.at[i].parts;
            names.part_first = s->bounds.at[i].first;
        }
    }
    gy_named_rows_text(to, &names, first, last);
}

void gy_use_text(gy_text *to, const gantry_schedule *s, const gy_use *use)
{
    gy_value_rows_text(to, s, s->instances.at[use->instance].value, use->first, use->last);
}

static const char *memory_of(const gantry_schedule *s, const gy_use *use)
{
    return s->machine->memory[s->instances.at[use->instance].memory].id;
}

/* An op that the scheduler added has no id of a node: its text says what it does. */
static void add_inserted(gy_text *to, const gantry_schedule *s, const gy_op *op)
{
    const gy_use *use = gy_vec_from(&s->use, op->use);
    switch (op->kind) {
    case GY_OP_COLLECTIVE:
        gy_text_printf(to, "%s ", gy_word(&gy_collective_words, op->collective));
        gy_use_text(to, s, &use[op->uses - 1]);
        break;
    case GY_OP_FILL: {
        const gy_instance *in = &s->instances.at[use->instance];
        gy_text_printf(to, "%s identity ", gy_word(&gy_reduction_words, op->reduce ? op->reduce : in->op));
        gy_use_text(to, s, use);
        gy_text_printf(to, " %s", memory_of(s, use));
        break;
    }
    default:
        gy_text_printf(to, "%s ", gy_op_kind_name(op->kind));
        gy_use_text(to, s, use);
        gy_text_printf(to, " %s -> %s", memory_of(s, use), memory_of(s, use + 1));
    }
}

void gy_op_text(gy_text *to, const gantry_schedule *s, uint32_t index)
{
    const gy_op *op = &s->ops.at[index];
    if (op->node == GY_NONE) {
        add_inserted(to, s, op);
        return;
    }
    gy_text_add(to, s->node_ids.at[op->node]);
    if (op->iteration > 0)
        gy_text_printf(to, " (iteration %u)", op->iteration);
    if (op->repeat)
        gy_text_add(to, " again");
}
