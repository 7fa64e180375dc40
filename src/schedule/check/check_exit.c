/* SPDX-License-Identifier: Apache-2.0 */
/* Rule exit: what a start must have left behind. */
#include "base/error.h"
#include "schedule/check/check.h"

static gantry_status check_final(gy_check *k, const gy_use *u, uint32_t buffer)
{
    gy_runs final = { 0 };
    gantry_status status = gy_final_runs(k, buffer, u->first, u->last, &final);
    if (!status)
        status = gy_check_rows(k, u, final.at, final.count, "exit", "instances", u->instance);
    gy_vec_free(&final);
    return status;
}

/* Per buffer, any one of its output instances (they all lie in the same array), or GY_NONE. */
static void find_outputs(const gy_check *k, uint32_t *of_buffer)
{
    for (size_t i = 0; i < k->graph->buffers.count; i++)
        of_buffer[i] = GY_NONE;
    for (size_t i = 0; i < k->s->instances.count; i++) {
        const gy_instance *in = &k->s->instances.at[i];
        if (in->space == GY_SPACE_OUTPUT)
            of_buffer[k->s->values.at[in->value].buffer] = (uint32_t)i;
    }
}

/* Right only where no row holds anything at the end. That is so of what a phase leaves where later ones only add to it,
 * from the identity. */
static gantry_status check_missing(gy_check *k, uint32_t b)
{
    const gy_buffer *buffer = &k->graph->buffers.at[b];
    gy_runs final = { 0 };
    gantry_status status = gy_final_runs(k, b, 0, buffer->rows, &final);
    for (size_t i = 0; i < final.count && !status; i++) {
        if (final.at[i].content != GY_UNKNOWN) {
            status = gy_breach(k->err, "exit", "values", b,
                               "output \"%s\" has no instance of space output, so it is never "
                               "fetched",
                               buffer->name);
        }
    }
    gy_vec_free(&final);
    return status;
}

static gantry_status check_outputs(gy_check *k, const uint32_t *of_buffer)
{
    gantry_status status = GANTRY_OK;
    for (uint32_t b = 0; !status && b < k->graph->buffers.count; b++) {
        const gy_buffer *buffer = &k->graph->buffers.at[b];
        gy_use whole = { .instance = of_buffer[b], .mode = GANTRY_READ, .last = buffer->rows };
        if (!buffer->output || buffer->bytes == 0)
            continue;
        status = of_buffer[b] == GY_NONE ? check_missing(k, b) : check_final(k, &whole, b);
    }
    return status;
}

gantry_status gy_check_exit(gy_check *k)
{
    uint32_t *outputs = gy_calloc(k->graph->buffers.count + 1, sizeof *outputs);
    if (!outputs)
        return gy_fail_nomem(k->err);
    find_outputs(k, outputs);
    gantry_status status = check_outputs(k, outputs);
    gy_free(outputs);
    for (size_t i = 0; !status && i < k->s->instances.count; i++) {
        const gy_instance *in = &k->s->instances.at[i];
        if (in->role == GY_ROLE_PERSIST) {
            gy_use whole = { .instance = (uint32_t)i, .mode = GANTRY_READ, .first = in->first, .last = in->last };
            status = check_final(k, &whole, in->value);
        }
    }
    return status;
}
