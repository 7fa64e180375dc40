/* SPDX-License-Identifier: Apache-2.0 */
/* gantry train: a model gets its backward pass and its optimiser, and is then run like any graph, a start a step. */
#include "runs/run.h"
#include "strategies.h"

#include <math.h>
#include <string.h>

int write_trained(const session *s)
{
    gantry_error err;
    char *text;
    size_t length;
    if (!s->o->write_graph)
        return EXIT_FINE;
    if (gantry_graph_json(s->graph, &text, &length, &err))
        return fail(&err);
    int code = write_text(s->o->write_graph, text, length);
    gantry_free(text);
    return code;
}

/* The loss of the start that ended last. */
int read_loss(const session *s, gantry_buffer buffer, double *loss)
{
    gantry_error err;
    const void *data;
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    if (gantry_graph_buffer_info(s->graph, buffer, &info, &err) || gantry_run_output(s->run, buffer, &data, NULL, &err))
        return fail(&err);
    *loss = info.dtype == GANTRY_F64 ? *(const double *)data : (double)*(const float *)data;
    if (isnan(*loss))
        *loss = NAN; /* without a sign, which would be printed */
    return EXIT_FINE;
}

static bool is_shown(const session *s, size_t step, size_t count)
{
    enum { LINES = 20 };
    size_t every = s->o->every ? (size_t)s->o->every : (count + LINES - 1) / LINES;
    return step == 1 || step % every == 0 || step == count;
}

/* A loss that is no number any more never becomes one again. */
static void warn_of_loss(session *s, size_t step, double loss)
{
    if (!isfinite(loss) && !s->diverged)
        fprintf(stderr, "warning: the loss of step %zu is %g: a smaller learning rate or \"clip_norm\" may help\n",
                step, loss);
    s->diverged = s->diverged || !isfinite(loss);
}

/* With --watch it is printed where that says so. */
int look_at_loss(session *s, size_t step)
{
    double loss = 0;
    bool wanted = s->o->every || !s->o->quiet; /* lines that nobody has asked for are no errors */
    bool shown = wanted && !s->o->watched.count && is_shown(s, step, s->starts);
    FILE *to = s->o->json || uses_stdout(s->o) ? stderr : stdout;
    progress_clear();
    if (s->trials && shown)
        fprintf(to, "step %zu  ", step);
    if (s->trials)
        return look_at_trials(s, step, shown ? to : NULL);
    bool is_predicted = s->o->backend && strcmp(s->o->backend, "sim") == 0; /* there is no loss then */
    if (is_predicted || gantry_graph_loss(s->graph).id == GANTRY_NONE)
        return EXIT_FINE;
    int code = read_loss(s, gantry_graph_loss(s->graph), &loss);
    if (code)
        return code;
    if (shown)
        fprintf(to, "step %zu  loss %.9g\n", step, loss);
    warn_of_loss(s, step, loss);
    return EXIT_FINE;
}

/* Of --steps 0, which is for looking at the graph and its schedule. */
static int check_no_steps(const options *o)
{
    const struct {
        const char *name;
        bool given;
    } wanting[] = {
        { "output", o->outputs.count },
        { "show", o->shows.count },
        { "watch", o->watched.count },
        { "evaluate", o->evaluate },
        { "check", o->check },
        { "compare", o->compare },
        { "profile", o->profile },
        { "calibrate", o->calibrate },
        { "checkpoint", o->checkpoint },
        { "resume", o->resume },
        { "processes", o->ranks_wanted },
    };
    for (size_t i = 0; i < sizeof wanting / sizeof *wanting; i++) {
        if (!wanting[i].given)
            continue;
        complain(
            "gantry train: --steps 0 runs nothing, and --%s is told by a run; give more steps, or leave --%s out\n",
            wanting[i].name, wanting[i].name);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

static int train(const options *o)
{
    options all = *o;
    settled chosen;
    int unfit = o->steps ? EXIT_FINE : check_no_steps(o);
    if (unfit)
        return unfit;
    all.train = true;
    all.iterations = o->steps;
    unfit = settle_strategy(&all, &chosen);
    return unfit ? unfit : command_run.run(&all);
}

const command command_train = {
    "train",
    "MODEL",
    "trains a model: a graph that says what it computes, its loss and its weights",
    1,
    1,
    "param limits input feed output show watch machine devices backend schedule policy effort seed optimal objective "
    "in-flight max-memory spill "
    "balance "
    "replay steps trials every evaluate evaluate-input strategy checkpoint resume processes on-loss mpirun write-graph "
    "check compare profile "
    "calibrate output-schedule dot svg html trace "
    "explain "
    "allow-code no-fuse threads timeout quiet verbose json",
    "  gantry train mlp --devices 2\n"
    "  gantry train mlp --devices 2 --input 'x=x/*.npy' --input 'labels=labels/*.npy' --watch loss\n"
    "  gantry train mlp --devices 2 --trials lr=0.1,0.01,0.001\n"
    "  gantry train mlp --devices 2 --strategy dp=2,micro=4,zero=1\n"
    "  gantry train gpt --machine h200-8 --backend sim --steps 1 --strategy auto\n"
    "  gantry train gpt --devices 1 --param layers=8 --max-memory mem0=7MB --strategy recompute=auto\n"
    "  gantry train mlp --devices 2 --steps 300 --every 50 --output w1=w1.npy\n"
    "  gantry train digits_mlp --devices 2 --input x=x.npy --input labels=labels.npy --evaluate 10 --evaluate-input "
    "x=test_x.npy --evaluate-input labels=test_labels.npy\n"
    "  gantry train mlp --devices 1 --steps 0 --write-graph step.json\n",
    train
};
