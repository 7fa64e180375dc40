/* SPDX-License-Identifier: Apache-2.0 */
/* A graph file: it is a graph or an error with a place, and the normal form of a graph is read to the same bytes. */
#include "fuzz.h"

#include <string.h>

enum { NODES = 2000 };

static gantry_status parse(gantry_graph **g, const char *text, size_t length, gantry_error *err)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.max_nodes = NODES;
    return gantry_graph_parse(g, text, length, "fuzz", NULL, &options, err);
}

static void check_stable(const gantry_graph *g)
{
    gantry_error err = { 0 };
    gantry_graph *again = NULL;
    char *text, *second;
    size_t length, second_length;
    MUST_HOLD(gantry_graph_json(g, &text, &length, &err) == GANTRY_OK, &err);
    MUST_HOLD(parse(&again, text, length, &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_graph_json(again, &second, &second_length, &err) == GANTRY_OK, &err);
    MUST_HOLD(length == second_length && memcmp(text, second, length) == 0, &err);
    gantry_free(text);
    gantry_free(second);
    gantry_graph_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    gantry_status status = parse(&g, (const char *)data, size, &err);
    fuzz_check_error(status, &err);
    MUST_HOLD((status == GANTRY_OK) == (g != NULL), &err);
    if (g)
        check_stable(g);
    else if (status != GANTRY_E_NOMEM)
        MUST_HOLD(err.line > 0 || strncmp(err.where, "...", 3) == 0, &err); /* a pointer that was cut finds nothing */
    gantry_graph_free(g);
    return 0;
}
