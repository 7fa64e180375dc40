/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies of gantry train. */
#ifndef GANTRY_COMMAND_TRAIN_STRATEGIES_H
#define GANTRY_COMMAND_TRAIN_STRATEGIES_H

#include "../command.h"

enum { STRATEGY_TEXT = 160 };
/* Has a strategy to be chosen: is it "auto", or one with recompute=auto? */
bool is_strategy_open(const char *text);
/* Predicts every strategy for the devices there are, prints them as a table, the best first, and writes that one. With
 * recompute=auto: writes that strategy with as many layers computed again as have to be, none where all fits. */
int choose_strategy(const options *o, char text[STRATEGY_TEXT]);

#endif
