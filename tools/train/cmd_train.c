/* SPDX-License-Identifier: Apache-2.0 */
/* gantry train: a model gets its backward pass and its optimiser, and is then run like any graph, a start a step. */
#include "../run.h"

#include <math.h>
#include <stdlib.h>

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
static int read_loss(const session *s, double *loss)
{
    gantry_error err;
    const void *data;
    gantry_buffer buffer = gantry_graph_loss(s->graph);
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    if (gantry_graph_buffer_info(s->graph, buffer, &info, &err) || gantry_run_output(s->run, buffer, &data, NULL, &err))
        return fail(&err);
    *loss = info.dtype == GANTRY_F64 ? *(const double *)data : (double)*(const float *)data;
    return EXIT_FINE;
}

static bool is_shown(const session *s, size_t step, size_t count)
{
    enum { LINES = 20 };
    size_t every = s->o->every ? (size_t)s->o->every : (count + LINES - 1) / LINES;
    return step == 1 || step % every == 0 || step == count;
}

/* A loss that is no number any more never becomes one again. */
static int look_at_loss(const session *s, size_t step, size_t count, bool *finite)
{
    double loss = 0;
    int code = read_loss(s, &loss);
    if (code)
        return code;
    FILE *to = s->o->json || uses_stdout(s->o) ? stderr : stdout;
    progress_clear();
    if (is_shown(s, step, count))
        fprintf(to, "step %zu  loss %.9g\n", step, loss);
    if (!isfinite(loss) && *finite)
        fprintf(stderr, "warning: the loss of step %zu is %g: a smaller learning rate or \"clip_norm\" may help\n",
                step, loss);
    *finite = *finite && isfinite(loss);
    return EXIT_FINE;
}

int run_steps(session *s, size_t count)
{
    double *us = malloc(count * sizeof *us);
    bool finite = true;
    if (!us)
        return fail_nomem();
    int code = EXIT_FINE;
    size_t warm_up = count > 1;
    for (size_t i = 0; !code && i < count; i++) {
        code = start_alone(s, i, &us[i]);
        if (!code && gantry_graph_loss(s->graph).id != GANTRY_NONE)
            code = look_at_loss(s, s->resumed + i + 1, s->starts, &finite);
    }
    s->counted = count - warm_up;
    if (!code)
        s->measured_us = median(us + warm_up, s->counted);
    free(us);
    return code;
}

static int train(const options *o)
{
    options all = *o;
    all.train = true;
    all.iterations = o->steps;
    return command_run.run(&all);
}

const command command_train = {
    "train",
    "MODEL",
    "trains a model: a graph that says what it computes, its loss and its weights",
    1,
    1,
    "param limits input output show machine devices backend schedule policy effort seed optimal max-memory spill "
    "balance "
    "replay steps every checkpoint resume processes on-loss mpirun write-graph check compare profile calibrate "
    "output-schedule dot svg html "
    "trace explain "
    "allow-code no-fuse timeout quiet verbose json",
    "  gantry train mlp --devices 2\n"
    "  gantry train mlp --devices 2 --steps 300 --every 50 --output w1=w1.npy\n"
    "  gantry train mlp --devices 1 --steps 1 --write-graph step.json\n",
    train
};
