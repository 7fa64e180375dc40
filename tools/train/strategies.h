/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies of models: gantry train, and run and schedule of a model as it is used. */
#ifndef GANTRY_COMMAND_TRAIN_STRATEGIES_H
#define GANTRY_COMMAND_TRAIN_STRATEGIES_H

#include "../command.h"

enum { STRATEGY_TEXT = 160, DEVICES_TEXT = 512 };
/* Texts that options point to once a strategy was chosen. */
typedef struct settled {
    char strategy[STRATEGY_TEXT], devices[DEVICES_TEXT];
} settled;
/* Where the strategy of the options is "auto": predicts every one for the devices there are, prints them as a table,
 * the best first, and takes that one, which `text` has then, and the devices that it is for, where these are not the
 * first ones. With recompute=auto: takes that strategy with as many layers computed again as have to be, none where all
 * fits. */
int settle_strategy(options *o, settled *text);

#endif
