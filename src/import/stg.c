/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The Standard Task Graph Set (T. Tobita, H. Kasahara, J. Scheduling 5(5), 2002; format at
 * https://www.kasahara.cs.waseda.ac.jp/schedule/format_e.html). Numbers between blanks:
 *
 *     tasks                                       without the two dummies, which are first and last
 *     task time predecessors predecessor ...      for each task, from 0
 *     # anything
 *
 * With costs of communication a task's line ends after the number of its predecessors, and a line "predecessor cost"
 * follows for each. In the set's older form the first line has the number of processors as well, and tasks count
 * from 1.
 */
#include "import/import.h"

#include "base/error.h"
#include <math.h>
#include <string.h>

enum { MOST_TASKS = 100000000 };

typedef struct stg {
    gy_import *in;
    size_t at; /* in the text */
    int line, column;
    bool costs, costs_known;
    bool begun;     /* a number was read: what follows may be quoted */
    uint32_t first; /* number of the first task: 0, in the older form 1 */
    gantry_error *err;
} stg;

static gantry_status fail_here(const stg *s, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static gantry_status fail_here(const stg *s, int line, int column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_vfail(s->err, GANTRY_E_GRAPH, NULL, format, args);
    va_end(args);
    gy_error_locate(s->err, s->in->source, line, column);
    return GANTRY_E_GRAPH;
}

/* ---- numbers ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static void step(stg *s)
{
    bool ends = s->in->text[s->at++] == '\n';
    s->line += ends;
    s->column = ends ? 1 : s->column + 1;
}

/* To the next number; comments go from # to the end of the line. false at the end of the text. */
static bool skip(stg *s)
{
    bool comment = false;
    for (; s->at < s->in->length; step(s)) {
        char c = s->in->text[s->at];
        comment = c == '\n' ? false : comment || c == '#';
        if (!comment && !is_blank(c))
            return true;
    }
    return false;
}

static size_t word_length(const stg *s)
{
    size_t length = 0;
    while (s->at + length < s->in->length && !is_blank(s->in->text[s->at + length]) &&
           s->in->text[s->at + length] != '#')
        length++;
    return length;
}

/* The next number; `what` says what is expected, in messages. Leaves the place at the number's beginning in *line. */
static gantry_status read_number(stg *s, const char *what, double *value, int *column)
{
    if (!skip(s))
        return fail_here(s, s->line, s->column, "the file ends where %s should be", what);
    size_t length = word_length(s);
    const char *word = s->in->text + s->at;
    *column = s->column;
    bool fits = gy_parse_double(word, length, value) && *value >= 0;
    if (!fits && !s->begun)
        return fail_here(
            s, s->line, s->column,
            "no number where %s should be; give one that is at least 0, if this is a file of the format stg", what);
    if (!fits)
        return fail_here(s, s->line, s->column, "\"%.*s\" where %s should be; give a number that is at least 0",
                         (int)(length < 40 ? length : 40), word, what);
    s->begun = true;
    s->at += length;
    s->column += (int)length;
    return GANTRY_OK;
}

static gantry_status read_count(stg *s, const char *what, uint32_t most, uint32_t *value)
{
    double number;
    int column = s->column;
    GY_TRY(read_number(s, what, &number, &column));
    if (number > most || number != floor(number))
        return fail_here(s, s->line, column, "%s is %.15g; a whole number from 0 to %u is allowed", what, number, most);
    *value = (uint32_t)number;
    return GANTRY_OK;
}

/* Numbers that are left on this line. */
static uint32_t numbers_ahead(const stg *s)
{
    stg ahead = *s;
    uint32_t count = 0;
    while (skip(&ahead) && ahead.line == s->line) {
        size_t length = word_length(&ahead);
        ahead.at += length;
        ahead.column += (int)length;
        count++;
    }
    return count;
}

/* ---- tasks ---- */

/* Predecessors may be given before they are read, so their range is checked by link_all. */
static gantry_status read_predecessor(stg *s, uint32_t task)
{
    uint32_t other = 0;
    double cost = 0;
    int line, column;
    gantry_status status = read_count(s, "the number of a predecessor", MOST_TASKS, &other);
    line = s->line;
    if (!status && s->costs)
        status = read_number(s, "the cost of communication", &cost, &column);
    if (status)
        return status;
    if (other < s->first || other == task + s->first)
        return fail_here(s, line, 0, "task %u has predecessor %u; give another task, from %u on", task + s->first,
                         other, s->first);
    gy_import_item edge = { NULL, other - s->first, cost };
    return gy_vec_push(&s->in->items, edge) && gy_import_add_read(s->in, task, (uint32_t)s->in->items.count - 1)
               ? GANTRY_OK
               : gy_fail_nomem(s->err);
}

/* The first task that has predecessors shows by its line whether they come with costs. */
static gantry_status see_costs(stg *s, uint32_t task, uint32_t count)
{
    uint32_t ahead = numbers_ahead(s);
    if (s->costs_known || count == 0)
        return GANTRY_OK;
    if (ahead != 0 && ahead != count && ahead != 2 * count)
        return fail_here(s, s->line, 0,
                         "task %u has %u predecessors, but %u numbers follow; give %u, or with costs of communication "
                         "%u or a line for each",
                         task + s->first, count, ahead, count, 2 * count);
    s->costs = ahead != count;
    s->costs_known = true;
    return GANTRY_OK;
}

static gantry_status read_task(stg *s, uint32_t task)
{
    uint32_t number = 0, count = 0;
    double time = 0;
    int column;
    char id[16];
    gantry_status status = read_count(s, "the number of a task", MOST_TASKS, &number);
    int line = s->line;
    if (!status && number != task + s->first)
        return fail_here(s, line, 0, "task %u where task %u should be; number the tasks one after the other", number,
                         task + s->first);
    if (!status)
        status = read_number(s, "the time of a task", &time, &column);
    if (!status)
        status = read_count(s, "the number of predecessors", MOST_TASKS, &count);
    if (!status)
        status = see_costs(s, task, count);
    for (uint32_t i = 0; i < count && !status; i++)
        status = read_predecessor(s, task);
    if (status)
        return status;
    uint32_t ahead = numbers_ahead(s);
    if (ahead && skip(s))
        return fail_here(
            s, s->line, s->column,
            "task %u has %u predecessors, but %u more numbers follow; correct the count or begin a new line", number,
            count, ahead);
    snprintf(id, sizeof id, "T%u", number);
    gy_import_task *made = gy_import_add_task(s->in, id);
    if (!made)
        return gy_fail_nomem(s->err);
    made->time = time;
    made->line = line;
    return GANTRY_OK;
}

/* ---- all of it ---- */

static gantry_status read_head(stg *s, uint32_t *tasks)
{
    gantry_status status = read_count(s, "the number of tasks", MOST_TASKS, tasks);
    if (status || numbers_ahead(s) == 0)
        return status;
    s->first = 1;
    status = read_count(s, "the number of processors", 4096, &s->in->processors);
    if (!status && (s->in->processors == 0 || numbers_ahead(s) > 0))
        status = fail_here(s, s->line, 0,
                           "the first line has the number of tasks, and perhaps that of processors, which is "
                           "at least 1; nothing else");
    return status;
}

static gantry_status read_all(stg *s)
{
    uint32_t tasks = 0, count = 0;
    gantry_status status = read_head(s, &tasks);
    while (!status && skip(s))
        status = read_task(s, count++);
    uint32_t dummies = s->first ? 1 : 2;
    if (!status && count != tasks && count != tasks + dummies)
        status =
            fail_here(s, s->line, 0,
                      "the first line says %u tasks, so %u with the dummies should follow, or %u without; there are %u",
                      tasks, tasks + dummies, tasks, count);
    return status;
}

/* Names the edges, and makes those that cost nothing plain order. */
static gantry_status link_all(gy_import *in, uint32_t first, gantry_error *err)
{
    uint32_t kept = 0;
    size_t edges = in->items.count;
    for (size_t i = 0; i < edges; i++) {
        gy_import_item edge = in->items.at[i];
        uint32_t task = in->reads.at[i].task;
        if (edge.from >= in->tasks.count)
            return gy_import_fail(in, task, err, "task %u has predecessor %u, but the last task is %zu", task + first,
                                  edge.from + first, in->tasks.count - 1 + first);
        if (edge.amount == 0) {
            if (!gy_import_add_order(in, edge.from, task))
                return gy_fail_nomem(err);
            continue;
        }
        edge.name = gy_arena_printf(&in->arena, "%s->%s", in->tasks.at[edge.from].id, in->tasks.at[task].id);
        if (!edge.name)
            return gy_fail_nomem(err);
        in->reads.at[kept] = (gy_import_read){ task, kept };
        in->items.at[kept++] = edge;
    }
    in->items.count = in->reads.count = kept;
    return GANTRY_OK;
}

gantry_status gy_import_stg(gy_import *in, gantry_error *err)
{
    stg s = { .in = in, .line = 1, .column = 1, .err = err };
    in->unit_us = 1;
    GY_TRY(read_all(&s));
    return link_all(in, s.first, err);
}
