/* Retry (RFC 9000, section 8.1.2): ngtcp2 asks for it when the first Initial packet to arrive has not the start of the
 * ClientHello, as happens with clients that spread it over several packets. */
#ifndef RETRY_H
#define RETRY_H

#include "connection.h"

/* Makes the Retry packet that answers `initial`, to be sent with the next datagrams. */
void retry_ask(const struct ep_address *remote, const ngtcp2_pkt_hd *initial);

/* Whether `initial` answers a Retry; then with the connection ID of the packet before it. */
bool retry_answered(const struct ep_address *remote, const ngtcp2_pkt_hd *initial,
                    ngtcp2_cid *original);

#endif
