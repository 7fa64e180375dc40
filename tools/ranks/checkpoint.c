/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --checkpoint N:FOLDER and --resume FOLDER. */
#include "runs/run.h"

#include <errno.h>
#include <gantry/train.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "N:FOLDER"; false: it is not that. */
static bool split(const char *text, uint64_t *every, const char **folder)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    *every = (uint64_t)n;
    *folder = end + 1;
    return !errno && end != text && *end == ':' && n >= 1 && end[1];
}

int check_checkpoint(const options *o)
{
    uint64_t every;
    const char *folder, *option = o->checkpoint ? "--checkpoint" : "--resume";
    if (!o->checkpoint && !o->resume)
        return EXIT_FINE;
    if (o->checkpoint && !split(o->checkpoint, &every, &folder)) {
        complain("--checkpoint: \"%s\" must be N:FOLDER, such as 100:kept: how many starts, or iterations of a loop in "
                 "phases, and where to write\n",
                 o->checkpoint);
        return EXIT_USAGE;
    }
    const char *word = o->check                                          ? "--check"
                       : o->balance && strcmp(o->balance, "guided") == 0 ? "--balance guided"
                       : o->backend && strcmp(o->backend, "sim") == 0    ? "--backend sim"
                                                                         : NULL;
    if (!word)
        return EXIT_FINE;
    complain("gantry run: %s does not go with %s; leave one of them out\n", option, word);
    return EXIT_USAGE;
}

void take_checkpoint(const options *o, gantry_run_options *ro)
{
    uint64_t every;
    const char *folder;
    if (!o->checkpoint || !split(o->checkpoint, &every, &folder))
        return;
    ro->checkpoints = folder;
    ro->checkpoint_every = every;
}

int keep_last(session *s)
{
    uint64_t every;
    const char *folder;
    gantry_error err;
    if (!s->o->train || !s->o->checkpoint || !split(s->o->checkpoint, &every, &folder))
        return EXIT_FINE;
    return gantry_run_checkpoint(s->run, folder, &err) ? fail(&err) : EXIT_FINE;
}

/* A run that ends before the first checkpoint, as its loops are no phases, which have some of their own. A training has
 * one behind its last step. */
void tell_unkept(const session *s)
{
    uint64_t every;
    const char *folder;
    if (!s->o->checkpoint || s->o->train || !split(s->o->checkpoint, &every, &folder) || s->o->quiet ||
        gantry_network_rank(s->ranks.network) || every < s->starts || gantry_schedule_phase_count(s->schedule))
        return;
    fprintf(stderr,
            "note: --checkpoint %s writes nothing: the run ends with start %zu, and no loop is in phases; give a "
            "smaller N, or have loops in phases by --unroll\n",
            s->o->checkpoint, s->starts);
}

/* On fewer devices than the strategy is for the schedule adds up in another order. */
static void tell_order(const session *s)
{
    gantry_error err;
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    if (!s->o->strategy || gantry_strategy_parse(&strategy, s->o->strategy, &err) || strategy.ordered)
        return;
    int64_t wanted = (int64_t)strategy.dp * strategy.tp * strategy.pp;
    size_t devices = gantry_machine_worker_count(gantry_schedule_machine(s->schedule));
    if ((int64_t)devices < wanted)
        fprintf(stderr,
                "note: strategy \"%s\" is for %" PRId64 " devices, and there %s %zu: sums have another order here, so "
                "results differ by roundings from those of %" PRId64 "; a training that begins with \"ordered=1\" has "
                "the same bits on any number of devices of a kind\n",
                s->o->strategy, wanted, devices == 1 ? "is" : "are", devices, wanted);
}

int resume_run(session *s)
{
    gantry_error err;
    gantry_resumed from = GANTRY_RESUMED_INIT;
    if (!s->o->resume)
        return EXIT_FINE;
    if (gantry_run_resume(s->run, s->o->resume, &from, &err))
        return fail_reading(&err);
    s->resumed = (size_t)from.starts;
    s->replaced = from.starts;
    if (*from.passed_over)
        complain("warning: %s is passed over: %s\n", s->o->resume, from.passed_over);
    if (from.starts >= (uint64_t)s->o->iterations) {
        complain("--resume: checkpoint %" PRIu64 " in %s has %" PRIu64 " starts complete, and %" PRId64
                 " are asked for; ask for more (%s)\n",
                 from.number, s->o->resume, from.starts, s->o->iterations, s->o->train ? "--steps" : "--iterations");
        return EXIT_USAGE;
    }
    if (s->o->quiet)
        return EXIT_FINE;
    fprintf(stderr,
            "note: going on from checkpoint %" PRIu64 " in %s: %" PRIu64 " start%s complete, %" PRIu64
            " iterations of the next\n",
            from.number, s->o->resume, from.starts, from.starts == 1 ? "" : "s", from.iterations);
    tell_order(s);
    return EXIT_FINE;
}
