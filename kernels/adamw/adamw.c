/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/adamw/step.h"

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gy_adam a = gy_adam_of(l);
#define STEP(wide, root, LOAD, gtype)                                                                                  \
    for (int64_t i = first; i < last; i++) {                                                                           \
        wide *w = (wide *)l->arg[GY_ADAM_W].data + i, *m = (wide *)l->arg[GY_ADAM_M].data + i;                         \
        wide *v = (wide *)l->arg[GY_ADAM_V].data + i, g = LOAD(((const gtype *)l->arg[GY_ADAM_G].data)[i]);            \
        *m = (wide)a.beta1 * *m + (wide)a.rest1 * g;                                                                   \
        *v = (wide)a.beta2 * *v + (wide)a.rest2 * g * g;                                                               \
        wide by = *m / (wide)a.bias1 / (root(*v / (wide)a.bias2) + (wide)a.eps);                                       \
        *w = *w - (wide)a.rate * (by + (wide)a.decay * *w);                                                            \
    }                                                                                                                  \
    return GANTRY_OK;
    switch (l->arg[GY_ADAM_G].dtype) {
    case GANTRY_F16:
        STEP(float, sqrtf, gy_f16_to_float, uint16_t)
    case GANTRY_BF16:
        STEP(float, sqrtf, gy_bf16_to_float, uint16_t)
    case GANTRY_F32:
        STEP(float, sqrtf, GY_TO_F32, float)
    case GANTRY_F64:
        STEP(double, sqrt, GY_TO_F64, double)
    default:
        return GANTRY_E_KERNEL;
    }
#undef STEP
}

static gantry_status run(const gantry_launch *l)
{
    return gantry_launch_cut(l, gy_arg_size(&l->arg[GY_ADAM_W]), GY_GRAIN, piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *w = &l->arg[GY_ADAM_W], *g = &l->arg[GY_ADAM_G], *step = &l->arg[GY_ADAM_STEP];
    if (step->number < 1)
        return gy_check_fail(text, size, "\"step\" is %g; the first step is 1", step->number);
    if ((w->dtype == GANTRY_F64) != (g->dtype == GANTRY_F64))
        return gy_check_fail(text, size, "\"w\" is %s and \"g\" is %s; both must be f64, or neither",
                             gantry_dtype_name(w->dtype), gantry_dtype_name(g->dtype));
    for (int i = GY_ADAM_G; i <= GY_ADAM_V; i++) {
        gantry_status status = gy_check_same_size(l, GY_ADAM_W, i, text, size);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_SCALE("lr", "learning rate"),
    GY_SCALE("step", "number of this step, from 1 on"),
    GY_SCALE_OR("beta1", 0.9, "what of m stays"),
    GY_SCALE_OR("beta2", 0.999, "what of v stays"),
    GY_SCALE_OR("eps", 1e-8, "what is added to the square root"),
    GY_SCALE_OR("decay", 0.01, "what of w is taken off, times lr"),
    GY_REGION("w", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "weights"),
    GY_REGION("g", GANTRY_READ, GY_FLOAT_DTYPES, 0,
              "their gradient, as many elements; f16 and bf16 go with weights in f32"),
    GY_REGION("m", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "mean of gradients, 0 before the first step"),
    GY_REGION("v", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "mean of their squares, 0 before the first step"),
};

const gantry_kernel gy_kernel_adamw = {
    .struct_size = sizeof(gantry_kernel),
    .name = "adamw",
    .summary = "m, v = moments of g; w = w - lr * (m' / (sqrt(v') + eps) + decay * w), where m', v' are free of bias",
    GANTRY_KERNEL_ARGS(args),
    .flops = "14 * w.size",
    .bytes = "2 * w.bytes + g.bytes + 2 * m.bytes + 2 * v.bytes",
    .host = run,
    .check = check
};
