/* What ngtcp2 is told of a connection before it begins: settings with their qlog, and transport parameters. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <ngtcp2/ngtcp2.h>

#include "connection.h"

/* `original` is the destination connection ID of the client's first Initial packet. Opens the qlog. */
ngtcp2_settings settings_for(struct connection *connection, const ngtcp2_cid *original, uint64_t now);

ngtcp2_transport_params params_for(const struct setup *setup);

#endif
