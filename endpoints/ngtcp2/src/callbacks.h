/* What ngtcp2 tells: TLS and packet protection go to its own GnuTLS helper, streams to the application. */
#ifndef CALLBACKS_H
#define CALLBACKS_H

#include <ngtcp2/ngtcp2.h>

extern const ngtcp2_callbacks client_callbacks, server_callbacks;

#endif
