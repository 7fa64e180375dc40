/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies of gantry train. */
#ifndef GANTRY_COMMAND_TRAIN_STRATEGIES_H
#define GANTRY_COMMAND_TRAIN_STRATEGIES_H

#include "../command.h"

enum { STRATEGY_TEXT = 64 };
/* Predicts every strategy for the devices there are, prints them as a table, the best first, and writes that one. */
int choose_strategy(const options *o, char text[STRATEGY_TEXT]);

#endif
