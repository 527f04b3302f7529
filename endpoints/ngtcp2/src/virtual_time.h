/* Virtual time: lives from one RUN to the next, and reads no clock (endpoints/CONTRACT.md). */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

/* Answers HELLO, RUN after RUN, and FINISH; returns early when the coordinator goes away. */
void run_virtual_time(void);

#endif
