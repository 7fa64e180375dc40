/* SPDX-License-Identifier: Apache-2.0 */
/* The public face: a format in, a text out. */
#include "export/export.h"

#include "base/error.h"
#include "base/versioned.h"
#include "export/fold.h"

gantry_status gy_export_hand_over(gy_text *made, char **text, size_t *length, gantry_error *err)
{
    size_t bytes;
    char *at = gy_text_take(made, &bytes);
    if (!at)
        return gy_fail_nomem(err);
    *text = at;
    if (length)
        *length = bytes;
    return GANTRY_OK;
}

gantry_status gantry_graph_draw(const gantry_graph *graph, const gantry_drawing_options *options, char **text,
                                size_t *length, gantry_error *err)
{
    gantry_drawing_options all = GANTRY_DRAWING_OPTIONS_INIT;
    GY_NEED(graph, err);
    GY_NEED(text, err);
    GY_TRY(gy_struct_read(&all, sizeof all, options, "gantry_drawing_options", err));
    GY_TRY(gy_struct_reserved(all.reserved, "gantry_drawing_options", err));
    if (!graph->sealed || !graph->flow)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "the graph is not checked yet; call gantry_graph_check first");
    gy_fold fold;
    gy_text made = { 0 };
    gantry_status status = gy_fold_make(&fold, graph, &all, err);
    if (!status) {
        gy_export_graph_dot(&made, &fold);
        status = gy_export_hand_over(&made, text, length, err);
    }
    gy_fold_free(&fold);
    return status;
}

gantry_status gantry_graph_export(const gantry_graph *graph, gantry_format format, char **text, size_t *length,
                                  gantry_error *err)
{
    GY_NEED(graph, err);
    GY_NEED(text, err);
    if (format != GANTRY_DOT)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "a graph can be written as GANTRY_DOT only, not as format %d; schedule it for the others",
                       (int)format);
    return gantry_graph_draw(graph, NULL, text, length, err);
}

static bool write_format(gy_text *to, const gy_view *view, gantry_format format)
{
    switch (format) {
    case GANTRY_DOT:
        gy_export_schedule_dot(to, view);
        return true;
    case GANTRY_SVG:
        gy_export_svg(to, view);
        return true;
    case GANTRY_HTML:
        gy_export_html(to, view);
        return true;
    case GANTRY_CHROME:
        gy_export_chrome(to, view);
        return true;
    case GANTRY_TEXT:
        gy_export_summary(to, view);
        return true;
    case GANTRY_REPORT:
        gy_export_report(to, view);
        return true;
    }
    return false;
}

gantry_status gantry_schedule_export(const gantry_schedule *schedule, gantry_format format, char **text, size_t *length,
                                     gantry_error *err)
{
    GY_NEED(schedule, err);
    GY_NEED(text, err);
    bool draws = format >= GANTRY_DOT && format <= GANTRY_CHROME;
    if (schedule->phases.count == 1 && draws)
        schedule = schedule->phases.at[0].schedule; /* nothing to choose from */
    if (schedule->phases.count && draws)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL,
                       "a schedule whose loops are not unrolled has a picture of each phase; name one of 0 to %zu "
                       "(--phase, gantry_schedule_phase)",
                       schedule->phases.count - 1);
    gy_view view;
    gantry_status status = gy_view_make(&view, schedule, err);
    if (status)
        return status;
    gy_text made = { 0 };
    if (write_format(&made, &view, format))
        status = gy_export_hand_over(&made, text, length, err);
    else
        status = gy_fail(err, GANTRY_E_INVALID, NULL,
                         "%d is not a format; the formats are GANTRY_DOT (%d) to GANTRY_REPORT (%d)", (int)format,
                         (int)GANTRY_DOT, (int)GANTRY_REPORT);
    gy_view_free(&view);
    return status;
}
