/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/schedule/hand.h"

#include "base/file.h"
#include <check.h>
#include <gantry/gantry.h>
#include <stdlib.h>
#include <string.h>

gantry_graph *hand_graph(void)
{
    gantry_graph *g = gantry_graph_new("hand");
    const int64_t shape[] = { 4, 2 }, one[] = { 1 };
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_U8, 2, shape),
                  w = gantry_graph_buffer(g, "w", GANTRY_U8, 2, shape);
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_U8, 2, shape),
                  t = gantry_graph_buffer(g, "t", GANTRY_U8, 1, one);
    gantry_buffer_set_class(g, x, GANTRY_INPUT);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 0);
    gantry_buffer_output(g, y);
    gantry_buffer_output(g, t);
    gantry_buffer_split(g, y, 2);
    gantry_node make = gantry_graph_work(g, "make");
    gantry_node_read(g, make, gantry_all(x));
    gantry_node_write(g, make, gantry_all(y));
    gantry_node use = gantry_graph_work(g, "use");
    gantry_node_read(g, use, gantry_all(y));
    gantry_node_readwrite(g, use, gantry_all(w));
    gantry_node side = gantry_graph_work(g, "side");
    gantry_node_after(g, side, make);
    gantry_node_on(g, side, "cpu");
    gantry_node s0 = gantry_graph_work(g, "s0");
    gantry_node_read(g, s0, gantry_all(y));
    gantry_node_reduce(g, s0, gantry_all(t), GANTRY_SUM);
    gantry_node_with(g, s0, make);
    gantry_node s1 = gantry_graph_work(g, "s1");
    gantry_node_read(g, s1, gantry_all(w));
    gantry_node_reduce(g, s1, gantry_all(t), GANTRY_SUM);
    gantry_node_apart(g, s1, s0);
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    return g;
}

char *hand_text(const char *from, const char *to)
{
    char *text, *changed;
    size_t length;
    ck_assert_int_eq(gy_file_read(&text, &length, GANTRY_SOURCE_DIR "/tests/unit/schedule/right.json", NULL),
                     GANTRY_OK);
    if (!from)
        return text;
    char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "right.json has no %s", from);
    changed = gy_alloc(length + strlen(to) + 1);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, text, (size_t)(at - text));
    strcpy(changed + (at - text), to);
    strcat(changed, at + strlen(from));
    gy_free(text);
    return changed;
}

gantry_schedule *hand_schedule(const char *from, const char *to, gantry_error *err)
{
    char *text = hand_text(from, to);
    gantry_schedule *s = NULL;
    gantry_status status = gantry_schedule_parse(&s, text, strlen(text), "right.json", err);
    gy_free(text);
    return status ? NULL : s;
}
