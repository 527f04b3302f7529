/* Socket mode: one UDP socket in real time, in one thread (endpoints/CONTRACT.md, section 3). */
#ifndef SOCKETS_H
#define SOCKETS_H

/* Lives until a client is done or a server gets SIGTERM; the exit code. */
int run_sockets(void);

#endif
