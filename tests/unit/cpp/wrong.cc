/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler has to refuse, one at a time: WRONG says which. 0 compiles. */
#include <gantry/gantry.hpp>

void build(gantry::graph &g)
{
    auto x = g.buffer<float>("x", { 8 });
    auto y = g.buffer<double>("y", { 8 });
#if WRONG == 0
    g.launch(
        "fine", [](gantry::span<const float>, gantry::span<double>) {}, gantry::read(x), gantry::write(y));
#elif WRONG == 1 /* another type */
    g.launch(
        "type", [](gantry::span<const double>) {}, gantry::read(x));
#elif WRONG == 2 /* writes what is only read */
    g.launch(
        "const", [](gantry::span<float>) {}, gantry::read(x));
#elif WRONG == 3 /* a region too few */
    g.launch(
        "count", [](gantry::span<const float>, gantry::span<double>) {}, gantry::read(x));
#elif WRONG == 4 /* types of two buffers */
    g.carry(x, y);
#elif WRONG == 5 /* no type of elements */
    g.buffer<long double>("z", { 8 });
#elif WRONG == 6 /* copies */
    gantry::graph other = g;
#endif
}
