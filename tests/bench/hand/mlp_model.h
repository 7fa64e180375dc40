// SPDX-License-Identifier: Apache-2.0
// The net of mlp.cu in host memory, with its examples, and its step on the CPU in doubles.
#pragma once
#include "mlp_kernels.h"

struct Sizes {
    int batch, inputs, hidden, classes;
    bool by_adamw;
};

// Where the weights w1 b1 w2 b2 lie, and behind them, of gradients, the loss. Each layer is a multiple of `parts`.
struct Layout {
    size_t b1, w2, b2, loss, all;

    Layout(int inputs, int hidden, int classes, int parts)
    {
        auto whole = [&](size_t n) { return (n + (size_t)parts - 1) / (size_t)parts * (size_t)parts; };
        b1 = (size_t)inputs * hidden;
        w2 = whole(b1 + hidden);
        b2 = w2 + (size_t)hidden * classes;
        loss = whole(b2 + classes);
        all = loss + 1;
    }
};

struct Model {
    int gpus, batch, inputs, hidden, classes;
    bool by_adamw;
    Layout whole; // of all weights
    float *host_x, *host_w;
    int *host_label;
    float rate;

    Model(int gpus_, const Sizes &of, int parts)
        : gpus(gpus_), batch(of.batch), inputs(of.inputs), hidden(of.hidden), classes(of.classes),
          by_adamw(of.by_adamw), whole(inputs, hidden, classes, parts),
          host_x(new_host_array<float>((size_t)batch * inputs)), host_w(new_host_array<float>(whole.all)),
          host_label(new_host_array<int>((size_t)batch)), rate(by_adamw ? 0.01f : 0.1f)
    {
        for (size_t i = 0; i < (size_t)batch * inputs; i++)
            host_x[i] = (float)noise(i, 1);
        for (int i = 0; i < batch; i++)
            host_label[i] = (int)((long)i * 7 % classes);
        for (size_t i = 0; i < whole.all; i++)
            host_w[i] = i < whole.b1 || (i >= whole.w2 && i < whole.b2) ? 0.17f * ((float)noise(i, 2) - 0.5f) : 0;
    }
};

// The same step for one row, in doubles: its share of the gradients is added to g.
static void row_on_cpu(const Model &net, const std::vector<double> &w, int row, std::vector<double> &g)
{
    auto of_w = [&](size_t first, int count) { return std::vector<double>(&w[first], &w[first] + count); };
    std::vector<double> a = of_w(net.whole.b1, net.hidden), p = of_w(net.whole.b2, net.classes);
    const float *x = net.host_x + (size_t)row * net.inputs;
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < net.inputs; i++)
        for (int j = 0; j < net.hidden; j++)
            a[(size_t)j] += x[i] * w[(size_t)(i * net.hidden + j)];
    for (int j = 0; j < net.hidden; j++)
        for (int c = 0; c < net.classes; c++)
            p[(size_t)c] += std::max(a[(size_t)j], 0.0) * w[net.whole.w2 + (size_t)(j * net.classes + c)];
    for (double v : p)
        most = std::max(most, v);
    for (double &v : p)
        sum += v = std::exp(v - most);
    for (int c = 0; c < net.classes; c++) {
        p[(size_t)c] = (p[(size_t)c] / sum - (c == net.host_label[row])) / net.batch;
        g[net.whole.b2 + (size_t)c] += p[(size_t)c];
    }
    for (int j = 0; j < net.hidden; j++) {
        double dh = 0;
        for (int c = 0; c < net.classes; c++) {
            g[net.whole.w2 + (size_t)(j * net.classes + c)] += std::max(a[(size_t)j], 0.0) * p[(size_t)c];
            dh += p[(size_t)c] * w[net.whole.w2 + (size_t)(j * net.classes + c)];
        }
        if (a[(size_t)j] <= 0)
            continue;
        g[net.whole.b1 + (size_t)j] += dh;
        for (int i = 0; i < net.inputs; i++)
            g[(size_t)(i * net.hidden + j)] += x[i] * dh;
    }
}

static void optimise_on_cpu(const Model &net, int step, std::vector<double> &w, const std::vector<double> &g,
                            std::vector<double> &moments)
{
    double rate = (double)net.rate * (net.by_adamw ? std::min(1.0, step / 10.0) : 1);
    double unbias1 = 1 / (1 - std::pow((double)DECAY1, step)), unbias2 = 1 / (1 - std::pow((double)DECAY2, step));
    for (size_t i = 0; i < net.whole.loss; i++) {
        double &m = moments[i], &v = moments[net.whole.loss + i];
        m = (double)DECAY1 * m + (1 - (double)DECAY1) * g[i];
        v = (double)DECAY2 * v + (1 - (double)DECAY2) * g[i] * g[i];
        double by = m * unbias1 / (std::sqrt(v * unbias2) + (double)EPSILON) + (double)WEIGHT_DECAY * w[i];
        w[i] -= rate * (net.by_adamw ? by : g[i]);
    }
}

// Of two steps, from the numbers that the host has.
template <typename Net> double error_of_steps(Net &net, const std::function<void()> &step)
{
    std::vector<double> w(net.host_w, net.host_w + net.whole.all), g(net.whole.all), moments(2 * net.whole.all);
    for (int k = 1; k <= 2; k++) {
        step();
        std::fill(g.begin(), g.end(), 0);
        for (int row = 0; row < net.batch; row++)
            row_on_cpu(net, w, row, g);
        optimise_on_cpu(net, k, w, g, moments);
    }
    net.fetch();
    wait_for_all(net.gpus);
    double worst = 0;
    for (size_t i = 0; i < net.whole.loss; i++)
        worst = std::max(worst, std::fabs(w[i] - (double)net.host_w[i]));
    return worst;
}
