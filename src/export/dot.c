/* SPDX-License-Identifier: Apache-2.0 */
#include "export/dot.h"

#include <string.h>

void gy_dot_begin(gy_text *to, const char *name, const char *rankdir)
{
    gy_text_add(to, "digraph \"");
    gy_export_dot_name(to, name, 0);
    gy_text_printf(
        to,
        "\" {\n  rankdir=%s; bgcolor=\"#ffffff\"; charset=\"UTF-8\"; newrank=true; mclimit=0.001; nodesep=0.16; "
        "ranksep=0.34; pad=0.25;\n",
        rankdir);
    gy_text_add(
        to,
        "  labelloc=t; labeljust=l; fontname=\"Helvetica,Arial,sans-serif\"; fontsize=11; fontcolor=\"" GY_EXPORT_INK
        "\";\n"
        "  node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, fontcolor=\"" GY_EXPORT_INK
        "\", style=filled, height=0.32, margin=\"0.10,0.05\"];\n"
        "  edge [arrowsize=0.6, fontname=\"Helvetica,Arial,sans-serif\", fontsize=8, fontcolor=\"" GY_EXPORT_GREY
        "\"];\n");
}

void gy_dot_lines(gy_text *to, const char *lines)
{
    for (bool more = true; more;) {
        size_t length = strcspn(lines, "\n");
        char *line = gy_strndup(lines, length);
        to->failed = to->failed || !line;
        if (line)
            gy_export_dot_name(to, line, 0);
        gy_free(line);
        more = lines[length] != '\0';
        if (more)
            gy_text_add(to, "\\n");
        lines += length + 1;
    }
}

void gy_dot_legend_begin(gy_text *to)
{
    gy_text_add(to, "<table border=\"0\" cellspacing=\"3\" cellpadding=\"1\"><tr>");
}

void gy_dot_legend_box(gy_text *to, gy_colour colour, const char *text)
{
    gy_text_printf(to,
                   "<td border=\"1\" color=\"%s\" bgcolor=\"%s\" width=\"16\" height=\"10\" "
                   "fixedsize=\"true\"></td><td align=\"left\"><font point-size=\"10\">",
                   colour.line, colour.fill);
    gy_export_xml_name(to, text, 24);
    gy_text_add(to, "  </font></td>");
}

void gy_dot_legend_line(gy_text *to, const char *colour, const char *line, const char *text)
{
    gy_text_printf(to, "<td><font color=\"%s\"><b>%s</b></font></td><td align=\"left\"><font point-size=\"10\">",
                   colour, line);
    gy_export_xml_name(to, text, 24);
    gy_text_add(to, "  </font></td>");
}

void gy_dot_legend_groups(gy_text *to, const gy_groups *groups)
{
    for (uint32_t i = 0; i < GY_GROUP_FIRST_NAME + GY_GROUP_NAMES; i++) {
        uint32_t group = (i + GY_GROUP_FIRST_NAME) % (GY_GROUP_FIRST_NAME + GY_GROUP_NAMES); /* names first */
        if (groups->used[group] > 0)
            gy_dot_legend_box(to, gy_group_colour(group), gy_group_label(groups, group));
    }
}

void gy_dot_legend_end(gy_text *to)
{
    gy_text_add(to, "</tr></table>");
}
