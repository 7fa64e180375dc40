/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gantry run as one of several processes that mpirun started: rank 0 shows results and writes files, the others are
 * silent. What they would say on standard error is kept, and told where they fail and rank 0 does not.
 */
#include "ranks/launch.h"
#include "runs/run.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse_options(const options *o)
{
    const char *word = o->check                                          ? "--check"
                       : o->compare                                      ? "--compare"
                       : o->profile                                      ? "--profile"
                       : o->html                                         ? "--html"
                       : o->calibrate                                    ? "--calibrate"
                       : o->balance && strcmp(o->balance, "guided") == 0 ? "--balance guided"
                                                                         : NULL;
    if (!word)
        return EXIT_FINE;
    complain("gantry run: %s looks at all ops, which one of several processes cannot; use one process\n", word);
    return EXIT_USAGE;
}

/* Standard output goes nowhere; standard error to a file without a name. */
static int be_silent(ranks *r)
{
    r->said = tmpfile();
    r->errors = dup(STDERR_FILENO);
    if (r->said && r->errors >= 0 && freopen("/dev/null", "w", stdout) && dup2(fileno(r->said), STDERR_FILENO) >= 0)
        return EXIT_FINE;
    complain("gantry run: no temporary file for what rank %d says\n", (int)gantry_network_rank(r->network));
    return EXIT_RUNNING;
}

/* Rank 0 alone writes files, and says how far all are. */
static void be_quiet(options *o)
{
    o->out = o->dot = o->svg = o->html = o->trace = o->write_graph = NULL;
    o->outputs.count = o->shows.count = 0;
    o->json = o->verbose = false;
    o->quiet = true;
    progress_begin(&command_run, o);
}

int join_ranks(ranks *r, options *o)
{
    gantry_error err;
    if (gantry_network_open(&r->network, &err))
        return fail(&err);
    if (!r->network)
        return EXIT_FINE;
    o->processes = gantry_network_ranks(r->network);
    bool first = gantry_network_rank(r->network) == 0;
    int code = first ? EXIT_FINE : be_silent(r);
    code = code ? code : refuse_options(o);
    r->outputs = first ? (string_list){ 0 } : o->outputs;
    if (!first)
        be_quiet(o);
    return code;
}

/* This computer, as is known of it from before; of several computers nothing is learnt. */
static int detect_own(gantry_machine **here)
{
    gantry_error err;
    gantry_machine *detected = NULL;
    char *text = NULL;
    gantry_status status = gantry_machine_detect(&detected, NULL, &err);
    if (!status)
        status = gantry_machine_recall(here, detected, &text, &err);
    if (*here != detected)
        gantry_machine_free(detected);
    gantry_free(text);
    return status ? fail(&err) : EXIT_FINE;
}

/* Without GPUs a computer has a virtual device for each process, unless it has as many of its own; with less of them,
 * after a loss, it has as many as before, or sums would be of other parts, and the result another. One process that is
 * left has no network. */
static gantry_status keep_count(ranks *r, const gantry_machine *here, gantry_error *err)
{
    const gantry_machine *now = r->network ? r->found : here;
    const char *first = getenv(LEFT) ? getenv(FIRST) : NULL;
    gantry_machine *same = NULL;
    int count = first ? atoi(first) : 0;
    if (count < 1 || (size_t)count <= gantry_machine_worker_count(now) || !is_plain_computer(now))
        return GANTRY_OK;
    gantry_status status = gantry_machine_virtual(&same, count, err);
    if (status)
        return status;
    gantry_machine_free(r->found);
    r->found = same;
    return GANTRY_OK;
}

int find_machine(ranks *r, options *o, const char *link)
{
    gantry_error err;
    gantry_join_options with = GANTRY_JOIN_OPTIONS_INIT;
    gantry_machine *here = NULL;
    if ((!r->network && !getenv(LEFT)) || o->machine || o->schedule || counts_virtual(o))
        return EXIT_FINE;
    int code = link ? read_link(&with, link, "machine") : EXIT_FINE;
    code = code ? code : detect_own(&here);
    if (!code && r->network && gantry_network_machine(r->network, &r->found, here, &with, &err))
        code = fail(&err);
    if (!code && keep_count(r, here, &err))
        code = fail(&err);
    gantry_machine_free(here);
    o->found = r->found;
    return code;
}

/* Prints what was kept, with the rank before each line; standard error is what it was. */
static void tell(ranks *r)
{
    char line[1024];
    fflush(stderr);
    if (!r->said)
        return;
    dup2(r->errors, STDERR_FILENO);
    rewind(r->said);
    while (fgets(line, sizeof line, r->said))
        dprintf(STDERR_FILENO, "rank %d: %s", (int)gantry_network_rank(r->network), line);
}

int meet_ranks(const ranks *r)
{
    gantry_error err;
    return gantry_network_leave(r->network, &err) ? fail(&err) : EXIT_FINE;
}

static void end_all(ranks *r, int code)
{
    tell(r);
    dprintf(STDERR_FILENO, "gantry run: rank %d %s, so all processes end\n", (int)gantry_network_rank(r->network),
            interrupt_code() ? "was interrupted" : "failed");
    gantry_network_abort(r->network, code == EXIT_DEVICE ? EXIT_LOST : code);
}

int leave_ranks(ranks *r, int code)
{
    gantry_machine_free(r->found);
    r->found = NULL;
    if (!r->network)
        return code;
    fflush(stdout);
    if (!code) /* the others wait for what rank 0 alone writes and prints, however slowly that is taken */
        code = meet_ranks(r);
    if (code && gantry_network_has_begun(r->network))
        end_all(r, code);
    if (code && gantry_network_give_up(r->network))
        tell(r);
    if (!code)
        guard_leave();
    gantry_network_free(r->network);
    if (r->said)
        fclose(r->said);
    return code;
}
