/* Socket mode: one UDP socket in real time, in one thread (endpoints/contract/socket-mode.md). */
#ifndef SOCKETS_H
#define SOCKETS_H

/* Lives until a client is done or a server gets SIGTERM; the exit code. */
int run_sockets(void);

#endif
