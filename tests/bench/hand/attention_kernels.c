/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of attention.json for the CPU: the textbook's loops. */
#include <gantry/kernel.h>
#include <math.h>
#include <string.h>

gantry_status softmax_f32(const gantry_launch *l);
gantry_status softmax_bf16(const gantry_launch *l);

static float load(const void *row, int64_t j, int bf16)
{
    uint32_t bits;
    float value;
    if (!bf16)
        return ((const float *)row)[j];
    bits = (uint32_t)((const uint16_t *)row)[j] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store(void *row, int64_t j, int bf16, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bf16)
        ((uint16_t *)row)[j] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    else
        ((float *)row)[j] = value;
}

static gantry_status softmax(const gantry_launch *l, int bf16)
{
    int64_t columns = l->arg[1].integer;
    for (int64_t i = 0; i < l->arg[0].rows; i++) {
        void *row = (char *)l->arg[0].data + i * columns * (bf16 ? 2 : 4);
        float most = load(row, 0, bf16), sum = 0;
        for (int64_t j = 1; j < columns; j++)
            most = fmaxf(most, load(row, j, bf16));
        for (int64_t j = 0; j < columns; j++)
            sum += expf(load(row, j, bf16) - most);
        for (int64_t j = 0; j < columns; j++)
            store(row, j, bf16, expf(load(row, j, bf16) - most) / sum);
    }
    return GANTRY_OK;
}

gantry_status softmax_f32(const gantry_launch *l)
{
    return softmax(l, 0);
}
gantry_status softmax_bf16(const gantry_launch *l)
{
    return softmax(l, 1);
}
