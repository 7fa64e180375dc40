/* SPDX-License-Identifier: Apache-2.0 */
/* The page: the viewer's text, which was made part of the library when it was built, with title and data in their
 * places. */
#include "export/page/page.h"

#include "gantry_viewer.h"

static void put_times(gy_columns *b, const gy_page_part *part)
{
    int64_t before = 0;
    for (size_t i = 0; i < part->view->s->ops.count; i++) {
        gy_columns_signed(b, part->time[i].start - before);
        before = part->time[i].start;
    }
    for (size_t i = 0; i < part->view->s->ops.count; i++)
        gy_columns_number(b, (uint64_t)(part->time[i].end - part->time[i].start));
}

static void put_match(gy_columns *b, const gy_page_part *part)
{
    int64_t before = 0;
    for (size_t i = 0; i < part->view->s->ops.count; i++) {
        int64_t now = part->match[i] == GY_NONE ? 0 : (int64_t)part->match[i] + 1;
        gy_columns_signed(b, now - before);
        before = now;
    }
}

static void put_part(gy_columns *b, const gy_page_part *part, size_t index)
{
    gy_columns_text(b, part->title);
    gy_columns_number(b, part->time ? index : 0);
    if (part->time)
        put_times(b, part);
    else
        gy_page_schedule(b, part->view);
    gy_columns_number(b, part->match ? 1 : 0);
    if (part->match)
        put_match(b, part);
}

void gy_export_page(gy_text *to, const gy_page_part *part, size_t parts)
{
    const char *name = part->view->s->graph_name;
    gy_columns data = { 0 };
    gy_columns_text(&data, "gantry 2");
    gy_columns_number(&data, parts);
    for (size_t i = 0; i < parts; i++)
        put_part(&data, &part[i], i);
    gy_text_add_n(to, gantry_viewer_head, sizeof gantry_viewer_head);
    gy_export_xml_name(to, name ? name : "schedule", 80);
    gy_text_add_n(to, gantry_viewer_body, sizeof gantry_viewer_body);
    gy_columns_base64(to, &data);
    gy_text_add_n(to, gantry_viewer_tail, sizeof gantry_viewer_tail);
    gy_columns_free(&data);
}

void gy_export_html(gy_text *to, const gy_view *view)
{
    gy_export_page(to, &(gy_page_part){ "predicted", view, NULL, NULL }, 1);
}
